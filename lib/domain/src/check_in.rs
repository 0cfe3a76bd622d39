//! Check-ins, as much of them as the service keeps: when they came and whether they were reviewed. Never answers, never a score.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::id::{CheckInId, ClientId};
use crate::time::Timestamp;

/// A check-in in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CheckIn {
    pub id: CheckInId,
    pub submitted_at: Timestamp,
    pub reviewed: bool,
    #[cfg_attr(feature = "openapi", schema(required))]
    pub reviewed_at: Option<Timestamp>,
}

/// A client's check-ins, newest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CheckInList {
    pub client_id: ClientId,
    /// How many are in this answer.
    pub count: usize,
    pub check_ins: Vec<CheckIn>,
}

impl CheckInList {
    /// The answer with these check-ins, which are in order.
    pub fn new(client_id: ClientId, check_ins: Vec<CheckIn>) -> Self {
        Self { client_id, count: check_ins.len(), check_ins }
    }
}

/// The latest grade of each wellness system, for the next check-in to be compared with. Higher is better.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Grades(BTreeMap<String, Grade>);

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Grade {
    grade: f64,
    check_in_id: CheckInId,
    submitted_at: Timestamp,
}

impl Grades {
    /// Takes over a check-in's grades and says whether one of them fell. A system that a later check-in has graded already keeps that
    /// grade, and a check-in that is told of once more is not compared with itself.
    pub fn take(&mut self, check_in: &CheckInId, submitted_at: Timestamp, grades: &BTreeMap<String, f64>) -> bool {
        let mut fell = false;
        for (system, grade) in grades {
            let latest = self.0.get(system);
            if latest.is_some_and(|latest| latest.submitted_at > submitted_at) {
                continue;
            }
            fell |= latest.is_some_and(|latest| latest.check_in_id != *check_in && *grade < latest.grade);
            self.0.insert(system.clone(), Grade { grade: *grade, check_in_id: check_in.clone(), submitted_at });
        }
        fell
    }

    /// Forgets what a check-in that is deleted had said.
    pub fn forget(&mut self, check_in: &CheckInId) {
        self.0.retain(|_, grade| grade.check_in_id != *check_in);
    }

    /// True when there is nothing to compare with.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> CheckInId {
        CheckInId::parse(text).unwrap()
    }

    fn grades(pairs: &[(&str, f64)]) -> BTreeMap<String, f64> {
        pairs.iter().map(|(system, grade)| ((*system).to_owned(), *grade)).collect()
    }

    #[test]
    fn a_grade_falls_against_the_latest_of_its_own_system() {
        let mut latest = Grades::default();
        let at = |days: i64| Timestamp::from_ms(days * 86_400_000);
        assert!(!latest.take(&id("a"), at(1), &grades(&[("sleep", 4.0), ("gut", 2.0)])));
        assert!(!latest.take(&id("b"), at(2), &grades(&[("sleep", 4.0), ("mind", 1.0)])), "equal, and new, is no fall");
        assert!(latest.take(&id("c"), at(3), &grades(&[("gut", 1.5)])), "compared across check-ins that skipped it");
        assert!(!latest.take(&id("c"), at(3), &grades(&[("gut", 1.0)])), "not compared with itself");
        assert!(!latest.take(&id("late"), at(1), &grades(&[("gut", 0.5)])), "older than the latest");
        latest.forget(&id("c"));
        assert!(
            !latest.take(&id("d"), at(4), &grades(&[("gut", 0.0)])),
            "a deleted check-in is nothing to compare with"
        );
        assert!(latest.take(&id("e"), at(5), &grades(&[("sleep", 3.9)])));
    }
}
