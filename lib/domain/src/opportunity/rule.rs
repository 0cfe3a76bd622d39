//! The changes of an opportunity that a caller may make.
//!
//! Only a payment wins an opportunity: a won stage cannot be chosen, and a won opportunity can change only its name. A
//! reason is only allowed with a lost stage.

use super::{Opportunity, OpportunityPatch, Place};
use crate::id::StageId;
use crate::pipeline::{Pipeline, StageKind};
use crate::time::Timestamp;

/// The reason for the refusal of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpportunityRefusal {
    /// The opportunity is in another pipeline.
    NotFound,
    StagePaymentControlled,
    StageUnknown,
    LostReasonRequired,
    LostReasonNotAllowed,
}

/// Applies a caller's change, in the pipeline that the caller works on. A value that is the same only updates its write
/// time.
pub fn apply(
    found: &Opportunity,
    pipeline: &Pipeline,
    patch: &OpportunityPatch,
    now: Timestamp,
) -> Result<Opportunity, OpportunityRefusal> {
    if found.place.pipeline_id != pipeline.pipeline_id {
        return Err(OpportunityRefusal::NotFound);
    }
    check(found, pipeline, patch)?;
    let at = found.write_time(now);
    let mut changed = found.clone();
    let (registers, before) = (&mut changed.registers, &found.registers);
    // Confirming the application's value is an update too: older facts no longer change the value.
    let mut confirms = false;
    if let Some(name) = &patch.name {
        confirms |= registers.name.set(&mut changed.name, name.clone(), at);
    }
    if let Some(value) = patch.value_cents {
        confirms |= registers.value.set(&mut changed.value_cents, value, at);
    }
    let place = |stage: &StageId| Place {
        pipeline_id: pipeline.pipeline_id.clone(),
        stage: stage.clone(),
        lost_reason: patch.lost_reason.clone(),
    };
    if let Some(stage) = &patch.stage {
        confirms |= registers.place.set(&mut changed.place, place(stage), at);
    } else if patch.lost_reason.is_some() {
        registers.stage_reason.set(&mut changed.stage_reason, Some(place(&found.place.stage)), at);
        confirms |= before.place.is_set_by_application() && before.stage_reason.set_at() <= before.place.set_at();
    }
    if confirms || changed.differs(found) {
        changed.updated_at = found.later(now);
    }
    Ok(changed)
}

