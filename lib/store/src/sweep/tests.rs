//! What is told of a client whose coach changed the programme or the time zone twice since it was judged.

use domain::automation::Automation;
use domain::id::AutomationId;
use domain::programme::ProgrammePhase;
use serde_json::json;

use super::*;
use crate::record::Doses;
use crate::watch::Changed;

/// On the tenth of June.
fn at(time: &str) -> Timestamp {
    Timestamp::parse(&format!("2026-06-10T{time}Z")).unwrap()
}

/// Judged last two minutes before that date, in its fifth day of a phase and on its second without a daily log.
fn observed() -> Observed {
    let watch = json!({
        "pk": "CLIENT#c1", "sk": "DOSES_WATCH", "coach_id": "ada", "created_at": "2026-01-01T00:00:00.000Z",
        "is_active": true, "last_daily_log_on": "2026-06-07",
        "phase": { "name": "Build", "started_on": "2026-06-05" }, "programme_id": "p",
        "states": { "at": "2026-06-09T23:58:00.000Z", "of": {} }, "sweep_shard": "0", "version": 1,
    });
    Observed { watch: serde_json::from_value(watch).unwrap(), doses: Doses::default() }
}

fn before<T: Clone + serde::Serialize>(former: &[(T, &str)]) -> Option<Before<T>> {
    let live: Vec<(T, &str, bool)> = former.iter().map(|(was, until)| (was.clone(), *until, false)).collect();
    changed(&live)
}

/// What something was, until when, and whether a backfill changed it.
fn changed<T: Clone + serde::Serialize>(former: &[(T, &str, bool)]) -> Option<Before<T>> {
    former.iter().fold(None, |before, (was, until, backfill)| {
        let changed = Changed { at: at(until), backfill: *backfill };
        Some(Before::with(before, was.clone(), changed, None))
    })
}

/// When the client came to match, as it is told at a quarter past midnight.
fn told(trigger: Trigger, zone: Tz, zone_before: Option<Before<Tz>>, programme: &StoredProgramme) -> Vec<Timestamp> {
    let (id, coach_id) = (AutomationId::parse("r").unwrap(), CoachId::parse("ada").unwrap());
    let automation =
        Automation { id, coach_id: coach_id.clone(), name: "R".to_owned(), active: true, trigger, steps: Vec::new() };
    let saved_at = Timestamp::from_ms(0);
    let rules = vec![Rule { automation, revision: saved_at, saved_at, former: Vec::new() }];
    let (as_of, programmes) = (at("00:15:00"), Mutex::default());
    let rulebook = Rulebook { coach_id, as_of, zone, zone_before, rules, programmes };
    rulebook.evaluate(&observed(), programme).told.into_iter().map(|told| told.at).collect()
}

#[test]
fn each_programme_of_a_burst_of_changes_is_judged_by_in_its_time() {
    let phase = |name: &str, min_days| ProgrammePhase { name: name.to_owned(), min_days, min_compliance_pct: None };
    let phases = |min_days| vec![phase("Build", min_days), phase("Keep", 0)];
    for (former, now, expected) in [
        ([(5, "00:03:10"), (30, "00:05:10")], 31, Some("00:00:00")),
        ([(30, "00:03:10"), (5, "00:05:10")], 30, Some("00:04:00")),
        ([(30, "00:03:10"), (31, "00:05:10")], 5, Some("00:06:00")),
        // Put right within the minute.
        ([(30, "00:03:10"), (5, "00:03:50")], 30, None),
    ] {
        let former = former.map(|(min_days, until)| (phases(min_days), until));
        let programme = StoredProgramme { phases: phases(now), saved_at: Default::default(), before: before(&former) };
        let told = told(Trigger::PhaseEligible, "UTC".parse().unwrap(), None, &programme);
        assert_eq!(told, Vec::from_iter(expected.map(at)), "{programme:?}");
    }
}

#[test]
fn what_a_client_comes_to_match_by_a_backfill_alone_is_not_told() {
    let phase = |name: &str, min_days| ProgrammePhase { name: name.to_owned(), min_days, min_compliance_pct: None };
    let phases = |min_days| vec![phase("Build", min_days), phase("Keep", 0)];
    let (live, backfill) = (false, true);
    for (former, now, expected) in [
        (vec![(30, "00:03:10", backfill)], 5, None),
        // Told by what was before it, and by what came after it, within its minute as well.
        (vec![(5, "00:03:10", backfill)], 30, Some("00:00:00")),
        (vec![(30, "00:03:10", backfill), (31, "00:05:10", live)], 5, Some("00:06:00")),
        (vec![(30, "00:03:10", backfill), (31, "00:03:20", live)], 5, Some("00:04:00")),
        (vec![(30, "00:03:10", live), (31, "00:03:20", backfill)], 5, None),
        (vec![(30, "00:03:10", backfill), (5, "00:03:20", live)], 4, None),
    ] {
        let former: Vec<_> =
            former.into_iter().map(|(days, until, backfill)| (phases(days), until, backfill)).collect();
        let programme = StoredProgramme { phases: phases(now), saved_at: Default::default(), before: changed(&former) };
        let told = told(Trigger::PhaseEligible, "UTC".parse().unwrap(), None, &programme);
        assert_eq!(told, Vec::from_iter(expected.map(at)), "{programme:?}");
    }
}

#[test]
fn each_time_zone_of_a_burst_of_changes_is_judged_by_in_its_time() {
    let zone = |name: &str| name.parse::<Tz>().unwrap();
    for (former, now, expected) in [
        ([("UTC", "00:03:10"), ("Pacific/Honolulu", "00:05:10")], "Pacific/Pago_Pago", "00:00:00"),
        ([("Pacific/Honolulu", "00:03:10"), ("Asia/Tokyo", "00:05:10")], "Pacific/Pago_Pago", "00:04:00"),
    ] {
        let former = former.map(|(name, until)| (zone(name), until));
        let no_log = Trigger::DailyLogInactivity { days: 2 };
        let told = told(no_log, zone(now), before(&former), &StoredProgramme::default());
        assert_eq!(told, [at(expected)], "{former:?}");
    }
}
