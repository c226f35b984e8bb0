//! Files of other programs: recorded traces, and configurations of real servers.

pub mod recording;
pub mod torchserve;
pub mod trace;
pub mod triton;
