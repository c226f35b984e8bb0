//! Arrival processes: when requests come.
//!
//! One file per process. A process fills blocks of sorted arrival times; it never knows the
//! policy, the cell or the thread.

mod closed_loop;
mod deterministic;
mod gamma;
mod mmpp;
mod poisson;
mod trace;

use crate::tagged::{BadParam, tagged};
pub use closed_loop::{ClosedLoop, Think, ThinkKind, ThinkLaw};
pub use deterministic::Deterministic;
pub use gamma::Gamma;
pub use mmpp::{Mmpp, MmppLaw, OnOff};
pub use poisson::Poisson;
pub use trace::{Columns, Replay, TimeScale, TimeScaleMode, Trace};

tagged! {
    /// The parameters of an arrival process, as a scenario gives them.
    pub enum Process {
        "poisson" => Poisson(Poisson),
        "deterministic" => Deterministic(Deterministic),
        "gamma" => Gamma(Gamma),
        "mmpp" => Mmpp(Mmpp),
        "on-off" => OnOff(OnOff),
        "closed-loop" => ClosedLoop(ClosedLoop),
        "trace" => Trace(Replay),
    }
}

impl Process {
    /// Whether the parameters can be meant.
    ///
    /// # Errors
    /// The first parameter that cannot.
    pub fn check(&self) -> Result<(), BadParam> {
        match self {
            Self::Poisson(_) | Self::Deterministic(_) => Ok(()),
            Self::Gamma(p) => p.check(),
            Self::Mmpp(p) => p.law().map(|_| ()),
            Self::OnOff(p) => p.law().map(|_| ()),
            Self::ClosedLoop(p) => p.check(),
            Self::Trace(p) => p.check(),
        }
    }
}
