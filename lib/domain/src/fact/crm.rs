//! Facts about pipelines, the opportunities in them, and workflows.

use std::collections::BTreeSet;

use serde::de::Error;
use serde::{Deserialize, Deserializer};

use crate::fact_values::{name, nullable, objects};
use crate::id::{CoachId, PipelineId, StageId, WorkflowId};
use crate::pipeline::{MAX_STAGES, Pipeline, Stage};
use crate::time::Timestamp;
use crate::workflow::Workflow;

/// The whole record of a pipeline, as the application has it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct PipelineSaved {
    pub coach_id: CoachId,
    pub pipeline_id: PipelineId,
    #[serde(deserialize_with = "name")]
    name: String,
    #[serde(deserialize_with = "stages")]
    stages: Vec<Stage>,
}

/// The part of a workflow's record that the service uses.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct WorkflowSaved {
    pub coach_id: CoachId,
    workflow_id: WorkflowId,
    #[serde(deserialize_with = "name")]
    name: String,
    #[serde(deserialize_with = "name")]
    trigger: String,
    active: bool,
    #[serde(deserialize_with = "nullable")]
    activated_at: Option<Timestamp>,
    updated_at: Timestamp,
}

impl PipelineSaved {
    pub fn pipeline(&self) -> Pipeline {
        Pipeline {
            pipeline_id: self.pipeline_id.clone(),
            name: self.name.clone(),
            stages: self.stages.clone(),
            won_once: BTreeSet::new(),
        }
    }
}

impl WorkflowSaved {
    pub fn workflow(&self) -> Workflow {
        Workflow {
            id: self.workflow_id,
            name: self.name.clone(),
            trigger: self.trigger.clone(),
            is_active: self.active,
            activated_at: self.activated_at,
            updated_at: self.updated_at,
        }
    }
}

fn stages<'de, D: Deserializer<'de>>(input: D) -> Result<Vec<Stage>, D::Error> {
    let stages = objects::<MAX_STAGES, D, Stage>(input)?;
    let ids: BTreeSet<&StageId> = stages.iter().map(|stage| &stage.id).collect();
    if ids.len() < stages.len() {
        return Err(D::Error::custom("must not have two stages of one id"));
    }
    Ok(stages)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::fact::tests::assert_every_field_counts;
    use crate::fact::{Fact, known_fields};

    fn facts() -> [(&'static str, Value); 3] {
        let uuid = "0197a6a0-5c3b-7000-8000-2f1d3c4b5a69";
        let common = |mut detail: Value| {
            detail["id"] = json!("f1");
            detail["occurred_at"] = json!("2026-01-02T03:04:05Z");
            detail["coach_id"] = json!("ada");
            detail
        };
        let stage = |id: &str, kind: &str| json!({ "id": id, "name": "Stage", "kind": kind });
        let stages = [stage("new", "open"), stage("won", "won"), stage("lost", "lost")];
        [
            ("pipeline.saved", common(json!({ "pipeline_id": "p1", "name": "Sales", "stages": stages }))),
            (
                "opportunity.saved",
                common(json!({
                    "opportunity_id": uuid, "contact_id": uuid, "name": "Package", "value_cents": 9_007_199_254_740_991_u64,
                    "pipeline_id": "p1", "stage": "new", "lost_reason": null
                })),
            ),
            (
                "workflow.saved",
                common(json!({
                    "workflow_id": uuid, "name": "Nurture", "trigger": "new lead", "active": true,
                    "activated_at": null, "updated_at": "2026-01-02T03:04:05Z"
                })),
            ),
        ]
    }

    #[test]
    fn every_field_is_required_and_has_one_type() {
        for (name, whole) in facts() {
            assert_every_field_counts(name, &whole, &[json!(-1), json!({ "x": "y" }), json!(["x"])]);
        }
    }

    #[test]
    fn a_pipeline_has_at_most_200_stages_each_with_an_id_of_its_own() {
        let [(name, whole), ..] = facts();
        let with = |stages: Vec<Value>| {
            let mut fact = whole.clone();
            fact["stages"] = json!(stages);
            Fact::parse(name, &fact)
        };
        let stage = |number: usize| json!({ "id": format!("s{number}"), "name": "Stage", "kind": "open" });
        assert!(with((0..200).map(stage).collect()).is_ok());
        assert!(with(Vec::new()).is_ok());
        assert!(with(vec![json!({ "id": "s", "name": "", "kind": "open" })]).is_ok(), "names may be empty");
        assert_eq!(with((0..201).map(stage).collect()).unwrap_err().field.as_deref(), Some("stages"));
        assert_eq!(with(vec![stage(1), stage(2), stage(1)]).unwrap_err().field.as_deref(), Some("stages"));
        let odd = json!({ "id": "s", "name": "Stage", "kind": "parked" });
        assert_eq!(with(vec![odd]).unwrap_err().field.as_deref(), Some("stages.kind"));
    }

    #[test]
    fn a_value_is_a_whole_number_that_json_keeps() {
        let [_, (name, whole), _] = facts();
        for (value, is_read) in [
            ("0", true),
            ("1000000001", true),
            ("1.0", true),
            ("1.5", false),
            ("\"5\"", false),
            ("9007199254740992", false),
        ] {
            let mut fact = whole.clone();
            fact["value_cents"] = serde_json::from_str(value).unwrap();
            assert_eq!(Fact::parse(name, &fact).is_ok(), is_read, "{value}");
        }
    }

    #[test]
    fn the_content_of_a_workflow_is_dropped_unread() {
        let [_, _, (name, whole)] = facts();
        let mut fact = whole.clone();
        fact["steps"] = json!([{ "url": "https://secret.example", "authorization": "SECRET" }]);
        fact["credentials"] = json!("SECRET");
        assert_eq!(known_fields(name, &fact), whole);
    }
}
