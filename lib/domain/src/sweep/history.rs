//! Random histories: sweeps of due clients emit exactly what sweeps of everybody emit.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::life::Life;
use super::*;
use oracle::Oracle;
use random::{History, Op, history};

mod oracle;
mod random;

fn lived(history: &History, swept: impl Fn(Facts, Vec<Rule>, Timestamp) -> Life) -> Life {
    let mut life = history.life(swept);
    history.run(&mut life, |_, _, _| {});
    life
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, ..ProptestConfig::default() })]

    #[test]
    fn sweeps_of_due_clients_emit_exactly_what_sweeps_of_everybody_emit(history in history(21)) {
        let (due, all) = (lived(&history, Life::swept), lived(&history, Life::evaluated_by_every_sweep));
        prop_assert_eq!(&due.emitted, &all.emitted);
        prop_assert!(due.evaluated.iter().all(|at| all.evaluated.contains(at)));
    }

    #[test]
    fn sweeps_emit_exactly_what_the_oracle_emits(history in history(21)) {
        let mut life = history.life(Life::swept);
        let mut oracle = Oracle::new(history.start);
        history.run(&mut life, |life, at, op| {
            oracle.sweeps_until(life, at);
            match op {
                Some(Op::BackfilledDoses(_) | Op::HandOver(_)) => oracle.silent = true,
                Some(Op::Active(true)) if !life.is_active => oracle.silent = true,
                _ => {}
            }
        });
        let emitted: Vec<_> =
            life.emitted.iter().map(|emitted| (emitted.swept_at, emitted.computed.automation_id.clone())).collect();
        prop_assert_eq!(emitted, oracle.emitted);
    }

    #[test]
    fn no_event_is_emitted_twice_or_dated_after_its_sweep(history in history(21)) {
        let life = lived(&history, Life::swept);
        let episodes = life.emitted.iter().map(|emitted| (&emitted.computed.automation_id, &emitted.computed.episode));
        prop_assert_eq!(episodes.collect::<BTreeSet<_>>().len(), life.emitted.len(), "{:?}", life.emitted);
        prop_assert!(life.emitted.iter().all(|emitted| emitted.computed.at <= emitted.swept_at));
        let milestones = life.emitted.iter().map(|emitted| &emitted.computed);
        let milestones = milestones.filter(|computed| computed.event_type == ComputedType::ComplianceMilestone);
        let of: Vec<&AutomationId> = milestones.map(|computed| &computed.automation_id).collect();
        prop_assert_eq!(of.iter().collect::<BTreeSet<_>>().len(), of.len(), "a milestone is emitted once for ever");
        for (n, computed) in life.emitted.iter().map(|emitted| &emitted.computed).enumerate() {
            let is_drop = |computed: &&Computed| computed.event_type == ComputedType::ComplianceDrop;
            let earlier = life.emitted[..n].iter().map(|emitted| &emitted.computed);
            let mut earlier = earlier.filter(|other| other.automation_id == computed.automation_id).filter(is_drop);
            prop_assert!(!is_drop(&computed) || earlier.all(|other| computed.at >= other.at + TimeDelta::days(7)));
        }
    }
}
