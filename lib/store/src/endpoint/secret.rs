//! Rotation of secrets. The replaced secret signs for a while longer, so that the receiver can change in its own time.

use domain::audit::AuditAction;
use domain::endpoint::{EndpointWithHealth, MAX_SECRETS, SECRET_OVERLAP};
use domain::id::EndpointId;
use domain::signature::SigningSecret;

use super::{EndpointItem, Endpoints, SealedSecret, secret_context};
use crate::audit::AuditContext;
use crate::db::{Part, StoreError, Transacted, Write, retry};

/// The result of changing an endpoint's secret.
#[derive(Debug)]
pub enum SecretRotation {
    Done(Box<EndpointWithHealth>),
    /// The limit of signing secrets is reached.
    TooMany,
    NotFound,
    /// Another request has taken over the claim.
    ClaimLost,
}

impl Endpoints {
    /// Gives an endpoint another secret. The previous secret signs for a while beside it. `answer` gives the
    /// parts of the transaction that record the answer.
    pub async fn rotate_secret(
        &self,
        context: AuditContext<'_>,
        id: &EndpointId,
        secret: &SigningSecret,
        answer: impl Fn(&EndpointWithHealth) -> Vec<Write>,
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
            let mut writes = vec![
                self.replace(EndpointItem { secrets, ..record }, &endpoint),
                self.audit_record(context, AuditAction::EndpointSecretRotated, &endpoint),
            ];
            let rotated = EndpointWithHealth { endpoint, health };
            writes.extend(answer(&rotated));
            match self.table.db.transact(&writes).await? {
                Transacted::Done => Ok(Some(SecretRotation::Done(Box::new(rotated)))),
                Transacted::Refused(refused) if refused.is(Part::Claim) => Ok(Some(SecretRotation::ClaimLost)),
                Transacted::Refused(_) => Ok(None),
            }
        })
        .await
    }
}