/// Decides about the wanted stage and reason.
fn check(found: &Opportunity, pipeline: &Pipeline, patch: &OpportunityPatch) -> Result<(), OpportunityRefusal> {
    let status = found.status(Some(pipeline));
    let beyond_name = patch.value_cents.is_some() || patch.stage.is_some() || patch.lost_reason.is_some();
    if status == StageKind::Won && beyond_name {
        return Err(OpportunityRefusal::StagePaymentControlled);
    }
    let chosen = match &patch.stage {
        None => None,
        Some(stage) => Some(pipeline.kind_of(stage).ok_or(OpportunityRefusal::StageUnknown)?),
    };
    match (chosen.unwrap_or(status), &patch.lost_reason) {
        (StageKind::Won, _) if chosen.is_some() => Err(OpportunityRefusal::StagePaymentControlled),
        (StageKind::Lost, None) if chosen.is_some() => Err(OpportunityRefusal::LostReasonRequired),
        (StageKind::Open | StageKind::Won, Some(_)) => Err(OpportunityRefusal::LostReasonNotAllowed),
        (_, None) | (StageKind::Lost, Some(_)) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::OpportunityRegisters;
    use super::super::tests::{at, opportunity, pipeline, stage};
    use super::*;
    use crate::register::Register;

    /// Places before the change: the stage, and whether a reason is stored with it.
    const PLACES: [(&str, bool); 8] = [
        ("new", false),
        ("new", true),
        ("won", false),
        ("won", true),
        ("lost", false),
        ("lost", true),
        ("gone", false),
        ("gone", true),
    ];
    const CHOICES: [Option<&str>; 7] =
        [None, Some("new"), Some("warm"), Some("won"), Some("lost"), Some("cold"), Some("gone")];

    /// The rule, case by case. `Ok`: stage and reason after the change.
    fn expected(
        (current, reason_before): (&'static str, bool),
        chosen: Option<&'static str>,
        reason: bool,
        value: bool,
    ) -> Result<(&'static str, Option<&'static str>), OpportunityRefusal> {
        let before = reason_before.then_some("before");
        let is_lost = current == "lost" || (current == "gone" && reason_before);
        match (current, chosen, reason) {
            ("won", None, false) if !value => Ok(("won", before)),
            ("won", _, _) => Err(OpportunityRefusal::StagePaymentControlled),
            (_, Some("won"), _) => Err(OpportunityRefusal::StagePaymentControlled),
            (_, Some("gone"), _) => Err(OpportunityRefusal::StageUnknown),
            (_, Some("lost" | "cold"), false) => Err(OpportunityRefusal::LostReasonRequired),
            (_, Some(to @ ("lost" | "cold")), true) => Ok((to, Some("after"))),
            (_, Some(_), true) => Err(OpportunityRefusal::LostReasonNotAllowed),
            (_, Some(to), false) => Ok((to, None)),
            (_, None, true) if is_lost => Ok((current, Some("after"))),
            (_, None, true) => Err(OpportunityRefusal::LostReasonNotAllowed),
            (_, None, false) => Ok((current, before)),
        }
    }

    #[test]
    fn every_change_is_made_or_refused_by_the_rule() {
        let mut seen = 0;
        for place in PLACES {
            for chosen in CHOICES {
                for bits in 0..16 {
                    let [reason, name, value, same] = [1, 2, 4, 8].map(|bit| bits & bit != 0);
                    let mut found = opportunity(place.0);
                    found.place.lost_reason = place.1.then(|| "before".to_owned());
                    // The application has not written the record yet.
                    found.registers = OpportunityRegisters::whole(Register::by_api(at(0)));
                    let patch = OpportunityPatch {
                        // A value that is the same is refused like any other.
                        name: name.then(|| if same { found.name.clone() } else { "Renamed".to_owned() }),
                        value_cents: value.then_some(if same { found.value_cents } else { 7 }),
                        stage: chosen.map(stage),
                        lost_reason: reason.then(|| "after".to_owned()),
                    };
                    let result = apply(&found, &pipeline(), &patch, at(100));
                    let case = format!("{place:?} {patch:?}");
                    seen += 1;
                    let (stage_after, reason_after) = match (&result, expected(place, chosen, reason, value)) {
                        (Err(refusal), Err(expected)) => {
                            assert_eq!(*refusal, expected, "{case}");
                            continue;
                        }
                        (Ok(_), Ok(expected)) => expected,
                        (result, expected) => panic!("{case}: {result:?} and not {expected:?}"),
                    };
                    let changed = result.unwrap();
                    assert_eq!(changed.place.stage.as_str(), stage_after, "{case}");
                    assert_eq!(changed.lost_reason(), reason_after, "{case}");
                    assert_eq!(changed.name, patch.name.clone().unwrap_or(found.name.clone()), "{case}");
                    assert_eq!(changed.value_cents, patch.value_cents.unwrap_or(found.value_cents), "{case}");
                    let (before, after) = (found.registers, changed.registers);
                    let set = |is_set: bool, before| if is_set { Register::by_api(at(100)) } else { before };
                    assert_eq!(after.name, set(name, before.name), "{case}");
                    assert_eq!(after.value, set(value, before.value), "{case}");
                    assert_eq!(after.place, set(chosen.is_some(), before.place), "{case}");
                    assert_eq!(after.stage_reason, set(reason && chosen.is_none(), before.stage_reason), "{case}");
                    let differs = (&changed.name, changed.value_cents, &changed.place.stage, changed.lost_reason())
                        != (&found.name, found.value_cents, &found.place.stage, found.lost_reason());
                    assert_eq!(changed.updated_at, if differs { at(100) } else { found.updated_at }, "{case}");
                    assert_eq!((changed.contact_id, changed.created_at), (found.contact_id, found.created_at));
                }
            }
        }
        assert_eq!(seen, PLACES.len() * CHOICES.len() * 16);
    }

    #[test]
    fn confirming_the_applications_value_is_an_update_and_repeating_it_is_not() {
        let mut theirs = opportunity("new");
        theirs.registers = OpportunityRegisters::whole(Register::by_application(at(50).into()));
        let patch = OpportunityPatch {
            name: Some(theirs.name.clone()),
            value_cents: Some(theirs.value_cents),
            stage: Some(stage("new")),
            lost_reason: None,
        };
        let confirmed = apply(&theirs, &pipeline(), &patch, at(100)).unwrap();
        assert_eq!(confirmed.updated_at, at(100));
        let same = apply(&confirmed, &pipeline(), &patch, at(200)).unwrap();
        assert_eq!((same.updated_at, same.registers.name), (at(100), Register::by_api(at(200))));
    }

    #[test]
    fn a_change_after_a_fact_from_a_fast_clock_is_shown_at_its_own_time_and_counts_after_the_fact() {
        let mut found = opportunity("new");
        found.registers = OpportunityRegisters::whole(Register::by_application(at(3_600_000).into()));
        let patch = OpportunityPatch { name: Some("Renamed".to_owned()), ..OpportunityPatch::default() };
        let changed = apply(&found, &pipeline(), &patch, at(100)).unwrap();
        assert_eq!(changed.updated_at, at(100));
        assert_eq!(changed.registers.name, Register::by_api(at(3_600_001)));
        assert_eq!(changed.last_written_at(), at(3_600_001));
    }

    #[test]
    fn an_opportunity_of_another_pipeline_is_not_found() {
        for place in PLACES {
            let mut other = pipeline();
            other.pipeline_id = crate::id::PipelineId::parse("other").unwrap();
            for stage in CHOICES {
                let patch = OpportunityPatch {
                    name: Some("x".to_owned()),
                    stage: stage.map(super::super::tests::stage),
                    ..OpportunityPatch::default()
                };
                assert_eq!(apply(&opportunity(place.0), &other, &patch, at(100)), Err(OpportunityRefusal::NotFound));
            }
        }
    }

    #[test]
    fn a_change_has_a_later_time_than_the_previous_one_even_if_clocks_differ() {
        let patch = |name: &str| OpportunityPatch { name: Some(name.to_owned()), ..OpportunityPatch::default() };
        let found = opportunity("new");
        let early = apply(&found, &pipeline(), &patch("Early"), at(-500)).unwrap();
        assert_eq!(early.updated_at.ms(), found.updated_at.ms() + 1);
        let again = apply(&early, &pipeline(), &patch("Again"), at(-500)).unwrap();
        assert_eq!(again.registers.name, Register::by_api(again.updated_at));
        assert!(again.updated_at > early.updated_at);
    }
}
