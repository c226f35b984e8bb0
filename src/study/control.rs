//! What the cells of a study share: telling the outside how far it is, hearing when to stop, and
//! the gaps that were drawn.

use crate::arrivals::Tapes;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Shared between a study and whoever watches it.
#[derive(Debug, Default)]
pub struct Control {
    stop: Arc<AtomicBool>,
    requests: AtomicU64,
    cells: AtomicU64,
    tapes: Tapes,
}

impl Control {
    /// Asks the study to stop soon; what is complete is kept.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// The flag behind [`stop`](Self::stop), for a signal handler.
    #[must_use]
    pub fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.stop)
    }

    /// Whether the study should stop.
    #[must_use]
    pub fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Gaps that cells have in common.
    pub(super) fn tapes(&self) -> &Tapes {
        &self.tapes
    }

    /// Requests simulated so far.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    /// Cells completed so far.
    #[must_use]
    pub fn cells(&self) -> u64 {
        self.cells.load(Ordering::Relaxed)
    }

    pub(super) fn add_requests(&self, n: u64) {
        self.requests.fetch_add(n, Ordering::Relaxed);
    }

    /// Counts a completed cell.
    pub fn add_cell(&self) {
        self.cells.fetch_add(1, Ordering::Relaxed);
    }
}
