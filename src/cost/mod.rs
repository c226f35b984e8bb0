//! Cost models: the shape of a batch in, its service time out.
//!
//! One file per form. A cost is the time one instance is held by one forward pass, including what
//! does not depend on the batch (kernel launches, weight reads).

mod affine;
mod jitter;
mod table;

use crate::tagged::{BadParam, params, tagged};
pub use affine::Affine;
pub use jitter::{Exponential, Jitter, Lognormal, NoJitter};
pub use table::{Beyond, Point, Table};

params! {
    /// A cost model kept in a file of its own, written by `calibrate` or by hand.
    pub struct CostFile {
        /// The file, relative to the scenario.
        pub file: String,
    }
}

tagged! {
    /// The parameters of a cost model, as a scenario gives them.
    pub enum Cost {
        "affine" => Affine(Affine),
        "table" => Table(Table),
        "file" => File(CostFile),
    }
}

impl Cost {
    /// Whether the parameters can be meant.
    ///
    /// # Errors
    /// The first parameter that cannot.
    pub fn check(&self) -> Result<(), BadParam> {
        match self {
            Self::Affine(c) => c.check(),
            Self::Table(c) => c.check(),
            Self::File(_) => Ok(()),
        }
    }
}
