//! A progress line for anything longer than a second, on terminals only.

use super::args::When;
use super::show::say;
use crate::report::count;
use crate::study::Control;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Shows how far a study is until it is dropped.
pub(super) struct Progress {
    over: Arc<AtomicBool>,
    painter: Option<JoinHandle<()>>,
}

impl Progress {
    /// Watches `control` for a study of `cells` cells, of which `done` were there before.
    pub(super) fn watch(when: When, control: &Arc<Control>, cells: u64, done: u64) -> Self {
        let terminal = std::io::stderr().is_terminal();
        let over = Arc::new(AtomicBool::new(false));
        if when == When::Never || (when == When::Auto && !terminal) {
            return Self { over, painter: None };
        }
        let (stop, control) = (Arc::clone(&over), Arc::clone(control));
        let painter = thread::spawn(move || {
            if terminal {
                paint(&stop, &control, cells, done);
            } else {
                lines(&stop, &control, cells, done);
            }
        });
        Self { over, painter: Some(painter) }
    }
}

fn paint(stop: &AtomicBool, control: &Control, cells: u64, done: u64) {
    let start = Instant::now();
    let bar = ProgressBar::with_draw_target(Some(cells), ProgressDrawTarget::hidden());
    let style = "{bar:30} {pos}/{len} cells  {msg}  {eta} left";
    if let Ok(style) = ProgressStyle::with_template(style) {
        bar.set_style(style);
    }
    while !stop.load(Ordering::Relaxed) {
        thread::park_timeout(Duration::from_millis(100));
        if start.elapsed() > Duration::from_secs(1) && bar.is_hidden() {
            bar.set_draw_target(ProgressDrawTarget::stderr());
        }
        bar.set_position(done + control.cells());
        bar.set_message(format!("{} requests", count(control.requests())));
    }
    bar.finish_and_clear();
}

/// Without a terminal: a line for every tenth that is done.
fn lines(stop: &AtomicBool, control: &Control, cells: u64, done: u64) {
    let mut said = 0;
    while !stop.load(Ordering::Relaxed) {
        thread::park_timeout(Duration::from_millis(200));
        let at = done + control.cells();
        let tenths = (at * 10).checked_div(cells).unwrap_or(0);
        if tenths > said {
            said = tenths;
            say(&format!("{at}/{cells} cells, {} requests", count(control.requests())));
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(painter) = self.painter.take() {
            painter.thread().unpark();
            let _ = painter.join();
        }
    }
}
