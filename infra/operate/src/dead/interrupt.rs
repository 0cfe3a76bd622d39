//! Ctrl-C. While messages are held, it asks for an orderly end, in which they are released. Otherwise, and the second
//! time, it ends the process at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::output::say;

/// The exit code of a process that Ctrl-C ended.
const INTERRUPTED: i32 = 130;

/// The wish of the person at the terminal to stop.
pub(super) struct Interrupt(Arc<State>);

#[derive(Default)]
struct State {
    holds: AtomicBool,
    is_stopped: AtomicBool,
}

/// A time in which messages are held. It ends when this is dropped.
pub(super) struct Holding(Arc<State>);

impl Interrupt {
    /// Watches for Ctrl-C, on the runtime's thread: a caller that waits for input does so on another.
    pub(super) fn watch() -> Self {
        let state = Arc::<State>::default();
        let watched = Arc::clone(&state);
        tokio::spawn(async move {
            while tokio::signal::ctrl_c().await.is_ok() {
                if !watched.holds.load(Ordering::Relaxed) || watched.is_stopped.swap(true, Ordering::Relaxed) {
                    std::process::exit(INTERRUPTED);
                }
                say("stopping");
            }
        });
        Self(state)
    }

    /// Begins a time in which messages are held.
    pub(super) fn holding(&self) -> Holding {
        self.0.holds.store(true, Ordering::Relaxed);
        Holding(Arc::clone(&self.0))
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.0.is_stopped.load(Ordering::Relaxed)
    }
}

impl Drop for Holding {
    fn drop(&mut self) {
        self.0.holds.store(false, Ordering::Relaxed);
    }
}
