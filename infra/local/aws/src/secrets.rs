//! Secrets Manager: `GetSecretValue` and `PutSecretValue` of the template's secrets. A generated value is kept until
//! `PutSecretValue` replaces it.

use runtime::random_bytes;
use rusqlite::OptionalExtension;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::account::arn;
use crate::answer::{Answer, ServiceError};
use crate::error::{SetupError, StoreError};
use crate::sqlite::Sqlite;

pub(crate) const SCHEMA: &str =
    "CREATE TABLE IF NOT EXISTS secrets (name TEXT PRIMARY KEY, value TEXT NOT NULL, version TEXT NOT NULL);";

/// The end of each ARN, which is random in AWS.
const ARN_SUFFIX: &str = "-local1";
const LETTERS_AND_DIGITS: &[u8; 62] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";

/// Secrets Manager.
pub struct Secrets {
    sqlite: Sqlite,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct GetSecretValue {
    secret_id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct PutSecretValue {
    secret_id: String,
    secret_string: String,
}

impl Secrets {
    pub(crate) fn open(sqlite: Sqlite) -> Self {
        Self { sqlite }
    }

    /// Returns the ARN of a secret by its name: its logical id. An ARN is returned unchanged.
    pub fn arn(name: &str) -> String {
        if name.starts_with("arn:") {
            name.to_owned()
        } else {
            arn("secretsmanager", &format!("secret:{name}{ARN_SUFFIX}"))
        }
    }

    /// Creates the secret from the resolved `Properties` of an `AWS::SecretsManager::Secret` unless it exists, and
    /// returns its ARN.
    pub async fn ensure(&self, logical_id: &str, properties: &Value) -> Result<String, SetupError> {
        let value = generate(&properties["GenerateSecretString"])
            .map_err(|reason| SetupError::new(format!("secret {logical_id}: {reason}")))?;
        const INSERT: &str = "INSERT INTO secrets (name, value, version) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING";
        let version = Uuid::new_v4().to_string();
        self.sqlite.run(|connection| connection.execute(INSERT, (logical_id, value, version))).await?;
        Ok(Self::arn(logical_id))
    }

    /// Handles one request of the JSON protocol.
    pub(crate) async fn request(&self, operation: &str, body: &[u8]) -> Result<Answer, ServiceError> {
        let error = |shape: &str, message: String| ServiceError::json_1_1(400, shape, message);
        let malformed = |reason: serde_json::Error| error("SerializationException", reason.to_string());
        let not_found =
            || error("ResourceNotFoundException", "Secrets Manager can't find the specified secret.".to_owned());
        match operation {
            "GetSecretValue" => {
                let GetSecretValue { secret_id } = serde_json::from_slice(body).map_err(malformed)?;
                let (value, version) = self.read(name_of(&secret_id)).await?.ok_or_else(not_found)?;
                let mut answer = described(name_of(&secret_id), &version);
                answer["SecretString"] = value.into();
                Ok(Answer::json_1_1(&answer))
            }
            "PutSecretValue" => {
                let PutSecretValue { secret_id, secret_string } = serde_json::from_slice(body).map_err(malformed)?;
                let (name, version) = (name_of(&secret_id), Uuid::new_v4().to_string());
                match self.replace(name, secret_string, &version).await? {
                    0 => Err(not_found()),
                    _ => Ok(Answer::json_1_1(&described(name, &version))),
                }
            }
            other => {
                let message =
                    format!("The local stack's Secrets Manager has GetSecretValue and PutSecretValue, not {other}.");
                Err(error("UnknownOperationException", message))
            }
        }
    }

    /// Replaces a value and returns the number of secrets of that name.
    async fn replace(&self, name: &str, value: String, version: &str) -> Result<usize, StoreError> {
        const REPLACE: &str = "UPDATE secrets SET value = ?2, version = ?3 WHERE name = ?1";
        self.sqlite.run(|connection| connection.execute(REPLACE, (name, value, version))).await
    }

    /// Reads a value and its version.
    async fn read(&self, name: &str) -> Result<Option<(String, String)>, StoreError> {
        const READ: &str = "SELECT value, version FROM secrets WHERE name = ?1";
        let read = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?));
        self.sqlite.run(|connection| connection.query_row(READ, [name], read).optional()).await
    }
}

/// Returns the name of a secret that is given by its name or ARN.
fn name_of(secret_id: &str) -> &str {
    let name = secret_id.rsplit(':').next().unwrap_or(secret_id);
    name.strip_suffix(ARN_SUFFIX).unwrap_or(name)
}

fn described(name: &str, version: &str) -> Value {
    json!({ "ARN": Secrets::arn(name), "Name": name, "VersionId": version, "VersionStages": ["AWSCURRENT"] })
}

/// Generates a value by `GenerateSecretString`: a template with a member of random letters and digits.
fn generate(properties: &Value) -> Result<String, String> {
    #[derive(Deserialize)]
    #[serde(rename_all = "PascalCase", deny_unknown_fields)]
    struct GenerateSecretString {
        secret_string_template: String,
        generate_string_key: String,
        password_length: usize,
        exclude_punctuation: bool,
    }
    let wanted = GenerateSecretString::deserialize(properties).map_err(|error| error.to_string())?;
    if !wanted.exclude_punctuation {
        return Err("the local stack generates no punctuation".to_owned());
    }
    let mut value: Map<String, Value> =
        serde_json::from_str(&wanted.secret_string_template).map_err(|error| error.to_string())?;
    value.insert(wanted.generate_string_key, random_text(wanted.password_length).into());
    Ok(Value::Object(value).to_string())
}

/// Generates a uniformly random text. Bytes beyond the largest multiple of the alphabet are rejected to avoid bias.
fn random_text(length: usize) -> String {
    let usable = 256 - 256 % LETTERS_AND_DIGITS.len();
    let mut text = String::with_capacity(length);
    while text.len() < length {
        let fitting = random_bytes::<64>().into_iter().map(usize::from).filter(|byte| *byte < usable);
        let letters = fitting.map(|byte| char::from(LETTERS_AND_DIGITS[byte % LETTERS_AND_DIGITS.len()]));
        text.extend(letters.take(length - text.len()));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_generated_secret_fills_the_template_in() {
        let properties = json!({
            "SecretStringTemplate": r#"{"current": "1"}"#, "GenerateStringKey": "1", "PasswordLength": 64, "ExcludePunctuation": true,
        });
        let value: Value = serde_json::from_str(&generate(&properties).unwrap()).unwrap();
        assert_eq!(value["current"], "1");
        let password = value["1"].as_str().unwrap();
        assert!(password.len() == 64 && password.chars().all(|c| c.is_ascii_alphanumeric()), "{password}");
        assert_ne!(generate(&properties), generate(&properties));
    }

    #[test]
    fn an_unsupported_secret_is_refused() {
        assert!(generate(&json!({ "ExcludeCharacters": "abc" })).is_err());
        assert!(generate(&json!({ "GenerateStringKey": "1" })).is_err());
    }
}
