//! The order of writes to an opportunity, and its status.

use proptest::prelude::*;
use rstest::rstest;

use std::collections::BTreeSet;

use super::*;
use crate::id::CoachId;
use crate::pipeline::Stage;

pub(super) fn at(ms: i64) -> Timestamp {
    Timestamp::from_ms(1_800_000_000_000 + ms)
}

pub(super) fn stage(id: &str) -> StageId {
    StageId::parse(id).unwrap()
}

fn pipeline_id(id: &str) -> PipelineId {
    PipelineId::parse(id).unwrap()
}

fn id<T>(number: u128, make: fn(uuid::Uuid) -> T) -> T {
    make(uuid::Uuid::from_u128(number))
}

/// Stages `new` and `warm` are open, `lost` and `cold` are lost, `won` is won.
pub(super) fn pipeline() -> Pipeline {
    let stages = [
        ("new", StageKind::Open),
        ("warm", StageKind::Open),
        ("won", StageKind::Won),
        ("lost", StageKind::Lost),
        ("cold", StageKind::Lost),
    ];
    let stages = stages.map(|(id, kind)| Stage { id: stage(id), name: id.to_owned(), kind }).into();
    Pipeline { pipeline_id: pipeline_id("sales"), name: "Sales".to_owned(), stages, won_once: BTreeSet::new() }
}

/// An opportunity in that stage, written by the application at time 0.
pub(super) fn opportunity(in_stage: &str) -> Opportunity {
    Opportunity::apply_fact(None, &saved("Package", 5, in_stage, None), at(0).into(), at(0)).unwrap()
}

fn saved(name: &str, value_cents: u64, in_stage: &str, lost_reason: Option<&str>) -> OpportunitySaved {
    OpportunitySaved {
        opportunity_id: id(1, OpportunityId),
        coach_id: CoachId::parse("ada").unwrap(),
        contact_id: id(2, ContactId),
        name: name.to_owned(),
        value_cents,
        pipeline_id: pipeline_id("sales"),
        stage: stage(in_stage),
        lost_reason: lost_reason.map(str::to_owned),
    }
}

#[rstest]
#[case("new", None, StageKind::Open, None)]
#[case("new", Some("left over"), StageKind::Open, None)]
#[case("won", Some("left over"), StageKind::Won, None)]
#[case("lost", None, StageKind::Lost, None)]
#[case("lost", Some("price"), StageKind::Lost, Some("price"))]
#[case("gone", None, StageKind::Open, None)]
#[case("gone", Some("price"), StageKind::Lost, Some("price"))]
fn a_status_is_read_off_the_stage_and_else_off_the_reason(
    #[case] in_stage: &str,
    #[case] reason: Option<&str>,
    #[case] status: StageKind,
    #[case] shown: Option<&str>,
) {
    let found = Opportunity::apply_fact(None, &saved("n", 0, in_stage, reason), at(0).into(), at(0)).unwrap();
    let view = found.view(Some(&pipeline()));
    assert_eq!((view.status, view.lost_reason.as_deref()), (status, shown));
    // If the pipeline is unknown or another one, the stage has no meaning.
    let unplaced = if reason.is_some() { StageKind::Lost } else { StageKind::Open };
    let other = Pipeline { pipeline_id: pipeline_id("other"), ..pipeline() };
    for unknown in [None, Some(&other)] {
        let view = found.view(unknown);
        assert_eq!((view.status, view.lost_reason.as_deref()), (unplaced, reason));
    }
}

#[test]
fn a_new_opportunity_has_its_contacts_name_and_no_value() {
    let bare = OpportunityDraft { contact_id: id(2, ContactId), name: None, value_cents: None };
    let (pipeline, new) = (pipeline(), stage("new"));
    let made = Opportunity::create(id(1, OpportunityId), &bare, "Lee Lead", &pipeline, &new, at(9));
    assert_eq!((made.name.as_str(), made.value_cents, made.place.stage.as_str()), ("Lee Lead", 0, "new"));
    assert_eq!(made.status(Some(&pipeline)), StageKind::Open);
}

#[test]
fn an_older_record_changes_nothing_and_an_equally_old_one_applies() {
    let found = opportunity("new");
    let later = saved("Later", 6, "lost", Some("price"));
    assert_eq!(Opportunity::apply_fact(Some(&found), &later, at(-1).into(), at(-1)), None);
    let equal = Opportunity::apply_fact(Some(&found), &later, at(0).into(), at(0)).unwrap();
    assert_eq!((equal.name.as_str(), equal.lost_reason()), ("Later", Some("price")));
    let repeated = Opportunity::apply_fact(Some(&equal), &later, at(0).into(), at(0));
    assert_eq!(repeated, None, "a repeated fact changes nothing");
}

