//! Files of other programs: recorded traces, configurations of real servers, viewers of traces.

pub mod perfetto;
pub mod trace;
pub mod triton;
