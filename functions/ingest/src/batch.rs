//! Handles the messages of a batch in order, each with a deadline of its own.
//!
//! A message waits for the previous one. If the previous message is slow, both are handled concurrently, unless they
//! are about the same client: their transactions would refuse each other, and become slower with every attempt. So a
//! fact that hangs fails alone, or with the later facts about its client. The whole batch ends before the function's
//! time-out, even after a slow look-up.

use std::collections::HashMap;
use std::time::Duration;

use futures::future::OptionFuture;
use futures::stream::{FuturesUnordered, StreamExt};
use runtime::BoxError;
use tokio::sync::Mutex;
use tokio::time::timeout;

/// Time for which a message may hold up the next.
const HEAD_START: Duration = Duration::from_millis(500);
/// Time limit of a message, with its wait for earlier ones about the same client. Writes that were made by then stay,
/// as after a crash.
const DEADLINE: Duration = Duration::from_secs(15);

/// Handles each message with `take`. `client` names the client that a message is about. Returns the results with the
/// indexes of their messages, in no order.
pub(crate) async fn take_each<'m, M, F>(
    messages: &'m [M],
    client: impl Fn(&'m M) -> Option<&'m str>,
    take: impl Fn(&'m M) -> F,
) -> Vec<(usize, Result<(), BoxError>)>
where
    F: Future<Output = Result<(), BoxError>>,
{
    // Those who wait for a lock get it in their order.
    let clients: HashMap<&str, Mutex<()>> =
        messages.iter().filter_map(&client).map(|id| (id, Mutex::new(()))).collect();
    let in_turn = async |message| {
        let lock = client(message).and_then(|id| clients.get(id));
        let _turn = OptionFuture::from(lock.map(Mutex::lock)).await;
        take(message).await
    };
    let in_time = async |index: usize| {
        let taken = timeout(DEADLINE, in_turn(&messages[index])).await;
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

    /// Handles messages about different clients, as [`taken_of`] does.
    async fn taken(messages: &[Taking]) -> (Vec<u128>, u128, Vec<usize>) {
        taken_of(&messages.iter().map(|message| (None, *message)).collect::<Vec<_>>()).await
    }

    /// Handles messages, some with their client. Returns the start times and the end in ms, and the indexes of the
    /// messages that failed.
    async fn taken_of(messages: &[(Option<&'static str>, Taking)]) -> (Vec<u128>, u128, Vec<usize>) {
        let (start, begun) = (Instant::now(), Mutex::new(Vec::new()));
        let client = |(client, _): &(Option<&'static str>, Taking)| *client;
        let ended = take_each(messages, client, async |(_, message)| {
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
    async fn messages_about_one_client_follow_one_another_however_slow_they_are() {
        let (ada, eve) = (Some("ada"), Some("eve"));
        let messages = [(ada, Slow(2_000)), (ada, Failing), (eve, Quick), (ada, Slow(1_000)), (None, Quick)];
        let taken = taken_of(&messages).await;
        assert_eq!(taken, (vec![0, 1_000, 1_500, 2_000, 2_000], 3_000, vec![1]));
    }

    #[tokio::test(start_paused = true)]
    async fn a_message_that_hangs_holds_up_the_later_ones_about_its_client_up_to_their_deadline() {
        let (ada, eve) = (Some("ada"), Some("eve"));
        let taken = taken_of(&[(ada, Hanging), (ada, Hanging), (ada, Quick), (eve, Quick)]).await;
        assert_eq!(taken, (vec![0, 1_500, 15_000, 15_500], 15_500, vec![0, 1]));
    }

    #[tokio::test(start_paused = true)]
    async fn a_whole_batch_that_hangs_ends_within_20_seconds() {
        let (_, ended_ms, failed) = taken(&[Hanging; 10]).await;
        assert!(ended_ms < 20_000, "{ended_ms}");
        assert_eq!(failed, (0..10).collect::<Vec<_>>());
    }
}
