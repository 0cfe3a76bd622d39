//! Rotation of secrets. The replaced secret signs for a while longer, so that the receiver can change in its own time.

use domain::audit::AuditAction;
use domain::endpoint::{MAX_SECRETS, SECRET_OVERLAP, WatchedEndpoint};
use domain::id::EndpointId;
use domain::signature::SigningSecret;

use super::{EndpointItem, Endpoints, SealedSecret, secret_context};
use crate::audit::AuditContext;
use crate::db::{StoreError, retry};

/// The result of changing an endpoint's secret.
#[derive(Debug)]
pub enum SecretRotation {
    Done(Box<WatchedEndpoint>),
    /// The limit of signing secrets is reached.
    TooMany,
    NotFound,
}

impl Endpoints {
    /// Gives an endpoint another secret. The previous secret signs for a while beside it.
    pub async fn rotate_secret(
        &self,
        context: AuditContext<'_>,
        id: &EndpointId,
        secret: &SigningSecret,
    ) -> Result<SecretRotation, StoreError> {
        let AuditContext { coach, now, .. } = context;
        retry("an endpoint", || async {
            let Some(record) = self.read(coach, id).await? else { return Ok(Some(SecretRotation::NotFound)) };
            let (endpoint, health) = (record.endpoint.clone(), record.health.clone());
            let sealed = self.vault.seal(&secret_context(id), secret.as_bytes());
            let mut secrets = vec![SealedSecret { sealed, until: None }];
            for old in record.secrets.iter().filter(|secret| secret.counts(now)) {
                let until = old.until.unwrap_or_else(|| (now + SECRET_OVERLAP).ms());
                secrets.push(SealedSecret { until: Some(until), ..old.clone() });
            }
            if secrets.len() > MAX_SECRETS {
                return Ok(Some(SecretRotation::TooMany));
            }
            let writes = [
                self.replace(EndpointItem { secrets, ..record }, &endpoint),
                self.audit_record(context, AuditAction::EndpointSecretRotated, &endpoint),
            ];
            let watched = WatchedEndpoint { endpoint, health };
            Ok(self.table.db.transact(&writes).await?.is_done().then_some(SecretRotation::Done(Box::new(watched))))
        })
        .await
    }
}
