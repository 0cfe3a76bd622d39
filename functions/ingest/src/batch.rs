//! Handles the messages of a batch in order, each with a deadline of its own.
//!
//! A message waits for the previous one. If the previous message is slow, both are handled concurrently. So a fact that
//! hangs fails alone. The whole batch ends before the function's time-out, even after a slow look-up.

use std::time::Duration;

use futures::stream::{FuturesUnordered, StreamExt};
use runtime::BoxError;
use tokio::time::timeout;

/// Time for which a message may hold up the next.
const HEAD_START: Duration = Duration::from_millis(500);
/// Time limit of a message. Writes that were made by then stay, as after a crash.
const DEADLINE: Duration = Duration::from_secs(15);

/// Handles each message with `take`. Returns the results with the indexes of their messages, in no order.
pub(crate) async fn take_each<'m, M, F>(
    messages: &'m [M],
    take: impl Fn(&'m M) -> F,
) -> Vec<(usize, Result<(), BoxError>)>
where
    F: Future<Output = Result<(), BoxError>>,
{
    let in_time = async |index: usize| {
        let taken = timeout(DEADLINE, take(&messages[index])).await;
        (index, taken.unwrap_or_else(|_| Err(format!("it took longer than {} s", DEADLINE.as_secs()).into())))
    };
    let mut under_way = FuturesUnordered::new();
    let mut ended = Vec::new();
    for index in 0..messages.len() {
        under_way.push(in_time(index));
        let until_this_ends = async {
            while let Some(taken) = under_way.next().await {
                let is_this = taken.0 == index;
                ended.push(taken);
                if is_this {
                    break;
                }
            }
        };
        // Timed out: this message continues beside the next.
        let _ = timeout(HEAD_START, until_this_ends).await;
    }
    while let Some(taken) = under_way.next().await {
        ended.push(taken);
    }
    ended
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::sync::Mutex;

    use tokio::time::{Instant, sleep};

    use super::*;

    /// The behaviour of a message.
    #[derive(Clone, Copy)]
    enum Taking {
        Quick,
        Slow(u64),
        Hanging,
        Failing,
    }
    use Taking::{Failing, Hanging, Quick, Slow};

    /// Handles messages. Returns the start times and the end in ms, and the indexes of the messages that failed.
    async fn taken(messages: &[Taking]) -> (Vec<u128>, u128, Vec<usize>) {
        let (start, begun) = (Instant::now(), Mutex::new(Vec::new()));
        let ended = take_each(messages, async |message| {
            begun.lock().unwrap().push(start.elapsed().as_millis());
            match message {
                Quick => Ok(()),
                Slow(ms) => {
                    sleep(Duration::from_millis(*ms)).await;
                    Ok(())
                }
                Hanging => pending().await,
                Failing => Err("refused".into()),
            }
        })
        .await;
        assert_eq!(ended.len(), messages.len());
        let mut failed: Vec<usize> = ended.into_iter().filter(|(_, taken)| taken.is_err()).map(|(at, _)| at).collect();
        failed.sort_unstable();
        (begun.into_inner().unwrap(), start.elapsed().as_millis(), failed)
    }

    #[tokio::test(start_paused = true)]
    async fn messages_follow_one_another_as_long_as_none_is_slow() {
        let taken = taken(&[Quick, Slow(100), Failing, Slow(400), Quick]).await;
        assert_eq!(taken, (vec![0, 0, 100, 100, 500], 500, vec![2]));
    }

    #[tokio::test(start_paused = true)]
    async fn a_message_that_hangs_fails_alone_and_holds_up_the_next_for_a_moment_only() {
        let taken = taken(&[Quick, Hanging, Quick, Slow(2_000), Quick, Failing]).await;
        assert_eq!(taken, (vec![0, 0, 500, 500, 1_000, 1_000], 15_000, vec![1, 5]));
    }

    #[tokio::test(start_paused = true)]
    async fn a_whole_batch_that_hangs_ends_within_20_seconds() {
        let (_, ended_ms, failed) = taken(&[Hanging; 10]).await;
        assert!(ended_ms < 20_000, "{ended_ms}");
        assert_eq!(failed, (0..10).collect::<Vec<_>>());
    }
}
