//! The service's own keys, read once when a function starts, and the sealing of stored values with them.

use std::sync::Arc;

use aws_sdk_secretsmanager::Client;
use domain::assertion::AssertionSigner;
use domain::seal::{CannotOpen, Sealer};
use runtime::{BoxError, Environment, random_bytes, without_message};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::db::StoreError;

/// Reads the signer of assertions from the secret that `SIGNING_SECRET_ARN` names.
pub async fn assertion_signer(env: &Environment) -> Result<Arc<AssertionSigner>, BoxError> {
    Ok(Arc::new(AssertionSigner::from_secret(&read_secret(env, "SIGNING_SECRET_ARN").await?)?))
}

/// Seals and opens stored values.
#[derive(Clone)]
pub struct Vault(Arc<Sealer>);

impl Vault {
    /// Reads the secret that `ENCRYPTION_SECRET_ARN` names.
    pub async fn open(env: &Environment) -> Result<Self, BoxError> {
        Ok(Self(Arc::new(Sealer::from_secret(&read_secret(env, "ENCRYPTION_SECRET_ARN").await?)?)))
    }

    /// Seals bytes for the record and field that `context` names.
    pub(crate) fn seal(&self, context: &str, plain: &[u8]) -> Vec<u8> {
        self.0.seal(context, plain, random_bytes())
    }

    /// Opens bytes that were sealed for the same context.
    pub(crate) fn unseal(&self, entity: &'static str, context: &str, sealed: &[u8]) -> Result<Vec<u8>, StoreError> {
        self.0.open(context, sealed).map_err(|error: CannotOpen| StoreError::corrupt(entity, error))
    }

    /// Seals a record as JSON.
    pub(crate) fn seal_json<T: Serialize>(&self, context: &str, record: &T) -> Vec<u8> {
        self.seal(context, &serde_json::to_vec(record).expect("a record converts to JSON"))
    }

    /// Opens a record that [`Vault::seal_json`] sealed.
    pub(crate) fn unseal_json<T: DeserializeOwned>(
        &self,
        entity: &'static str,
        context: &str,
        sealed: &[u8],
    ) -> Result<T, StoreError> {
        let plain = self.unseal(entity, context, sealed)?;
        serde_json::from_slice(&plain).map_err(|error| StoreError::unreadable(entity, error))
    }
}

/// Reads the text of the secret whose ARN the variable holds.
async fn read_secret(env: &Environment, variable: &str) -> Result<String, BoxError> {
    let arn = env.config().get(variable)?;
    let secrets = Client::new(env.sdk());
    let secret = secrets.get_secret_value().secret_id(arn).send().await.map_err(without_message)?;
    secret.secret_string.ok_or_else(|| format!("the secret of {variable} has no text").into())
}
