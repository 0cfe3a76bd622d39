//! Facts that an integrator sends in the place of the application.

use chrono::TimeDelta;
use serde::Serialize;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::fact::Fact;
use crate::fields::{Fields, Invalid};
use crate::id::{CoachId, FactId};
use crate::openapi::{Body, Field};
use crate::time::Timestamp;

/// Most facts of a request.
pub const MAX_FACTS: usize = 20;
/// Most facts of a workspace in a UTC day.
pub const FACTS_PER_DAY: u32 = 1_000;

/// Time by which an integrator's clock may be fast.
const CLOCK_SKEW: TimeDelta = TimeDelta::minutes(1);

/// Facts about workspaces and teams, which are not the integrator's to send.
const EXCLUDED: [&str; 2] = ["workspace.saved", "team.saved"];

/// The body of `POST /v1/test/facts`.
#[derive(Debug, Clone, PartialEq)]
pub struct FactBatch {
    /// In the order in which they are stored.
    pub facts: Vec<FactInput>,
}

/// A fact as it was sent.
#[derive(Debug, Clone, PartialEq)]
pub struct FactInput {
    detail_type: String,
    detail: Map<String, Value>,
}

/// A fact to store.
#[derive(Debug)]
pub struct SandboxFact {
    /// The fact's id as the integrator knows it.
    pub id: String,
    pub detail_type: String,
    /// The detail with everything that was filled in.
    pub detail: Value,
    /// The fact, or the reason of its refusal.
    pub fact: Result<Fact, String>,
}

crate::named! {
    /// The result of storing a fact.
    StoreResult {
        /// The fact counts.
        Stored = "stored",
        /// The fact was stored before, or what is stored is newer.
        Unchanged = "unchanged",
        /// The fact has no effect.
        Refused = "refused",
    }
}

/// The result of one fact.
#[derive(Debug, Clone, Serialize, utoipa::ToSchema)]
pub struct FactResult {
    /// The fact's id, as it was given or filled in.
    pub id: String,
    pub result: StoreResult,
    /// The reason of a refusal. Null otherwise.
    #[schema(required)]
    pub reason: Option<String>,
}

/// The results of all facts, in their order.
#[derive(Debug, Clone, Serialize, utoipa::ToSchema)]
pub struct FactResults {
    /// One result for each fact.
    pub data: Vec<FactResult>,
}

impl FactBatch {
    /// Parses the body. The content of a fact is judged on its own, so that a wrong fact does not stop the others.
    pub fn parse(body: &Value) -> Result<Self, Invalid> {
        let fields = Fields::body(body)?;
        fields.only(&["facts"])?;
        let rule = || Invalid::field("facts", format_args!("must be an array of 1 to {MAX_FACTS} facts"));
        let facts = fields.value("facts").and_then(Value::as_array).ok_or_else(rule)?;
        if facts.is_empty() || facts.len() > MAX_FACTS {
            return Err(rule());
        }
        Ok(Self { facts: facts.iter().map(FactInput::parse).collect::<Result<_, _>>()? })
    }

    pub fn schema() -> Body {
        let fact = Body::new([
            ("type", Field::text(MAX_TYPE_CHARS).required().about("The fact's name, such as client.saved.")),
            ("detail", Field::any_object().required().about(DETAIL)),
        ]);
        let about = "The facts, in the order in which they are stored.";
        Body::new([("facts", Field::objects(fact.closed(), 1, MAX_FACTS).required().about(about))]).closed()
    }
}

const MAX_TYPE_CHARS: usize = 64;
const DETAIL: &str = "The fields of the fact. `id` and `occurred_at` may be left out; `coach_id` is filled in.";

impl FactInput {
    fn parse(fact: &Value) -> Result<Self, Invalid> {
        let of_facts = |rule: &str| Invalid::field("facts", rule);
        let fields = Fields::body(fact).map_err(|_| of_facts("must hold objects with type and detail"))?;
        if fields.only(&["type", "detail"]).is_err() {
            return Err(of_facts("must hold objects with type and detail, and no other field"));
        }
        let detail_type = fields.value("type").and_then(Value::as_str);
        let detail_type = detail_type
            .filter(|name| !name.is_empty() && !name.contains('\0') && name.chars().count() <= MAX_TYPE_CHARS);
        let detail = fields.value("detail").and_then(Value::as_object);
        match (detail_type, detail) {
            (None, _) => Err(of_facts("must hold objects whose type is the name of a fact")),
            (_, None) => Err(of_facts("must hold objects whose detail is an object")),
            (Some(detail_type), Some(detail)) => {
                Ok(Self { detail_type: detail_type.to_owned(), detail: detail.clone() })
            }
        }
    }

