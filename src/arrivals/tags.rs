//! Tags: the one byte by which an engine tells requests apart.
//!
//! A source owns a run of tags, one for each kind of request it sends (its item counts, or the
//! marks of a recording); which request gets which is drawn or replayed here.

use super::Trace;
use super::items::ItemDraw;
use crate::rng::SimRng;
use std::sync::Arc;

/// The tags of the requests of one source, in their order.
#[derive(Clone, Debug)]
pub struct Tags {
    first: u8,
    which: Which,
}

#[derive(Clone, Debug)]
enum Which {
    Same,
    Drawn(ItemDraw),
    Recorded { trace: Arc<Trace>, at: usize },
}

impl Tags {
    /// Every request has this tag.
    #[must_use]
    pub const fn same(tag: u8) -> Self {
        Self { first: tag, which: Which::Same }
    }

    /// Each of `count` tags from `first` on is as likely as another.
    #[must_use]
    pub fn drawn(first: u8, count: u32, rng: SimRng) -> Self {
        Self { first, which: Which::Drawn(ItemDraw::new(count.max(1), rng)) }
    }

    /// As the marks of a recording say, from `first` on.
    #[must_use]
    pub fn recorded(first: u8, trace: Arc<Trace>) -> Self {
        Self { first, which: Which::Recorded { trace, at: 0 } }
    }

    /// The first tag of the source.
    #[must_use]
    pub const fn first(&self) -> u8 {
        self.first
    }

    /// Whether a tag is one of this source's.
    pub(crate) fn holds(&self, tag: u8) -> bool {
        let more = match &self.which {
            Which::Same => 0,
            Which::Drawn(draw) => draw.counts() - 1,
            Which::Recorded { trace, .. } => trace.mark_table.len().saturating_sub(1) as u32,
        };
        tag.checked_sub(self.first).is_some_and(|offset| u32::from(offset) <= more)
    }

    /// The tag of all requests, where it is the same.
    #[inline(always)]
    pub(super) fn constant(&self) -> Option<u8> {
        matches!(self.which, Which::Same).then_some(self.first)
    }

    /// The tag of the next request.
    pub(crate) fn next_tag(&mut self) -> u8 {
        let offset = match &mut self.which {
            Which::Same => 0,
            Which::Drawn(draw) => u8::try_from(draw.above_low()).unwrap_or(0),
            Which::Recorded { trace, at } => {
                *at += 1;
                trace.marks.get(*at - 1).copied().unwrap_or(0)
            }
        };
        self.first.saturating_add(offset)
    }
}
