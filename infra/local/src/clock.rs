//! Stack time: the machine's clock, slowed on demand, plus an offset. The offset only grows and outlives the process.

use std::fs::File;
use std::io;
use std::num::NonZeroU16;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicI64, Ordering};

use chrono::{DateTime, TimeDelta, Utc};
use runtime::{Clock, SystemClock};

/// Maximum offset: a hundred years, within the range of every time format in use.
const MAX_OFFSET_MS: i64 = 100 * 366 * 86_400_000;
/// Width of the number in the file. A fixed width lets one write replace the offset in place.
const FILE_WIDTH: usize = 20;
const FILE_NAME: &str = "clock";

/// The clock of the whole stack.
#[derive(Debug)]
pub struct StackClock {
    started_at: DateTime<Utc>,
    /// Machine time per stack time.
    slowed: NonZeroU16,
    /// Sum of the steps of a slow clock.
    stepped_ms: AtomicI64,
    offset_ms: AtomicI64,
    file: Mutex<Option<File>>,
}

/// The reason why the offset cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ClockError {
    /// The offset cannot be stored.
    #[error("the clock's offset cannot be kept: {0}")]
    Keep(#[from] io::Error),
    /// The offset in the data directory is not a valid number.
    #[error("{0} does not hold a number of milliseconds")]
    Malformed(PathBuf),
    /// The offset exceeds a hundred years.
    #[error("the clock cannot be more than a hundred years ahead")]
    TooFar,
}

impl Default for StackClock {
    fn default() -> Self {
        let (stepped_ms, offset_ms, file) = (AtomicI64::new(0), AtomicI64::new(0), Mutex::new(None));
        Self { started_at: SystemClock.now(), slowed: NonZeroU16::MIN, stepped_ms, offset_ms, file }
    }
}

impl StackClock {
    /// Loads the offset from the directory. The offset is zero when there is no file. Time passes `slowed` times more
    /// slowly than on the machine.
    pub fn load(dir: Option<&Path>, slowed: NonZeroU16) -> Result<Self, ClockError> {
        let clock = Self { slowed, ..Self::default() };
        let Some(path) = dir.map(|dir| dir.join(FILE_NAME)) else { return Ok(clock) };
        let offset_ms = match std::fs::read_to_string(&path) {
            Ok(text) => match text.trim().parse() {
                Ok(offset_ms) if (0..=MAX_OFFSET_MS).contains(&offset_ms) => offset_ms,
                _ => return Err(ClockError::Malformed(path)),
            },
            Err(error) if error.kind() == io::ErrorKind::NotFound => 0,
            // The data directory is a file: opening it reports that with a better message.
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => 0,
            Err(error) => return Err(error.into()),
        };
        Ok(Self { offset_ms: AtomicI64::new(offset_ms), ..clock })
    }

    /// Stores the offset in the directory from now on. The caller must hold the directory's lock.
    pub fn persist_in(&self, dir: &Path) -> Result<(), ClockError> {
        let path = dir.join(FILE_NAME);
        if !path.exists() {
            // The rename is atomic: a killed process leaves no partial file.
            let draft = path.with_extension("new");
            std::fs::write(&draft, format!("{:FILE_WIDTH$}\n", self.offset_ms()))?;
            std::fs::rename(draft, &path)?;
        }
        let file = File::options().write(true).open(path)?;
        *self.file.lock().unwrap_or_else(PoisonError::into_inner) = Some(file);
        self.write(self.offset_ms())
    }

    /// Returns the offset from [`Self::base`].
    pub fn offset_ms(&self) -> i64 {
        self.offset_ms.load(Ordering::Acquire)
    }

    /// Returns the time without the offset: the machine's, slowed since the stack started, with its steps.
    pub fn base(&self) -> DateTime<Utc> {
        let passed_ms = (SystemClock.now() - self.started_at).num_milliseconds() / i64::from(self.slowed.get());
        self.started_at + TimeDelta::milliseconds(passed_ms + self.stepped_ms.load(Ordering::Acquire))
    }

    /// Moves a slow clock on by a millisecond. Invocations do so as they begin and end: what one writes after another
    /// has a later time, as it has on the machine's clock, and lists by time have a known order.
    pub fn step(&self) {
        if self.slowed > NonZeroU16::MIN {
            self.stepped_ms.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// Refuses an offset above the maximum.
    pub fn check_offset(offset_ms: i64) -> Result<(), ClockError> {
        if offset_ms > MAX_OFFSET_MS { Err(ClockError::TooFar) } else { Ok(()) }
    }

    /// Moves the clock forward, never back. The offset is stored before it takes effect, so that after a crash no
    /// stored time lies in the future.
    pub fn set_offset_ms(&self, offset_ms: i64) -> Result<(), ClockError> {
        Self::check_offset(offset_ms)?;
        if offset_ms > self.offset_ms() {
            self.write(offset_ms)?;
            self.offset_ms.fetch_max(offset_ms, Ordering::AcqRel);
        }
        Ok(())
    }

    fn write(&self, offset_ms: i64) -> Result<(), ClockError> {
        if let Some(file) = &*self.file.lock().unwrap_or_else(PoisonError::into_inner) {
            file.write_all_at(format!("{offset_ms:FILE_WIDTH$}\n").as_bytes(), 0)?;
        }
        Ok(())
    }
}

impl Clock for StackClock {
    fn now(&self) -> DateTime<Utc> {
        self.base() + TimeDelta::milliseconds(self.offset_ms())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_offset_outlives_the_process_and_never_shrinks() {
        let dir = tempfile::tempdir().unwrap();
        let clock = StackClock::load(Some(dir.path()), NonZeroU16::MIN).unwrap();
        clock.persist_in(dir.path()).unwrap();
        clock.set_offset_ms(123_456_789_012).unwrap();
        clock.set_offset_ms(7).unwrap();
        assert_eq!(StackClock::load(Some(dir.path()), NonZeroU16::MIN).unwrap().offset_ms(), 123_456_789_012);
    }

    #[test]
    fn stack_time_is_real_time_plus_the_offset() {
        let clock = StackClock::default();
        clock.set_offset_ms(86_400_000).unwrap();
        let ahead = clock.now() - SystemClock.now();
        assert!((ahead - TimeDelta::days(1)).num_milliseconds().abs() < 1_000, "{ahead}");
    }

    #[test]
    fn a_slow_clock_passes_a_part_of_the_time_and_moves_at_once() {
        let started_at = SystemClock.now() - TimeDelta::hours(10);
        let clock = StackClock { started_at, slowed: NonZeroU16::new(10).unwrap(), ..StackClock::default() };
        let passed = clock.now() - started_at;
        assert!((passed - TimeDelta::hours(1)).num_milliseconds().abs() < 1_000, "{passed}");
        let before = clock.now();
        clock.step();
        assert!(clock.now() > before);
        clock.set_offset_ms(86_400_000).unwrap();
        assert!(clock.now() - started_at >= passed + TimeDelta::days(1));
    }

    #[test]
    fn a_damaged_offset_and_a_far_future_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        for damaged in ["soon", "", "9223372036854775807", "-1"] {
            std::fs::write(dir.path().join(FILE_NAME), damaged).unwrap();
            assert!(
                matches!(StackClock::load(Some(dir.path()), NonZeroU16::MIN), Err(ClockError::Malformed(_))),
                "{damaged}"
            );
        }
        assert!(matches!(StackClock::default().set_offset_ms(i64::MAX), Err(ClockError::TooFar)));
    }
}
