//! Ctrl-C once: finish what runs and save; twice: stop at once.

use super::exit::Code;
use crate::study::Control;
use anyhow::Context;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Which signal came.
#[derive(Debug)]
pub(super) struct Signals {
    terminated: Arc<AtomicBool>,
}

impl Signals {
    /// From now on signals stop the study behind `control`; a second one ends the process.
    pub(super) fn watch(control: &Control) -> anyhow::Result<Self> {
        let terminated = Arc::new(AtomicBool::new(false));
        let register = || -> std::io::Result<()> {
            for (signal, code) in
                [(SIGINT, Code::Interrupted as i32), (SIGTERM, Code::Terminated as i32)]
            {
                // First registered, first run: the process ends only if the flag was set before.
                flag::register_conditional_shutdown(signal, code, control.flag())?;
                flag::register(signal, control.flag())?;
            }
            flag::register(SIGTERM, Arc::clone(&terminated))?;
            Ok(())
        };
        register().context("cannot listen for signals")?;
        Ok(Self { terminated })
    }

    /// The exit code of an interrupted study.
    pub(super) fn code(&self) -> Code {
        if self.terminated.load(Ordering::Relaxed) { Code::Terminated } else { Code::Interrupted }
    }
}
