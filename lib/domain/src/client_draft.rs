//! The bodies that create and change a client.

use serde_json::Value;

use crate::client::{
    MAX_CLIENT_EMAIL_CHARS, MAX_GOALS_CHARS, MAX_HEALTH_NOTES_CHARS, MAX_HEIGHT_IN, MAX_NAME_CHARS, MAX_PHONE_CHARS,
    MAX_WEIGHT_LBS, Measure, Profile,
};
use crate::email::Email;
use crate::external_id::{ExternalId, MAX_EXTERNAL_ID_CHARS};
use crate::fields::{Fields, Invalid};
use crate::openapi::{Body, Field};
use crate::phone::Phone;

/// Fields that would choose the tenant. No body may contain them.
const TENANT_FIELDS: [&str; 3] = ["coach_id", "owner_id", "team_id"];

const EXTERNAL_ID: &str = "external_id";

/// A client to be created.
#[derive(Debug, Clone, PartialEq)]
pub struct ClientDraft {
    pub email: Email,
    /// The profile, with the same e-mail address.
    pub profile: Profile,
    /// True if the service mails the temporary password and the intake link.
    pub send_welcome: bool,
}

impl ClientDraft {
    /// Parses the body of `POST /v1/clients`. Unknown fields are ignored; null counts as omitted.
    pub fn parse(body: &Value) -> Result<Self, Invalid> {
        let fields = Fields::body(body)?;
        fields.forbid(&TENANT_FIELDS)?;
        if !fields.has("email") {
            return Err(Invalid {
                field: Some("email".to_owned()),
                message: "Missing required fields: full_name and email. At least email has to be given.".to_owned(),
            });
        }
        let email = fields.required("email", MAX_CLIENT_EMAIL_CHARS, Email::parse)?;
        let full_name = fields.text("full_name", MAX_NAME_CHARS)?.unwrap_or(email.local_part()).to_owned();
        let profile = Profile {
            email: Some(email.clone()),
            full_name,
            phone: fields.text("phone", MAX_PHONE_CHARS)?.map(Phone::as_given),
            goals: fields.text("goals", MAX_GOALS_CHARS)?.map(str::to_owned),
            health_notes: fields.text("health_notes", MAX_HEALTH_NOTES_CHARS)?.map(str::to_owned),
            height_in: fields.positive_number("height_in", MAX_HEIGHT_IN)?.map(Measure),
            weight_lbs: fields.positive_number("weight_lbs", MAX_WEIGHT_LBS)?.map(Measure),
            external_id: ExternalId::field(fields, EXTERNAL_ID)?,
        };
        Ok(Self { email, profile, send_welcome: fields.boolean("send_welcome")?.unwrap_or(true) })
    }

    pub fn schema() -> Body {
        Body::new([
            (
                "email",
                Field::email(MAX_CLIENT_EMAIL_CHARS).required().about("The address with which the client signs in."),
            ),
            ("full_name", Field::text(MAX_NAME_CHARS).about("Default: the part of `email` before the `@`.")),
            (
                "phone",
                Field::text(MAX_PHONE_CHARS).about(
                    "Stored as given. Matched with CRM contacts as E.164; a number without a country code is read in \
                     the coach's country.",
                ),
            ),
            ("goals", Field::text(MAX_GOALS_CHARS).about("The client's goals, as free text.")),
            ("health_notes", Field::text(MAX_HEALTH_NOTES_CHARS).about("Notes on the client's health, as free text.")),
            ("height_in", Field::positive_number(MAX_HEIGHT_IN).about("Inches.")),
            ("weight_lbs", Field::positive_number(MAX_WEIGHT_LBS).about("Pounds.")),
            (
                EXTERNAL_ID,
                Field::visible_text(MAX_EXTERNAL_ID_CHARS)
                    .about("Your own id for the client. No two of your clients share one."),
            ),
            (
                "send_welcome",
                Field::boolean().default_value(true).about(
                    "True: the service mails the temporary password and the intake link. False: the answer has both, \
                     and you deliver them.",
                ),
            ),
        ])
        .forbidding(&TENANT_FIELDS)
    }
}

/// A change of a client through the API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientPatch {
    pub is_active: bool,
    /// `None`: the external id stays. `Some(None)`: it is removed.
    pub external_id: Option<Option<ExternalId>>,
}

impl ClientPatch {
    /// Parses the body of `PATCH /v1/clients/{clientId}`. Unknown fields are ignored.
    pub fn parse(body: &Value) -> Result<Self, Invalid> {
        let fields = Fields::body(body)?;
        fields.forbid(&TENANT_FIELDS)?;
        let is_active = fields.required_boolean("is_active")?;
        if fields.value(EXTERNAL_ID).is_some_and(|text| text == "") {
            return Err(Invalid::field(EXTERNAL_ID, "must not be empty; null removes it"));
        }
        let external_id = ExternalId::field(fields, EXTERNAL_ID)?;
        Ok(Self { is_active, external_id: fields.mentions(EXTERNAL_ID).then_some(external_id) })
    }

    pub fn schema() -> Body {
        Body::new([
            ("is_active", Field::boolean().required().about("Whether the client is on the active roster.")),
            (
                EXTERNAL_ID,
                Field::visible_text(MAX_EXTERNAL_ID_CHARS)
                    .about("Your own id for the client. Omitted: it stays. Null: it is removed."),
            ),
        ])
        .forbidding(&TENANT_FIELDS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn with(name: &str, value: Value) -> Result<ClientDraft, Invalid> {
        let mut body = json!({"email": "ada@example.com"});
        body[name] = value;
        ClientDraft::parse(&body)
    }

    #[test]
    fn an_empty_email_is_not_to_be_left_out() {
        let message = ClientDraft::parse(&json!({"email": ""})).unwrap_err().message;
        assert_eq!(message, "email must not be empty");
    }

    #[test]
    fn an_email_alone_is_enough_and_names_the_client_by_its_local_part() {
        let draft = ClientDraft::parse(&json!({"email": "Ada.L@example.com"})).unwrap();
        assert_eq!(draft.profile.full_name, "Ada.L");
        assert!(draft.send_welcome);
        assert!(with("send_welcome", Value::Null).unwrap().send_welcome, "null is the default");
    }

    #[test]
    fn an_external_id_stays_is_set_or_is_removed() {
        let patch = |body: Value| ClientPatch::parse(&body).unwrap().external_id;
        assert_eq!(patch(json!({"is_active": true})), None);
        assert_eq!(patch(json!({"is_active": true, "external_id": null})), Some(None));
        let set = Some(Some(ExternalId::unchecked(" emr-7 ")));
        assert_eq!(patch(json!({"is_active": true, "external_id": " emr-7 "})), set);
        let empty = ClientPatch::parse(&json!({"is_active": true, "external_id": ""})).unwrap_err();
        assert_eq!(empty.message, "external_id must not be empty; null removes it");
    }
}
