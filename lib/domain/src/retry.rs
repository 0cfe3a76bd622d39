//! The retry schedule of webhooks.

use chrono::TimeDelta;

/// Attempts of one chain, the first included.
pub const MAX_ATTEMPTS: u32 = GAPS_S.len() as u32 + 1;

/// Seconds between an attempt and the next.
pub const GAPS_S: [u32; 8] = [5, 60, 300, 1_800, 7_200, 18_000, 34_200, 36_000];

/// Whole hours from the first attempt of a chain to the last.
pub const CHAIN_HOURS: u32 = sum(&GAPS_S) / 3_600;

/// Longest extension of a gap, as a share of the gap: recovering receivers are not hit by all retries at once.
pub const MAX_JITTER_PERCENT: i64 = 5;

/// Longest delay of a message in SQS.
pub const MAX_QUEUE_DELAY_S: u32 = 900;

/// Longest wait of a message that failed before it is received again.
pub const MAX_REDELIVERY_DELAY_S: u32 = 90;

const fn sum(gaps_s: &[u32]) -> u32 {
    match gaps_s {
        [first, rest @ ..] => *first + sum(rest),
        [] => 0,
    }
}

/// Returns the wait after `attempts_made` attempts; `None`: no attempt is left. `jitter` spreads over the whole range.
/// In whole seconds, the precision of a queue's delay, so that the attempt is made at its logged time.
pub fn gap_after(attempts_made: u32, jitter: u16) -> Option<TimeDelta> {
    let index = usize::try_from(attempts_made.checked_sub(1)?).ok()?;
    let gap_s = i64::from(*GAPS_S.get(index)?);
    let most_extra_s = gap_s * MAX_JITTER_PERCENT / 100;
    let extra_s = (most_extra_s + 1) * i64::from(jitter) / (i64::from(u16::MAX) + 1);
    Some(TimeDelta::seconds(gap_s + extra_s))
}

/// Returns the delay of a message that is due in `wait`, in whole seconds: the wait rounded up, or the longest delay of
/// the queue. In that case the message is delayed again for the rest.
pub fn queue_delay_s(wait: TimeDelta) -> u32 {
    let wait_s = (wait.num_milliseconds().max(0) + 999) / 1000;
    u32::try_from(wait_s).unwrap_or(MAX_QUEUE_DELAY_S).min(MAX_QUEUE_DELAY_S)
}

/// Returns the wait before a message that has failed `failures` times in a row is received again: 1 s, then twice as
/// long each time. So a fault of some seconds holds a message up for about as long as the fault lasted.
pub fn redelivery_delay_s(failures: u32) -> u32 {
    let doublings = failures.saturating_sub(1);
    1u32.checked_shl(doublings).map_or(MAX_REDELIVERY_DELAY_S, |delay_s| delay_s.min(MAX_REDELIVERY_DELAY_S))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_gap_follows_each_attempt_but_the_last() {
        let gaps: Vec<TimeDelta> = (1..).map_while(|made| gap_after(made, 0)).collect();
        assert_eq!(gaps, GAPS_S.map(|gap_s| TimeDelta::seconds(gap_s.into())));
        assert_eq!(gaps.iter().sum::<TimeDelta>().num_hours(), i64::from(CHAIN_HOURS));
        assert_eq!(gap_after(MAX_ATTEMPTS, 0), None);
        assert_eq!(gap_after(0, 0), None);
    }

    #[test]
    fn a_message_that_fails_waits_a_second_and_then_twice_as_long_each_time() {
        let waits = [0, 1, 2, 3, 4, 7, 8, 32, 33, u32::MAX].map(redelivery_delay_s);
        assert_eq!(waits, [1, 1, 2, 4, 8, 64, 90, 90, 90, 90]);
    }

    proptest! {
        #[test]
        fn jitter_lengthens_a_gap_by_at_most_its_share(made in 1..MAX_ATTEMPTS, jitter: u16) {
            let gap = gap_after(made, jitter).unwrap();
            let base = gap_after(made, 0).unwrap();
            prop_assert!(gap >= base && gap.num_milliseconds() <= base.num_milliseconds() * (100 + MAX_JITTER_PERCENT) / 100);
            prop_assert_eq!(gap.subsec_nanos(), 0);
        }

        #[test]
        fn a_chain_of_delays_reaches_the_due_time_and_overshoots_by_less_than_a_second(wait_ms in 0i64..40_000_000) {
            let mut left = wait_ms;
            let mut links = 0;
            while left > 0 {
                let delay_s = queue_delay_s(TimeDelta::milliseconds(left));
                prop_assert!(delay_s <= MAX_QUEUE_DELAY_S);
                left -= i64::from(delay_s) * 1000;
                links += 1;
            }
            prop_assert!(left > -1000);
            prop_assert!(links <= wait_ms / 900_000 + 1);
        }
    }
}
