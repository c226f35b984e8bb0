//! Arrival processes: when requests come.
//!
//! One file per process. A process fills blocks of sorted arrival times; it never knows the
//! policy, the cell or the thread.

mod clients;
mod clock;
mod closed_loop;
mod deterministic;
mod feed;
mod gamma;
mod groups;
mod hawkes;
mod hyperexponential;
mod items;
mod mmpp;
mod poisson;
mod rates;
mod schedule;
mod tags;
mod tape;
mod trace;
mod weibull;

use crate::rng::SimRng;
use crate::tagged::{BadParam, tagged};
pub use clients::Clients;
pub use closed_loop::{ClosedLoop, Think, ThinkKind, ThinkLaw};
pub use deterministic::Deterministic;
pub(crate) use feed::Blocks;
pub use feed::{BLOCK, Feed, Limits};
pub use gamma::Gamma;
pub use groups::{GroupSize, GroupSizeKind, GroupSizeLaw, Groups, Member, Members};
pub use hawkes::Hawkes;
pub use hyperexponential::Hyperexponential;
pub use items::{ItemLaw, ItemLawKind, Items};
pub use mmpp::{Mmpp, MmppLaw, OnOff};
pub use poisson::Poisson;
pub use schedule::{Schedule, SchedulePoint, Sine};
use std::sync::Arc;
pub use tags::Tags;
pub use tape::{Tape, Tapes};
pub use trace::{Columns, Mark, Replay, TimeScale, TimeScaleMode, Trace};
pub use weibull::Weibull;

tagged! {
    /// The parameters of an arrival process, as a scenario gives them.
    pub enum Process {
        "poisson" => Poisson(Poisson),
        "deterministic" => Deterministic(Deterministic),
        "gamma" => Gamma(Gamma),
        "weibull" => Weibull(Weibull),
        "hyperexponential" => Hyperexponential(Hyperexponential),
        "mmpp" => Mmpp(Mmpp),
        "on-off" => OnOff(OnOff),
        "hawkes" => Hawkes(Hawkes),
        "groups" => Groups(Groups),
        "schedule" => Schedule(Schedule),
        "clients" => Clients(Clients),
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
            Self::Weibull(p) => p.check(),
            Self::Hyperexponential(p) => p.check(),
            Self::Hawkes(p) => p.check(),
            Self::Schedule(p) => p.check(),
            Self::Clients(p) => p.check(),
            Self::Mmpp(p) => p.law().map(|_| ()),
            Self::OnOff(p) => p.law().map(|_| ()),
            Self::Groups(p) => p.check(),
            Self::ClosedLoop(p) => p.check(),
            Self::Trace(p) => p.check(),
        }
    }
}

/// A source of arrival times.
pub trait Stream {
    /// Writes the next arrival times in nanoseconds, never decreasing, and returns how many;
    /// fewer than asked for only where the stream ends.
    fn fill(&mut self, out: &mut [u64]) -> usize;
}

impl Process {
    /// The stream of an open-loop process; `None` for a closed loop, whose arrivals depend on
    /// what the server answers. `trace` holds the recorded arrivals of a `trace` process.
    ///
    /// # Errors
    /// Parameters that cannot be meant (see [`Process::check`]).
    pub fn stream(
        &self,
        trace: Option<&Arc<Trace>>,
        rng: SimRng,
    ) -> Result<Option<Box<dyn Stream + Send>>, BadParam> {
        self.stream_on(None, trace, rng)
    }

    /// The same stream, where the first gaps that `rng` would draw may be on a tape already.
    ///
    /// # Errors
    /// Parameters that cannot be meant.
    pub fn stream_on(
        &self,
        tape: Option<Arc<Tape>>,
        trace: Option<&Arc<Trace>>,
        rng: SimRng,
    ) -> Result<Option<Box<dyn Stream + Send>>, BadParam> {
        Ok(Some(match self {
            Self::Poisson(p) => Box::new(poisson::Draw::new(p, rng, tape)),
            Self::Deterministic(p) => Box::new(deterministic::Ticks::new(p)),
            Self::Gamma(p) => Box::new(gamma::Draw::new(p, rng)?),
            Self::Weibull(p) => Box::new(weibull::Draw::new(p, rng)?),
            Self::Hyperexponential(p) => Box::new(hyperexponential::Draw::new(p, rng)?),
            Self::Hawkes(p) => Box::new(hawkes::Draw::new(p, rng)?),
            Self::Schedule(p) => p.stream(rng)?,
            Self::Clients(p) => Box::new(clients::Draw::new(p, rng)?),
            Self::Mmpp(p) => Box::new(mmpp::Draw::new(p.law()?, rng)),
            Self::OnOff(p) => Box::new(mmpp::Draw::new(p.law()?, rng)),
            Self::Groups(p) => Box::new(groups::Draw::new(p, rng)),
            Self::ClosedLoop(_) => return Ok(None),
            Self::Trace(p) => {
                let trace = trace.map(Arc::clone).unwrap_or_default();
                Box::new(trace::Playback::new(trace, p.factor()))
            }
        }))
    }
}
