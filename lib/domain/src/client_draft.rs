//! The bodies that create and change a client.

use serde_json::Value;

use crate::client::{
    MAX_CLIENT_EMAIL_CHARS, MAX_EXTERNAL_ID_CHARS, MAX_GOALS_CHARS, MAX_HEALTH_NOTES_CHARS, MAX_HEIGHT_IN,
    MAX_NAME_CHARS, MAX_PHONE_CHARS, MAX_WEIGHT_LBS, Measure, Profile,
};
use crate::email::Email;
use crate::fields::{Fields, Invalid};
use crate::openapi::{Body, Field};
use crate::phone::Phone;

/// Fields that would choose the tenant. No body may contain them.
const TENANT_FIELDS: [&str; 3] = ["coach_id", "owner_id", "team_id"];

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
            external_id: fields.text("external_id", MAX_EXTERNAL_ID_CHARS)?.map(str::to_owned),
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
            ("goals", Field::text(MAX_GOALS_CHARS)),
            ("health_notes", Field::text(MAX_HEALTH_NOTES_CHARS)),
            ("height_in", Field::positive_number(MAX_HEIGHT_IN).about("Inches.")),
            ("weight_lbs", Field::positive_number(MAX_WEIGHT_LBS).about("Pounds.")),
            (
                "external_id",
                Field::text(MAX_EXTERNAL_ID_CHARS).about(
                    "Your own id for the client. The service passes it to the application. The API does not return it \
                     and cannot search by it.",
                ),
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

/// Parses the body of `PATCH /v1/clients/{clientId}`: the active flag.
pub fn parse_activation(body: &Value) -> Result<bool, Invalid> {
    let fields = Fields::body(body)?;
    fields.forbid(&TENANT_FIELDS)?;
    fields.required_boolean("is_active")
}

pub fn activation_schema() -> Body {
    let is_active = Field::boolean().required().about("Whether the client is on the active roster.");
    Body::new([("is_active", is_active)]).forbidding(&TENANT_FIELDS)
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
    fn a_body_never_chooses_the_tenant_and_unknown_fields_are_ignored() {
        for name in TENANT_FIELDS {
            assert_eq!(with(name, json!("x")).unwrap_err().field.as_deref(), Some(name));
            assert!(parse_activation(&json!({"is_active": true, name: null})).is_err());
        }
        assert!(with("favourite_colour", json!({"deep": [1]})).is_ok());
    }

    #[test]
    fn a_missing_email_names_both_fields() {
        for body in [json!({}), json!({"email": null, "full_name": "Ada"})] {
            let message = ClientDraft::parse(&body).unwrap_err().message;
            assert!(message.contains("full_name") && message.contains("email"), "{message}");
        }
        assert!(ClientDraft::parse(&json!([])).unwrap_err().message.contains("JSON object"));
    }
}
