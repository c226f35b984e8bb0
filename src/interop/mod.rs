//! Files of other programs: recorded traces, configurations of real servers, viewers of traces.

pub mod perfetto;
pub mod recording;
pub mod torchserve;
pub mod trace;
pub mod triton;