/// A change through the API.
#[derive(Debug, Clone)]
struct ApiChange {
    name: bool,
    value: bool,
    place: Option<(&'static str, bool)>,
    /// Used if no place is requested.
    reason: bool,
}

/// A write by the API or the application. A fact arrives that much later.
#[derive(Debug, Clone)]
enum Write {
    Application { stage: &'static str, reason: bool, arrives_after: i64, again_after: Option<i64> },
    Api(ApiChange),
}

fn write() -> impl Strategy<Value = Write> {
    let stages = prop::sample::select(vec!["new", "warm", "lost", "gone"]);
    let application = (stages, any::<bool>(), 0..400i64, prop::option::of(0..400i64)).prop_map(
        |(stage, reason, arrives_after, again_after)| Write::Application { stage, reason, arrives_after, again_after },
    );
    let place = prop::option::of(prop::sample::select(vec![("new", false), ("warm", false), ("lost", true)]));
    let api = (any::<bool>(), any::<bool>(), place, any::<bool>())
        .prop_map(|(name, value, place, reason)| Write::Api(ApiChange { name, value, place, reason }));
    prop_oneof![application, api]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]
    /// Every write has a time of its own. A write of the API arrives at once, a fact later, twice or in another order.
    #[test]
    fn each_field_has_its_latest_write_in_any_order_of_arrival(
        writes in prop::collection::vec(write(), 1..12),
        made_by_api in any::<bool>(),
    ) {
        let mut arrivals: Vec<(i64, usize)> = Vec::new();
        for (index, write) in writes.iter().enumerate() {
            let written_at = 10 * (index as i64 + 1);
            match write {
                Write::Api(_) => arrivals.push((written_at, index)),
                Write::Application { arrives_after, again_after, .. } => {
                    arrivals.push((written_at + arrives_after, index));
                    arrivals.extend(again_after.map(|after| (written_at + arrives_after + after, index)));
                }
            }
        }
        arrivals.sort_unstable();

        let draft = OpportunityDraft { contact_id: id(2, ContactId), name: None, value_cents: None };
        let made = Opportunity::create(id(1, OpportunityId), &draft, "made", &pipeline(), &stage("new"), at(0));
        let mut found = made_by_api.then_some(made);
        // Per field: the time and the value of the latest write.
        let (mut name, mut value) = ((0, "made".to_owned()), (0, 0));
        let mut place = (0, ("new", None));
        // A reason alone counts for the stage that it was given to.
        let mut reason_alone: Option<(i64, String, String)> = None;
        for (_, index) in arrivals {
            let written_at = 10 * (index as i64 + 1);
            let text = index.to_string();
            let reason = |given: bool| given.then(|| text.clone());
            match &writes[index] {
                Write::Application { stage: in_stage, reason: given, .. } => {
                    let whole = saved(&text, index as u64 + 1, in_stage, reason(*given).as_deref());
                    found = Opportunity::apply_fact(found.as_ref(), &whole, at(written_at).into(), at(written_at)).or(found);
                    name = name.max((written_at, text.clone()));
                    value = value.max((written_at, index as u64 + 1));
                    place = place.max((written_at, (in_stage, reason(*given))));
                }
                Write::Api(change) => {
                    // Before its creation, nobody can change the opportunity.
                    let Some(known) = &found else { continue };
                    let patch = OpportunityPatch {
                        name: change.name.then(|| text.clone()),
                        value_cents: change.value.then_some(index as u64 + 1),
                        stage: change.place.map(|(to, _)| stage(to)),
                        lost_reason: change.place.map_or_else(|| reason(change.reason), |(_, given)| reason(given)),
                    };
                    if change.place.is_none() && change.reason {
                        let is_lost = known.status(Some(&pipeline())) == StageKind::Lost;
                        prop_assert_eq!(apply(known, &pipeline(), &patch, at(written_at)).is_ok(), is_lost);
                        if !is_lost { continue }
                        reason_alone = Some((written_at, known.place.stage.as_str().to_owned(), text.clone()));
                    }
                    found = Some(apply(known, &pipeline(), &patch, at(written_at)).unwrap());
                    if change.name { name = name.max((written_at, text.clone())); }
                    if change.value { value = value.max((written_at, index as u64 + 1)); }
                    if let Some((to, given)) = change.place { place = place.max((written_at, (to, reason(given)))); }
                }
            }
        }
        let Some(found) = found else { return Ok(()) };
        prop_assert_eq!(&found.name, &name.1);
        prop_assert_eq!(found.value_cents, value.1);
        let (placed_at, (in_stage, mut reason)) = place;
        if let Some((_, _, text)) = reason_alone.filter(|alone| alone.0 > placed_at && alone.1 == in_stage) {
            reason = Some(text);
        }
        prop_assert_eq!((found.place.stage.as_str(), found.lost_reason()), (in_stage, reason.as_deref()));
        prop_assert!(found.updated_at >= found.created_at);
    }
}
