//! Secrets Manager: `GetSecretValue` and `PutSecretValue` of the template's secrets. A generated value is kept until
//! `PutSecretValue` replaces it.

use runtime::random_bytes;
use rusqlite::OptionalExtension;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::access::arn;
use crate::answer::{Answer, ServiceError};
use crate::error::{SetupError, StoreError};
use crate::sqlite::Sqlite;
use crate::time::StackTime;

pub(crate) const SCHEMA: &str = "CREATE TABLE IF NOT EXISTS secrets (logical_id TEXT PRIMARY KEY, arn TEXT NOT NULL, \
    name TEXT NOT NULL, value TEXT NOT NULL, version TEXT NOT NULL, created_at INTEGER NOT NULL);";

const LETTERS_AND_DIGITS: &[u8; 62] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";

/// Secrets Manager.
pub struct Secrets {
    sqlite: Sqlite,
    time: StackTime,
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

struct StoredSecret {
    arn: String,
    name: String,
    value: String,
    version: String,
    created_at: i64,
}

impl Secrets {
    pub(crate) fn open(sqlite: Sqlite, time: StackTime) -> Self {
        Self { sqlite, time }
    }

    /// Returns the name of a secret of the template.
    pub fn name(logical_id: &str, properties: &Value) -> String {
        properties["Name"].as_str().unwrap_or(logical_id).to_owned()
    }

    /// Returns the ARN of a secret by its name. An ARN is returned unchanged.
    pub fn arn(name: &str) -> String {
        if name.starts_with("arn:") { name.to_owned() } else { arn("secretsmanager", &format!("secret:{name}-local1")) }
    }

    /// Creates the secret from the resolved `Properties` of an `AWS::SecretsManager::Secret` unless it exists, and
    /// returns its ARN.
    pub async fn ensure(&self, logical_id: &str, properties: &Value) -> Result<String, SetupError> {
        let name = Self::name(logical_id, properties);
        let value = generate(&properties["GenerateSecretString"])
            .map_err(|reason| SetupError::new(format!("secret {logical_id}: {reason}")))?;
        let arn = Self::arn(&name);
        let now = self.time.now_ms();
        self.sqlite
            .run(|connection| {
                connection.execute(
                    "INSERT INTO secrets (logical_id, arn, name, value, version, created_at) \
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT DO NOTHING",
                    (logical_id, &arn, name, value, Uuid::new_v4().to_string(), now),
                )
            })
            .await?;
        Ok(arn)
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
                let stored = self.read(secret_id).await?.ok_or_else(not_found)?;
                Ok(Answer::json_1_1(&json!({
                    "ARN": stored.arn,
                    "Name": stored.name,
                    "SecretString": stored.value,
                    "VersionId": stored.version,
                    "VersionStages": ["AWSCURRENT"],
                    "CreatedDate": stored.created_at as f64 / 1_000.0,
                })))
            }
            "PutSecretValue" => {
                let PutSecretValue { secret_id, secret_string } = serde_json::from_slice(body).map_err(malformed)?;
                self.replace(secret_id.clone(), secret_string).await?;
                let stored = self.read(secret_id).await?.ok_or_else(not_found)?;
                Ok(Answer::json_1_1(&json!({
                    "ARN": stored.arn, "Name": stored.name, "VersionId": stored.version, "VersionStages": ["AWSCURRENT"],
                })))
            }
            other => {
                let message =
                    format!("The local stack's Secrets Manager has GetSecretValue and PutSecretValue, not {other}.");
                Err(error("UnknownOperationException", message))
            }
        }
    }

    async fn replace(&self, secret_id: String, value: String) -> Result<(), StoreError> {
        const REPLACE: &str = "UPDATE secrets SET value = ?2, version = ?3 WHERE ?1 IN (arn, name)";
        let version = Uuid::new_v4().to_string();
        self.sqlite.run(|connection| connection.execute(REPLACE, (secret_id, value, version)).map(drop)).await
    }

    async fn read(&self, secret_id: String) -> Result<Option<StoredSecret>, StoreError> {
        self.sqlite
            .run(|connection| {
                connection
                    .prepare_cached(
                        "SELECT arn, name, value, version, created_at FROM secrets WHERE ?1 IN (arn, name)",
                    )?
                    .query_row([secret_id], |row| {
                        Ok(StoredSecret {
                            arn: row.get(0)?,
                            name: row.get(1)?,
                            value: row.get(2)?,
                            version: row.get(3)?,
                            created_at: row.get(4)?,
                        })
                    })
                    .optional()
            })
            .await
    }
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
