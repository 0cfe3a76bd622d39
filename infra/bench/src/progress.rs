//! Progress of long work, on stderr: a bar on a terminal, a line every few seconds elsewhere.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

/// Interval between two lines. Work that finishes sooner prints none.
const LINE_EVERY: Duration = Duration::from_secs(2);
const STYLE: &str = "{prefix} [{bar:30}] {pos}/{len} {msg} ({elapsed})";

/// The progress of one piece of work. The bar disappears when the value is dropped.
pub(crate) struct Progress {
    bar: ProgressBar,
    title: &'static str,
    next_line_at: Instant,
}

impl Progress {
    /// Starts to show work of `total` steps.
    pub(crate) fn new(title: &'static str, total: u64) -> Self {
        let style = ProgressStyle::with_template(STYLE).unwrap_or_else(|_| ProgressStyle::default_bar());
        let bar = ProgressBar::new(total).with_style(style).with_prefix(title);
        Self { bar, title, next_line_at: Instant::now() + LINE_EVERY }
    }

    /// Shows the number of completed steps and the name of the next one.
    pub(crate) fn show(&mut self, done: u64, next: &str) {
        self.bar.set_position(done);
        self.bar.set_message(next.to_owned());
        if self.bar.is_hidden() && Instant::now() >= self.next_line_at {
            self.next_line_at = Instant::now() + LINE_EVERY;
            eprintln!("{}: {done} of {}, {next}", self.title, self.bar.length().unwrap_or_default());
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
