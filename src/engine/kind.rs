//! What requests of one tag have in common.

use crate::time::Nanos;

/// What all requests of one tag have in common. Tags are small numbers that arrivals carry, so
/// that whatever a request says of itself costs one byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    /// Items it fills of a batch, at least 1.
    pub items: u32,
    /// Priority level its client asks for, 1 the highest; 0 leaves it to the server.
    pub priority: u32,
    /// It has expired once it has waited longer than this; [`Nanos::MAX`] is never.
    pub timeout: Nanos,
    /// Requests of different shapes cannot share a batch where a server enforces shapes.
    pub shape: u16,
}

impl Default for Kind {
    /// One item, no wishes, no limits.
    fn default() -> Self {
        Self { items: 1, priority: 0, timeout: Nanos::MAX, shape: 0 }
    }
}

/// The kinds of a run, by tag.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kinds {
    /// Empty when every request is plain.
    by_tag: Vec<Kind>,
    unit: bool,
    expire: bool,
    one_shape: bool,
}

impl Kinds {
    /// All requests are plain: one item, no priority, no timeout, one shape.
    #[must_use]
    pub const fn plain() -> Self {
        Self { by_tag: Vec::new(), unit: true, expire: false, one_shape: true }
    }

    /// The kinds of tags 0, 1, ….
    #[must_use]
    pub fn new(by_tag: Vec<Kind>) -> Self {
        let unit = by_tag.iter().all(|k| k.items == 1);
        let expire = by_tag.iter().any(|k| k.timeout < Nanos::MAX);
        let plain = by_tag.iter().all(|k| *k == Kind::default());
        let one_shape = by_tag.windows(2).all(|two| two[0].shape == two[1].shape);
        Self { by_tag: if plain { Vec::new() } else { by_tag }, unit, expire, one_shape }
    }

    /// The kind of a tag.
    #[inline(always)]
    #[must_use]
    pub fn of(&self, tag: u8) -> Kind {
        self.by_tag.get(usize::from(tag)).copied().unwrap_or_default()
    }

    /// Whether nothing tells requests apart.
    #[inline(always)]
    #[must_use]
    pub fn is_plain(&self) -> bool {
        self.by_tag.is_empty()
    }

    /// Whether every request carries one item.
    #[inline(always)]
    #[must_use]
    pub fn unit(&self) -> bool {
        self.unit || self.by_tag.is_empty()
    }

    /// Whether all requests have the same shape.
    #[must_use]
    pub fn one_shape(&self) -> bool {
        self.one_shape || self.by_tag.is_empty()
    }

    /// Whether any request can expire.
    #[inline(always)]
    #[must_use]
    pub fn expire(&self) -> bool {
        self.expire
    }

    /// Largest number of items of a request.
    #[must_use]
    pub fn most_items(&self) -> u32 {
        self.by_tag.iter().map(|k| k.items).max().unwrap_or(1)
    }
}
