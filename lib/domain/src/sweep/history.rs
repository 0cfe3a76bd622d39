//! Random histories: sweeps that look at whoever is due tell what a look every minute tells.

use std::collections::BTreeSet;

use chrono::TimeDelta;
use proptest::prelude::*;

use super::life::{Life, PERIOD};
use super::*;
use oracle::Oracle;
use random::{History, Op, PASS, history, minute_of};

mod oracle;
mod random;

/// What a look every minute tells of a client that is judged at these instants.
fn minute_by_minute(history: &History, judged: &[Timestamp]) -> Oracle {
    let mut oracle = Oracle::new(judged);
    let mut life = history.life(Life::swept);
    oracle.seed(&life, history.start, false);
    let mut from = history.start;
    // The life beside the oracle only keeps the facts and the rules: nothing sweeps it.
    let (mut seeds, mut was_away) = (false, false);
    history.run(&mut life, |life, at, op| {
        if seeds {
            oracle.seed(life, from, was_away);
        }
        oracle.watch(life, from, at);
        life.outage_until(at);
        from = at;
        if matches!(op, Some(Op::BackfilledDoses(_))) && life.facts.is_active {
            // What the client matches before a backfill is not of it.
            oracle.look(life, at, false);
            oracle.silent = true;
        }
        oracle.judged_before(life, at + TimeDelta::milliseconds(1));
        was_away = matches!(op, Some(Op::OffAndOn) if !life.facts.is_active);
        seeds = was_away || matches!(op, Some(Op::Edit(..) | Op::HandOver(_)) if life.facts.is_active);
    });
    oracle
}

/// What is told, by automation and minute, before an end.
fn before(end: Timestamp, told: &[(AutomationId, Timestamp)]) -> Vec<(AutomationId, Timestamp)> {
    let told = told.iter().map(|(id, at)| (id.clone(), minute_of(*at)));
    sorted(told.filter(|(_, at)| *at < end).collect())
}

fn sorted<T: Ord>(mut all: Vec<T>) -> Vec<T> {
    all.sort();
    all
}

/// Each once: the automation with the text that tells its episodes apart.
fn none_is_told_twice(life: &Life) -> bool {
    let told = life.told.iter().map(|told| (&told.computed.automation_id, &told.computed.episode));
    told.collect::<BTreeSet<_>>().len() == life.told.len()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn sweeps_of_the_due_tell_what_a_look_every_minute_tells(history in history(21)) {
        let mut life = history.life(Life::swept);
        history.run(&mut life, |_, _, _| {});
        let oracle = minute_by_minute(&history, &life.judged);
        let end = history.settled_until();
        prop_assert_eq!(before(end, &life.episodes()), before(end, &oracle.told));
        let latest = if history.edits().next().is_some() { PERIOD + PASS } else { PERIOD };
        for told in &life.told {
            let late = told.found_at.ms() - told.computed.at.ms();
            prop_assert!(0 <= late && late <= latest.num_milliseconds(), "{:?}", told);
        }
        prop_assert!(oracle.untold.iter().all(|since| *since <= latest), "{:?}", oracle.untold);
        prop_assert!(none_is_told_twice(&life), "{:?}", life.told);
        let milestones = life.told.iter().filter(|told| matches!(told.computed.found, Found::ComplianceMilestone { .. }));
        let of: Vec<&AutomationId> = milestones.map(|told| &told.computed.automation_id).collect();
        prop_assert_eq!(of.iter().collect::<BTreeSet<_>>().len(), of.len(), "a milestone is reached once for ever");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8, ..ProptestConfig::default() })]

    #[test]
    fn the_same_evaluation_every_minute_tells_the_same_episodes(
        history in history(5).prop_map(History::without_an_end_to_automations)
    ) {
        let [mut swept, mut watched] = [history.life(Life::swept), history.life(Life::watched_every_minute)];
        for life in [&mut swept, &mut watched] {
            history.run(life, |_, _, _| {});
        }
        let end = history.end + PERIOD * -2 + PASS * -1;
        let told = |life: &Life| {
            let told = life.told.iter().map(|told| &told.computed).filter(|computed| computed.at < end);
            sorted(told.map(|computed| (computed.automation_id.clone(), computed.episode.clone())).collect())
        };
        prop_assert_eq!(told(&swept), told(&watched));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    #[test]
    fn states_that_are_stored_and_read_back_whenever_they_change_tell_the_same(history in history(21)) {
        let [mut kept, mut stored] = [history.life(Life::swept), history.life(Life::swept)];
        stored.is_stored = true;
        for life in [&mut kept, &mut stored] {
            history.run(life, |_, _, _| {});
        }
        prop_assert_eq!((&kept.told, &kept.judged, &kept.states), (&stored.told, &stored.judged, &stored.states));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn sweeps_that_fail_for_days_lose_no_inactivity_and_tell_nothing_twice_or_that_is_over(
        history in history(21), asleep in (0i64..20_000, 0i64..10_000)
    ) {
        let mut life = history.life(Life::swept);
        let from = history.start + TimeDelta::minutes(asleep.0);
        life.asleep = Some((from, from + TimeDelta::minutes(asleep.1)));
        history.run(&mut life, |_, _, _| {});
        prop_assert!(none_is_told_twice(&life), "{:?}", life.told);
        let mut inactive = Vec::new();
        for told in &life.told {
            let Computed { automation_id, at, found, threshold, .. } = &told.computed;
            let threshold = threshold.map_or(0.0, |threshold| threshold.0);
            prop_assert!(*at <= told.found_at);
            match found {
                Found::ComplianceDrop { compliance_pct } => prop_assert!(f64::from(*compliance_pct) < threshold),
                Found::ComplianceMilestone { compliance_pct } => prop_assert!(f64::from(*compliance_pct) >= threshold),
                Found::PhaseEligible { .. } => {}
                _ => inactive.push((automation_id.clone(), *at)),
            }
        }
        let oracle = minute_by_minute(&history, &life.judged);
        let settled = history.settled_until();
        let end = settled.min(minute_of(from));
        prop_assert_eq!(before(end, &life.episodes()), before(end, &oracle.told));
        prop_assume!(from + TimeDelta::minutes(asleep.1) < settled);
        let unedited = |slot: &usize| history.edits().all(|(edited, _)| edited != *slot);
        let is_inactivity = |slot: &usize| {
            matches!(history.rules[*slot], Trigger::CheckInInactivity { .. } | Trigger::DailyLogInactivity { .. })
        };
        let own = (0..history.rules.len()).filter(|slot| is_inactivity(slot) && unedited(slot));
        let own: BTreeSet<String> = own.map(|slot| format!("r{slot}")).collect();
        let judged = |told: &[(AutomationId, Timestamp)]| {
            let told = before(settled, told);
            told.into_iter().filter(|(id, _)| own.contains(id.as_str())).collect::<Vec<_>>()
        };
        prop_assert_eq!(judged(&inactive), judged(&oracle.told));
    }
}
