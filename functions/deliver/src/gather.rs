//! Writes of a batch's orders that come at about the same time, made together.
//!
//! The orders of a batch get on at their own pace, and none of them is to wait for a slow one. But most come to the same point within a few
//! milliseconds of each other: so a write waits a little for company, and not at all once nobody is left who could bring any.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;

/// What waits to be written, and who is told of it.
#[derive(Debug)]
struct Waiting<T, R> {
    number: u64,
    one: T,
    told: oneshot::Sender<R>,
}

/// All that waits.
#[derive(Debug)]
struct Queue<T, R> {
    waiting: Vec<Waiting<T, R>>,
    /// Of the next one.
    number: u64,
}

/// Writes of the kind `T`, of each of which comes an `R`.
#[derive(Debug)]
pub(crate) struct Gathering<T, R> {
    queue: Mutex<Queue<T, R>>,
    /// Places that are not used yet.
    open: AtomicUsize,
    /// How long a write waits for others.
    company: Duration,
}

/// Somebody who may have something to write.
#[derive(Debug)]
pub(crate) struct Place<'a> {
    open: &'a AtomicUsize,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.open.fetch_sub(1, Ordering::Relaxed);
    }
}

impl<T, R> Gathering<T, R> {
    /// One whose writes wait so long for others.
    pub(crate) fn new(company: Duration) -> Self {
        Self { queue: Mutex::new(Queue { waiting: Vec::new(), number: 0 }), open: AtomicUsize::new(0), company }
    }

    /// A place for somebody who may have something to write.
    pub(crate) fn place(&self) -> Place<'_> {
        self.open.fetch_add(1, Ordering::Relaxed);
        Place { open: &self.open }
    }

    /// Writes `one`, with whatever else waits then. `write` says what came of each, in their order; `None` if it did not.
    pub(crate) async fn write(&self, place: Place<'_>, one: T, write: impl AsyncFnOnce(Vec<T>) -> Vec<R>) -> Option<R> {
        let (told, mut answer) = oneshot::channel();
        let number = self.push(one, told);
        drop(place);
        if self.open.load(Ordering::Relaxed) > 0
            && let Ok(answer) = tokio::time::timeout(self.company, &mut answer).await
        {
            return answer.ok();
        }
        // What is already being written is waited for and for nothing else: what has come since has waits of its own.
        if let Some(waiting) = self.take_if_there(number) {
            let (all, told): (Vec<T>, Vec<_>) =
                waiting.into_iter().map(|Waiting { one, told, .. }| (one, told)).unzip();
            for (told, came_of_it) in told.into_iter().zip(write(all).await) {
                // Whoever waited and is gone wants to know nothing.
                let _ = told.send(came_of_it);
            }
        }
        answer.await.ok()
    }

    fn push(&self, one: T, told: oneshot::Sender<R>) -> u64 {
        let mut queue = self.lock();
        let number = queue.number;
        queue.number += 1;
        queue.waiting.push(Waiting { number, one, told });
        number
    }

    /// All that waits, if this one does.
    fn take_if_there(&self, number: u64) -> Option<Vec<Waiting<T, R>>> {
        let mut queue = self.lock();
        let there = queue.waiting.iter().any(|waiting| waiting.number == number);
        there.then(|| std::mem::take(&mut queue.waiting))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Queue<T, R>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::future::{FutureExt, join, join_all, join3};

    const COMPANY: Duration = Duration::from_millis(3);

    /// Doubles numbers, and keeps how many each write had.
    #[derive(Default)]
    struct Writer(Mutex<Vec<usize>>);

    impl Writer {
        async fn write(&self, all: Vec<u8>) -> Vec<u8> {
            self.0.lock().unwrap().push(all.len());
            all.into_iter().map(|one| one * 2).collect()
        }

        fn sizes(&self) -> Vec<usize> {
            self.0.lock().unwrap().clone()
        }
    }

    #[test]
    fn one_alone_does_not_wait() {
        let (gathering, writer) = (Gathering::new(COMPANY), Writer::default());
        let (place, given_up) = (gathering.place(), gathering.place());
        drop(given_up);
        let written = gathering.write(place, 1, async |all| writer.write(all).await);
        assert_eq!(written.now_or_never(), Some(Some(2)));
    }

    #[tokio::test]
    async fn those_who_come_together_are_written_together_and_each_hears_of_its_own() {
        let (gathering, writer) = (Gathering::new(COMPANY), Writer::default());
        let places: Vec<_> = (1..=5).map(|one| (gathering.place(), one)).collect();
        let written = join_all(places.into_iter().map(|(place, one)| {
            let write = async |all| writer.write(all).await;
            gathering.write(place, one, write)
        }));
        assert_eq!(written.await, [2, 4, 6, 8, 10].map(Some));
        assert_eq!(writer.sizes(), [5]);
    }

    #[tokio::test]
    async fn nobody_waits_for_one_that_is_slow() {
        let (gathering, writer) = (Gathering::new(COMPANY), Writer::default());
        let write = async |all| writer.write(all).await;
        let (first, second, slow) = (gathering.place(), gathering.place(), gathering.place());
        let written = join(gathering.write(first, 1, write), gathering.write(second, 2, write));
        assert_eq!(written.await, (Some(2), Some(4)));
        assert_eq!(gathering.write(slow, 3, write).await, Some(6));
        assert_eq!(writer.sizes(), [2, 1]);
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_waits_for_a_write_that_hangs() {
        let (gathering, writer) = (Gathering::new(COMPANY), Writer::default());
        let (first, second, third) = (gathering.place(), gathering.place(), gathering.place());
        let (free, hangs) = oneshot::channel();
        let hanging = gathering.write(first, 1, async |all| {
            hangs.await.unwrap();
            writer.write(all).await
        });
        let others = async {
            let write = async |all| writer.write(all).await;
            tokio::time::sleep(COMPANY * 10).await;
            let written = join(gathering.write(second, 2, write), gathering.write(third, 3, write)).await;
            free.send(()).unwrap();
            written
        };
        assert_eq!(join(hanging, others).await, (Some(2), (Some(4), Some(6))));
        assert_eq!(writer.sizes(), [2, 1]);
    }

    #[tokio::test]
    async fn one_that_is_being_written_does_not_wait_for_those_who_came_later() {
        let (gathering, writer) = (Gathering::new(COMPANY), Writer::default());
        let [first, second, third, _open] = [(); 4].map(|()| gathering.place());
        let (begin, began) = oneshot::channel();
        let (free, hangs) = oneshot::channel();
        let hanging = gathering.write(first, 1, async |all| {
            begin.send(()).unwrap();
            hangs.await.unwrap();
            writer.write(all).await
        });
        let with_it = gathering.write(second, 2, async |_| unreachable!("it is being written"));
        let later = async {
            began.await.unwrap();
            let written = gathering.write(third, 3, async |all| writer.write(all).await).await;
            free.send(()).unwrap();
            written
        };
        // The third is there when the second looks.
        assert_eq!(join3(hanging, later, with_it).await, (Some(2), Some(6), Some(4)));
        assert_eq!(writer.sizes(), [1, 2]);
    }

    #[test]
    fn a_write_that_does_not_tell_leaves_it_unknown() {
        let gathering = Gathering::<u8, u8>::new(COMPANY);
        let written = gathering.write(gathering.place(), 1, async |_| Vec::new());
        assert_eq!(written.now_or_never(), Some(None));
    }
}
