//! Times real forward passes at every batch size, so that `batchsim` can use what they cost.
//!
//! [`device`] is the seam: whatever can run a pass of a given batch size and time it. [`cpu`] and
//! [`endpoint`] implement it for this machine's processor and for a live server, [`fake`] for
//! tests. [`method`] measures any of them the same way; [`file`] writes what was measured, and
//! [`meaning`] says in words what it shows. [`probe`] looks for a GPU without ever needing one.

pub mod cpu;
pub mod device;
pub mod endpoint;
pub mod fake;
pub mod file;
pub mod meaning;
pub mod method;
pub mod probe;
