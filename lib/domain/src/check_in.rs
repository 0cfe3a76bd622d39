//! The part of a check-in that the service stores: when it was submitted and reviewed. Never its answers, never a
//! score.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::fact_values::numbers;
use crate::id::{CheckInId, ClientId};
use crate::time::Timestamp;

/// A check-in in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct CheckIn {
    /// Identifies the check-in. It is the same as `check_in.id` in events.
    pub id: CheckInId,
    /// When the client submitted the check-in.
    pub submitted_at: Timestamp,
    /// True if the coach has reviewed the check-in.
    pub reviewed: bool,
    /// When the coach reviewed the check-in. Null until then.
    #[schema(required)]
    pub reviewed_at: Option<Timestamp>,
}

/// A client's check-ins, newest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct CheckInList {
    /// The client who submitted the check-ins.
    pub client_id: ClientId,
    /// Number of items in this answer.
    pub count: usize,
    /// The latest check-ins, newest first.
    pub check_ins: Vec<CheckIn>,
}

impl CheckInList {
    /// Builds the answer with these check-ins, which are in order.
    pub fn new(client_id: ClientId, check_ins: Vec<CheckIn>) -> Self {
        Self { client_id, count: check_ins.len(), check_ins }
    }
}

/// A check-in with its scores and grades, which are evaluated at ingest and dropped.
#[derive(Clone, PartialEq, Deserialize)]
pub struct CheckInSubmitted {
    #[serde(rename = "check_in_id")]
    pub check_in: CheckInId,
    pub submitted_at: Timestamp,
    /// By question.
    #[serde(deserialize_with = "numbers")]
    pub scores: BTreeMap<String, f64>,
    /// By wellness system. Higher is better.
    #[serde(deserialize_with = "numbers")]
    pub grades: BTreeMap<String, f64>,
}
crate::discreet! { CheckInSubmitted }

/// Wellness systems whose grades are kept.
const MAX_SYSTEMS: usize = 500;

/// The latest grade of each wellness system, to compare the next check-in with. Higher is better.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Grades(BTreeMap<String, Grade>);

#[derive(Clone, PartialEq, Serialize, Deserialize)]
struct Grade {
    grade: f64,
    check_in_id: CheckInId,
    submitted_at: Timestamp,
    /// The first time that the application gave, if it was corrected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    first_submitted_at: Option<Timestamp>,
    /// The time of the check-in that the grade was compared with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    previous_at: Option<Timestamp>,
    /// True if the grade came with a backfill: its drop is never emitted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    silent: bool,
}
crate::discreet! { Grade }

/// The grade drops of an arriving check-in, and of later check-ins that arrived before it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GradeDrops {
    pub here: DroppedSystems,
    pub later: BTreeMap<CheckInId, LaterDrop>,
}

/// A stored check-in that was submitted later than the arriving check-in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaterDrop {
    /// When it was submitted.
    pub times: SubmissionTimes,
    pub systems: DroppedSystems,
}

/// The submission times of a check-in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SubmissionTimes {
    pub submitted_at: Timestamp,
    /// The first time that the application gave. The ids of the check-in's events derive from it, so that a correction
    /// emits nothing again.
    pub first_submitted_at: Timestamp,
}

impl SubmissionTimes {
    /// Returns the times of a check-in that was never corrected.
    pub fn at(submitted_at: Timestamp) -> Self {
        Self { submitted_at, first_submitted_at: submitted_at }
    }
}

/// The wellness systems whose grade dropped with a check-in. For evaluation only: never stored, emitted or logged.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct DroppedSystems(BTreeSet<String>);
crate::discreet! { DroppedSystems }

impl DroppedSystems {
    pub fn any(&self) -> bool {
        !self.0.is_empty()
    }

    pub fn includes(&self, system: &str) -> bool {
        self.0.contains(system)
    }
}

