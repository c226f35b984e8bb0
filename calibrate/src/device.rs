//! The seam: a device that runs a forward pass at a batch size and times it.

use std::collections::BTreeMap;

/// What is measured: kept in the result, so that a number is never without its origin.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Description {
    /// `cpu`, `endpoint`, `fake`, `cuda`.
    pub backend: String,
    /// The device in words: processor or card, or address of the server.
    pub device: String,
    /// The model's name.
    pub model: String,
    /// What one item of a batch is: a row, a sequence, an image.
    pub item: String,
    /// Type of the numbers, `f32`.
    pub dtype: String,
    /// What the time covers: `host wall`.
    pub mode: String,
    /// Sizes of the model, threads, versions: whatever else decides the time.
    pub facts: BTreeMap<String, String>,
}

/// Why a pass did not happen.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// A batch of this size does not fit; smaller ones may.
    #[error("a batch of {batch} does not fit: {why}")]
    DoesNotFit {
        /// The size, items.
        batch: u32,
        /// What ran out, in words.
        why: String,
    },
    /// The device failed; nothing more can be measured.
    #[error("{0}")]
    Failed(String),
}

/// Something that runs forward passes.
pub trait Device {
    /// What it is and what it runs.
    fn describe(&self) -> Description;

    /// Makes passes of `batch` items possible: buffers, inputs. Not timed, called before the first
    /// pass of a visit to this size.
    ///
    /// # Errors
    /// [`Fault::DoesNotFit`] where the size is too large, [`Fault::Failed`] otherwise.
    fn prepare(&mut self, batch: u32) -> Result<(), Fault>;

    /// Runs one pass of the prepared size. Its service time in nanoseconds, at least 1.
    ///
    /// # Errors
    /// As [`Device::prepare`].
    fn pass(&mut self, batch: u32) -> Result<u64, Fault>;

    /// The clock, in nanoseconds since some fixed moment; never goes back.
    fn now_ns(&mut self) -> u64;

    /// Batch sizes after which another tile of work begins, so that both sides are measured.
    fn tile_edges(&self) -> Vec<u32> {
        Vec::new()
    }

    /// Memory that a batch of this size holds beyond the weights, bytes, where known.
    fn memory_bytes(&self, _batch: u32) -> Option<u64> {
        None
    }
}
