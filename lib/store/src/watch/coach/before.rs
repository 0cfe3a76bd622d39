//! What something was that clients are judged by: the phases of a programme, the time zone. Who was last judged before it became another
//! is judged by what it was first, change by change, so that what the client had come to match is told of.

use domain::time::Timestamp;
use serde::{Deserialize, Serialize};

/// Most that is kept of what something was, as of automations. Where it changes more often than that before all clients are judged, the
/// oldest is dropped: what came to match by that alone is not told, and the one after it stands for its time too.
const MAX_FORMER: usize = 10;
/// Its size as JSON: with a fact of 256 KB beside it, an item stays below 400 KB.
const MAX_FORMER_BYTES: usize = 100_000;
const MINUTE_MS: i64 = 60_000;

/// What something was, oldest first. Empty where even the last that it was is too large to be kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Before<T>(Vec<Former<T>>);

/// What it was from the end of the one before it on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Former<T> {
    was: T,
    until: Timestamp,
    /// It became another by a backfill, of which nothing is told.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    backfill: bool,
}

/// That something became another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Changed {
    pub(crate) at: Timestamp,
    pub(crate) backfill: bool,
}

impl<T: Serialize> Before<T> {
    /// With what it was until it changed, and without all that ended before every client was judged, at `passed_at`.
    pub(crate) fn with(before: Option<Self>, was: T, changed: Changed, passed_at: Option<Timestamp>) -> Self {
        let Changed { at, backfill } = changed;
        let mut former = before.map_or_else(Vec::new, |before| before.0);
        former.retain(|former| passed_at.is_none_or(|passed_at| former.until >= passed_at));
        // A look every minute does not see what begins and ends within one: a slip that is put right at once tells nothing, and a burst of
        // changes is one. Nor does this see what ends before it began, by the clocks of two functions: the ends are in order. What is told
        // of one change and not of another is kept apart.
        let is_seen =
            |last: &Former<T>| minute(last.until) < minute(at) || (last.backfill != backfill && last.until < at);
        if former.last().is_none_or(is_seen) {
            former.push(Former { was, until: at, backfill });
        }
        let mut bytes = 0;
        let fits = |former: &&Former<T>| {
            bytes += serde_json::to_vec(&former.was).map_or(MAX_FORMER_BYTES, |json| json.len());
            bytes < MAX_FORMER_BYTES
        };
        let kept = former.iter().rev().take(MAX_FORMER).take_while(fits).count();
        former.drain(..former.len() - kept);
        Self(former)
    }

    /// What it was at an instant, `now` being what it is.
    pub(crate) fn at<'a>(before: Option<&'a Self>, now: &'a T, at: Timestamp) -> &'a T {
        let former = before.and_then(|before| before.0.iter().find(|former| at <= former.until));
        former.map_or(now, |former| &former.was)
    }

    /// When it became another, each time, in order.
    pub(crate) fn changes(&self) -> impl Iterator<Item = Changed> {
        self.0.iter().map(|former| Changed { at: former.until, backfill: former.backfill })
    }
}

/// The whole minute that an instant is in.
fn minute(at: Timestamp) -> i64 {
    at.ms().div_euclid(MINUTE_MS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(minutes: i64) -> Timestamp {
        Timestamp::from_ms(minutes * MINUTE_MS)
    }

    fn live(at: Timestamp) -> Changed {
        Changed { at, backfill: false }
    }

    /// What is kept of something that became 1, 2 and so on at these minutes, 0 being what it was first.
    fn changed(at_minutes: impl IntoIterator<Item = i64>, passed_at: Option<Timestamp>) -> Option<Before<usize>> {
        let changes = at_minutes.into_iter().enumerate();
        changes.fold(None, |before, (was, minutes)| Some(Before::with(before, was, live(at(minutes)), passed_at)))
    }

    fn kept(before: Option<&Before<usize>>) -> Vec<usize> {
        before.into_iter().flat_map(|before| &before.0).map(|former| former.was).collect()
    }

    #[test]
    fn it_is_at_each_instant_what_it_was_then() {
        let before = changed([10, 20], None);
        for (minutes, was) in [(0, 0), (10, 0), (11, 1), (20, 1), (21, 2)] {
            assert_eq!(*Before::at(before.as_ref(), &2, at(minutes)), was, "at {minutes}");
        }
        assert_eq!(*Before::at(None, &2, at(0)), 2);
        assert_eq!(before.unwrap().changes().collect::<Vec<_>>(), [at(10), at(20)].map(live));
    }

    #[test]
    fn what_it_was_stays_until_every_client_has_been_judged_since() {
        for (passed_at, expected) in [(None, vec![0, 1, 2]), (Some(10), vec![0, 1, 2]), (Some(11), vec![1, 2])] {
            let before = changed([10, 20, 30], passed_at.map(at));
            assert_eq!(kept(before.as_ref()), expected, "{passed_at:?}");
        }
    }

    #[test]
    fn of_many_changes_the_last_stay() {
        let expected: Vec<usize> = (20..30).collect();
        assert_eq!(kept(changed(0..30, None).as_ref()), expected);
    }

    #[test]
    fn of_large_ones_as_many_of_the_last_stay_as_an_item_takes() {
        let changed = |size: usize| {
            let large = |number: i64| number.to_string().repeat(size);
            (0..5)
                .fold(None, |before, number| Some(Before::with(before, large(number), live(at(number)), None)))
                .unwrap()
        };
        let kept = |size: usize| changed(size).0.iter().map(|former| former.was[..1].to_owned()).collect::<String>();
        assert_eq!([kept(10), kept(40_000), kept(MAX_FORMER_BYTES)], ["01234", "34", ""]);
    }

    #[test]
    fn what_it_was_for_less_than_a_minute_is_not_kept() {
        let changes = [(0, 10_000), (1, 20_000), (2, 59_999), (3, 60_000), (4, 50_000)];
        let before = changes
            .into_iter()
            .fold(None, |before, (was, ms)| Some(Before::with(before, was, live(Timestamp::from_ms(ms)), None)));
        assert_eq!(kept(before.as_ref()), [0, 3]);
    }

    #[test]
    fn what_a_backfill_changes_is_kept_apart_even_within_a_minute() {
        let changes = [(10, false), (20, true), (30, true), (40, false), (40, true)];
        let before = changes.into_iter().enumerate().fold(None, |before, (was, (second, backfill))| {
            let changed = Changed { at: Timestamp::from_ms(second * 1000), backfill };
            Some(Before::with(before, was, changed, None))
        });
        assert_eq!(kept(before.as_ref()), [0, 1, 3]);
    }

    #[test]
    fn it_is_stored_as_a_list() {
        let silent = Changed { at: at(30), backfill: true };
        let before = Before::with(changed([10, 20], None), 2, silent, None);
        let stored = serde_json::to_value(&before).unwrap();
        assert_eq!(stored[1], serde_json::json!({ "was": 1, "until": "1970-01-01T00:20:00.000Z" }));
        assert_eq!(stored[2], serde_json::json!({ "was": 2, "until": "1970-01-01T00:30:00.000Z", "backfill": true }));
        assert_eq!(serde_json::from_value::<Before<usize>>(stored).unwrap(), before);
    }
}
