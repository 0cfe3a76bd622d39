//! Rotation of secrets. The replaced secret signs for a while longer, so that the receiver can change in its own time.

use domain::endpoint::{MAX_SECRETS, SECRET_OVERLAP};
use domain::signature::SigningSecret;
use domain::time::Timestamp;

use super::{Endpoints, SealedSecret, StoredEndpoint};
use crate::db::Write;

impl Endpoints {
    /// Part of a transaction: gives an endpoint another secret. The previous secret signs for a while beside it.
    /// `None`: the limit of signing secrets is reached.
    pub fn rotate_secret(&self, found: &StoredEndpoint, secret: &SigningSecret, now: Timestamp) -> Option<Write> {
        let mut secrets = vec![self.seal(&found.endpoint.id, secret)];
        for old in found.secrets.iter().filter(|secret| secret.counts(now)) {
            let until = old.until.unwrap_or_else(|| (now + SECRET_OVERLAP).ms());
            secrets.push(SealedSecret { until: Some(until), ..old.clone() });
        }
        let has_room = secrets.len() <= MAX_SECRETS;
        has_room.then(|| self.replace(StoredEndpoint { secrets, ..found.clone() }))
    }
}
