//! The bodies that create and change an opportunity.

use serde_json::Value;

use crate::fields::{Fields, Invalid};
use crate::id::{ContactId, StageId};
use crate::openapi::{Body, Field};

/// Most characters of the name that the API gives an opportunity.
pub const MAX_OPPORTUNITY_NAME_CHARS: usize = 200;
/// Highest value that the API gives an opportunity, in cents.
pub const MAX_VALUE_CENTS: u64 = 1_000_000_000;
/// Most characters of a reason that the API gives.
pub const MAX_LOST_REASON_CHARS: usize = 500;
/// Most characters of a stage's id in a request.
const MAX_STAGE_CHARS: usize = 100;
const STAGE_PATTERN: &str = "^[a-zA-Z0-9_-]{1,100}$";

/// An opportunity to create.
#[derive(Clone, PartialEq, Eq)]
pub struct OpportunityDraft {
    pub contact_id: ContactId,
    pub name: Option<String>,
    pub value_cents: Option<u64>,
}
crate::discreet! { OpportunityDraft }

/// A change of an opportunity. A field that is `None` stays unchanged.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct OpportunityPatch {
    pub name: Option<String>,
    pub value_cents: Option<u64>,
    pub stage: Option<StageId>,
    pub lost_reason: Option<String>,
}
crate::discreet! { OpportunityPatch }

impl OpportunityDraft {
    /// Parses the body of `POST /v1/crm/opportunities`.
    pub fn parse(body: &Value) -> Result<Self, Invalid> {
        let fields = Fields::strict(body, &["contactId", "name", "valueCents"])?;
        Ok(Self {
            contact_id: fields.required("contactId", usize::MAX, ContactId::parse)?,
            name: name(fields)?,
            value_cents: value(fields)?,
        })
    }

    pub fn schema() -> Body {
        let [name, value] = name_and_value_fields();
        let name = name.about("Default: the contact's name.");
        let value = value.default_value(0);
        Body::strict([
            ("contactId", Field::uuid().required().about("The contact of the opportunity.")),
            ("name", name),
            ("valueCents", value),
        ])
    }
}

impl OpportunityPatch {
    /// Parses the body of `PATCH /v1/crm/opportunities/{id}`.
    pub fn parse(body: &Value) -> Result<Self, Invalid> {
        const NAMES: [&str; 4] = ["name", "valueCents", "stage", "lostReason"];
        let fields = Fields::strict(body, &NAMES)?;
        if fields.names().next().is_none() {
            return Err(Invalid::whole(format!("The body must have at least one of {}.", NAMES.join(", "))));
        }
        Ok(Self {
            name: name(fields)?,
            value_cents: value(fields)?,
            stage: fields.parsed("stage", MAX_STAGE_CHARS, stage)?,
            lost_reason: fields.text("lostReason", MAX_LOST_REASON_CHARS)?.map(str::to_owned),
        })
    }

    pub fn schema() -> Body {
        let [name, value] = name_and_value_fields();
        let name = name.about("The new name, the only field that a won opportunity takes.");
        let stage = Field::formed(STAGE_PATTERN, MAX_STAGE_CHARS).about("An open or lost stage of the pipeline.");
        let reason = Field::text(MAX_LOST_REASON_CHARS).about(
            "Required with a lost stage, refused with an open stage. Without `stage`, it changes the reason of a lost \
             opportunity.",
        );
        Body::change([("name", name), ("valueCents", value), ("stage", stage), ("lostReason", reason)])
    }
}

fn name(fields: Fields<'_>) -> Result<Option<String>, Invalid> {
    Ok(fields.text("name", MAX_OPPORTUNITY_NAME_CHARS)?.map(str::to_owned))
}

fn value(fields: Fields<'_>) -> Result<Option<u64>, Invalid> {
    fields.whole_number("valueCents", MAX_VALUE_CENTS)
}

fn stage(text: &str) -> Result<StageId, &'static str> {
    const RULE: &str = "must be 1 to 100 characters of a-z, A-Z, 0-9, '_' and '-'";
    let formed = text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'));
    StageId::parse(text).ok().filter(|_| formed).ok_or(RULE)
}

fn name_and_value_fields() -> [Field; 2] {
    let value = Field::whole_number(MAX_VALUE_CENTS).about("The value of the opportunity, in cents.");
    [Field::text(MAX_OPPORTUNITY_NAME_CHARS), value]
}