impl Grade {
    fn times(&self) -> SubmissionTimes {
        let first_submitted_at = self.first_submitted_at.unwrap_or(self.submitted_at);
        SubmissionTimes { submitted_at: self.submitted_at, first_submitted_at }
    }
}

impl Grades {
    /// Applies a check-in's grades and returns the drops. A system with a grade of a later check-in keeps it; that
    /// grade dropped if it is lower and no check-in between the two is known. A repeated check-in is not compared with
    /// itself. A grade of a backfill emits no drop when an earlier check-in arrives.
    pub fn apply(
        &mut self,
        check_in: &CheckInId,
        times: SubmissionTimes,
        grades: &BTreeMap<String, f64>,
        is_backfill: bool,
    ) -> GradeDrops {
        let mut drops = GradeDrops::default();
        let SubmissionTimes { submitted_at, first_submitted_at: first } = times;
        let first = Some(first).filter(|first| *first != submitted_at);
        for (system, grade) in grades {
            let (mut previous_at, mut silent) = (None, is_backfill);
            match self.0.get_mut(system) {
                Some(latest) if latest.submitted_at > submitted_at => {
                    if latest.check_in_id != *check_in && latest.previous_at < Some(submitted_at) {
                        latest.previous_at = Some(submitted_at);
                        if latest.grade < *grade && !latest.silent {
                            let new = || LaterDrop { times: latest.times(), systems: DroppedSystems::default() };
                            let later = drops.later.entry(latest.check_in_id.clone()).or_insert_with(new);
                            later.systems.0.insert(system.clone());
                        }
                    }
                    continue;
                }
                Some(latest) if latest.check_in_id == *check_in => {
                    (previous_at, silent) = (latest.previous_at, latest.silent);
                }
                Some(latest) => {
                    previous_at = Some(latest.submitted_at);
                    if *grade < latest.grade {
                        drops.here.0.insert(system.clone());
                    }
                }
                None => {}
            }
            let (check_in_id, first_submitted_at) = (check_in.clone(), first);
            let grade = Grade { grade: *grade, check_in_id, submitted_at, first_submitted_at, previous_at, silent };
            self.0.insert(system.clone(), grade);
        }
        self.drop_oldest();
        drops
    }

    /// Drops the oldest grades: all grades are one item, whose size is limited.
    fn drop_oldest(&mut self) {
        while self.0.len() > MAX_SYSTEMS {
            let oldest = self.0.iter().min_by_key(|(_, grade)| grade.submitted_at).map(|(system, _)| system.clone());
            oldest.map(|system| self.0.remove(&system));
        }
    }