    /// Fills in what the integrator may leave out, and reads the fact for a coach. Its id counts in the workspace
    /// alone. `missing_id` is the id of a fact that was sent without one.
    pub fn of_coach(self, coach: &CoachId, missing_id: String, now: Timestamp) -> SandboxFact {
        let Self { detail_type, mut detail } = self;
        let has_coach = detail.contains_key("coach_id");
        for (name, value) in [("id", json!(missing_id)), ("occurred_at", json!(now))] {
            let given = detail.entry(name).or_insert(Value::Null);
            if given.is_null() {
                *given = value;
            }
        }
        let id = detail["id"].as_str().map_or_else(|| missing_id.clone(), str::to_owned);
        detail.insert("coach_id".to_owned(), json!(coach));
        let detail = Value::Object(detail);
        let fact = if EXCLUDED.contains(&detail_type.as_str()) {
            Err(format!("{detail_type} cannot be sent here; PATCH /v1/test/workspace changes the workspace"))
        } else if has_coach {
            Err("coach_id cannot be given; it is taken from the key".to_owned())
        } else {
            Fact::parse(&detail_type, &detail).map_err(|invalid| invalid.message)
        };
        let fact = fact.and_then(|fact| {
            // A record of the future would make every later one unchanged.
            let is_future = fact.occurred_at.timestamp() > now + CLOCK_SKEW;
            if is_future { Err("occurred_at must not be in the future".to_owned()) } else { Ok(fact) }
        });
        let fact = fact.map(|fact| Fact { id: id_within(coach, &fact.id), ..fact });
        SandboxFact { id, detail_type, detail, fact }
    }
}

/// The id of a workspace's fact among the facts of all workspaces.
fn id_within(coach: &CoachId, id: &FactId) -> FactId {
    let digest = hex::encode(Sha256::digest(id.as_str()));
    FactId::parse(&format!("{}{}", id_prefix(coach), &digest[..32])).expect("a prefix and digits make an id")
}

/// The beginning of the ids of a workspace's facts.
pub fn id_prefix(coach: &CoachId) -> String {
    let digest = hex::encode(Sha256::digest(coach.as_str()));
    format!("test:{}:", &digest[..32])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn coach(id: &str) -> CoachId {
        CoachId::parse(id).unwrap()
    }

    fn of(coach_id: &str, fact: Value) -> SandboxFact {
        let batch = FactBatch::parse(&json!({ "facts": [fact] })).unwrap();
        let input = batch.facts.into_iter().next().unwrap();
        input.of_coach(&coach(coach_id), "fact_1".to_owned(), Timestamp::from_ms(5))
    }

    #[test]
    fn a_fact_is_filled_in_and_its_id_counts_in_its_workspace_alone() {
        let log = json!({ "type": "daily_log.saved", "detail": { "client_id": "c", "date": "2026-01-02" } });
        let filled = of("ada", log.clone());
        let fact = filled.fact.unwrap();
        assert_eq!((filled.id.as_str(), fact.occurred_at.ms()), ("fact_1", 5));
        assert_ne!(of("eve", log.clone()).fact.unwrap().id, fact.id);
        assert_eq!(of("ada", log).fact.unwrap().id, fact.id);
        let given = json!({ "id": "f", "occurred_at": "1969-01-02T03:04:05Z", "client_id": "c", "date": "2026-01-02" });
        let given = of("ada", json!({ "type": "daily_log.saved", "detail": given }));
        assert_eq!(given.id, "f");
        assert!(given.fact.unwrap().occurred_at.timestamp() < Timestamp::from_ms(0));
    }

    #[test]
    fn a_fact_that_is_not_the_integrators_is_refused_with_a_reason() {
        for (fact, reason) in [
            (json!({ "type": "workspace.saved", "detail": {} }), "workspace.saved cannot be sent here"),
            (json!({ "type": "team.saved", "detail": {} }), "team.saved cannot be sent here"),
            (json!({ "type": "client.erased", "detail": { "client_id": "c", "coach_id": "ada" } }), "coach_id"),
            (json!({ "type": "client.exploded", "detail": {} }), "DetailType is not the name of a fact"),
            (json!({ "type": "client.erased", "detail": {} }), "client_id"),
            (json!({ "type": "client.erased", "detail": { "client_id": "c", "id": 7 } }), "id"),
            (
                json!({ "type": "client.erased", "detail": { "client_id": "c", "occurred_at": "2030-01-01T00:00:00Z" } }),
                "future",
            ),
        ] {
            let refused = of("ada", fact).fact.unwrap_err();
            assert!(refused.contains(reason), "{refused}");
        }
    }

    #[test]
    fn a_batch_of_another_form_is_refused_whole() {
        let fact = json!({ "type": "client.erased", "detail": {} });
        for bad in [
            json!({}),
            json!({ "facts": [] }),
            json!({ "facts": {} }),
            json!({ "facts": vec![fact.clone(); MAX_FACTS + 1] }),
            json!({ "facts": [null] }),
            json!({ "facts": [{ "type": "client.erased" }] }),
            json!({ "facts": [{ "type": "", "detail": {} }] }),
            json!({ "facts": [{ "type": "a\u{0}b", "detail": {} }] }),
            json!({ "facts": [{ "type": 7, "detail": {} }] }),
            json!({ "facts": [{ "type": "client.erased", "detail": {}, "coach_id": "ada" }] }),
        ] {
            assert_eq!(FactBatch::parse(&bad).unwrap_err().field.as_deref(), Some("facts"), "{bad}");
        }
        let whole = json!({ "facts": vec![fact; MAX_FACTS] });
        assert_eq!(FactBatch::parse(&whole).unwrap().facts.len(), MAX_FACTS);
    }
}