    /// Removes the grades of a deleted check-in.
    pub fn forget(&mut self, check_in: &CheckInId) {
        self.0.retain(|_, grade| grade.check_in_id != *check_in);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> CheckInId {
        CheckInId::parse(text).unwrap()
    }

    /// Applies a check-in of a day, of a backfill or not.
    fn apply_as(latest: &mut Grades, check_in: &str, day: i64, grades: &[(&str, f64)], backfill: bool) -> GradeDrops {
        let grades = grades.iter().map(|(system, grade)| ((*system).to_owned(), *grade)).collect();
        let times = SubmissionTimes::at(Timestamp::from_ms(day * 86_400_000));
        latest.apply(&id(check_in), times, &grades, backfill)
    }

    fn apply(latest: &mut Grades, check_in: &str, day: i64, grades: &[(&str, f64)]) -> GradeDrops {
        apply_as(latest, check_in, day, grades, false)
    }

    #[test]
    fn a_grade_falls_against_the_latest_of_its_own_system() {
        let mut latest = Grades::default();
        let mut fell = |check_in: &str, day: i64, grades: &[(&str, f64)]| {
            let drops = apply(&mut latest, check_in, day, grades);
            assert!(drops.later.is_empty());
            drops.here.0.into_iter().collect::<Vec<_>>()
        };
        assert!(fell("a", 1, &[("sleep", 4.0), ("gut", 2.0)]).is_empty());
        assert!(fell("b", 2, &[("sleep", 4.0), ("mind", 1.0)]).is_empty(), "equal, and new, is no fall");
        assert_eq!(fell("c", 3, &[("gut", 1.5), ("mind", 2.0)]), ["gut"], "compared across check-ins that skipped it");
        assert!(fell("c", 3, &[("gut", 1.0)]).is_empty(), "not compared with itself");
        assert!(fell("late", 1, &[("gut", 0.5)]).is_empty(), "older than the latest");
        assert_eq!(fell("d", 4, &[("gut", 0.9), ("sleep", 3.9), ("mind", 1.5)]), ["gut", "mind", "sleep"]);
    }

    #[test]
    fn a_late_check_in_reveals_later_drops_unless_one_between_is_known() {
        let mut latest = Grades::default();
        let mut fell = |check_in: &str, day: i64, gut: f64| {
            let drops = apply(&mut latest, check_in, day, &[("gut", gut)]);
            assert!(!drops.here.any(), "nothing that is older is known");
            let later = drops.later.into_iter();
            let later = later.map(|(id, later)| (id.to_string(), later.systems.includes("gut")));
            later.collect::<Vec<_>>()
        };
        assert!(fell("third", 3, 4.0).is_empty());
        assert!(fell("zeroth", 0, 4.0).is_empty(), "equal is no fall");
        assert_eq!(fell("first", 1, 5.0), [("third".to_owned(), true)]);
        assert!(fell("another", 0, 9.0).is_empty(), "the first comes between");
        assert_eq!(fell("second", 2, 4.5), [("third".to_owned(), true)], "emitted under the same id");
    }

    #[test]
    fn a_late_check_in_reveals_no_drop_of_a_backfill() {
        for (first, again, is_emitted) in [(true, false, false), (false, true, true)] {
            let mut latest = Grades::default();
            // A repetition does not lift the silence of a backfill.
            for backfill in [first, again] {
                apply_as(&mut latest, "second", 2, &[("gut", 4.0)], backfill);
            }
            let drops = apply(&mut latest, "first", 1, &[("gut", 5.0)]);
            assert_eq!(!drops.later.is_empty(), is_emitted, "a backfill at first: {first}");
            assert!(apply(&mut latest, "third", 3, &[("gut", 3.0)]).here.any(), "and compared with");
        }
    }

    #[test]
    fn the_oldest_grades_are_dropped_beyond_the_limit_of_systems() {
        let mut latest = Grades::default();
        let many: Vec<String> = (0..MAX_SYSTEMS).map(|number| format!("system-{number}")).collect();
        let many: Vec<(&str, f64)> = many.iter().map(|system| (system.as_str(), 3.0)).collect();
        apply(&mut latest, "a", 1, &[("sleep", 4.0), ("gut", 4.0)]);
        apply(&mut latest, "b", 2, &many[1..]);
        apply(&mut latest, "c", 3, &[("gut", 4.0)]);
        assert_eq!(latest.0.len(), MAX_SYSTEMS);
        let systems = apply(&mut latest, "d", 4, &[("sleep", 1.0), ("gut", 1.0), ("system-7", 1.0)]).here;
        assert!(!systems.includes("sleep") && systems.includes("gut") && systems.includes("system-7"));
    }

    #[test]
    fn a_deleted_check_in_is_nothing_to_compare_with() {
        let mut latest = Grades::default();
        apply(&mut latest, "a", 1, &[("gut", 2.0), ("sleep", 4.0)]);
        apply(&mut latest, "b", 2, &[("gut", 1.0)]);
        latest.forget(&id("b"));
        assert!(!apply(&mut latest, "c", 3, &[("gut", 0.0)]).here.any());
        let systems = apply(&mut latest, "d", 4, &[("sleep", 3.9)]).here;
        assert!(systems.any() && systems.includes("sleep") && !systems.includes("gut"));
        assert_eq!(format!("{systems:?}"), "DroppedSystems(..)");
    }
}
