//! Answers that show a coach a key or secret once. The claim records the answer without the secret. The whole answer
//! is an item of its own, which TTL deletes after [`SECRET_RETENTION`], while the claim lives for a day.
//! pk `SECRET#<pk of the claim>`.
//!
//! TTL deletes late. So the sealed part states its own end, and the first replay after the end deletes the item.
//!
//! 1. `secret_write` Part of the work's transaction, beside the claim with the redacted answer.
//! 2. `whole_answer` GetItem while the secret is replayed, DeleteItem afterwards.

use domain::idempotency::SECRET_RETENTION;
use domain::time::Timestamp;
use runtime::error_chain;
use serde::{Deserialize, Serialize};

use super::{Claim, Claims, RecordedReply, Sealed, context, ends_s};
use crate::db::{self, Part, StoreError, Write, n, to_item};

#[derive(Serialize, Deserialize)]
struct SecretItem {
    pk: String,
    sealed: Sealed,
    /// Seconds: the TTL attribute.
    expires_at: i64,
}

/// The sealed part of the item.
#[derive(Serialize, Deserialize)]
struct WholeAnswer {
    /// The end of the time in which the answer is replayed, in ms.
    until: i64,
    /// JSON.
    body: String,
}

impl Claims {
    /// Part of the work's transaction: the whole answer.
    pub(super) fn secret_write(&self, claim: &Claim, whole: &RecordedReply, now: Timestamp) -> Write {
        let until = now + SECRET_RETENTION;
        let sealed = WholeAnswer { until: until.ms(), body: String::from_utf8_lossy(&whole.body).into_owned() };
        let item = SecretItem {
            pk: secret_pk(&claim.pk),
            sealed: Sealed(self.vault.seal_json(&context(&claim.pk, "secret"), &sealed)),
            expires_at: ends_s(until),
        };
        let is_free = "attribute_not_exists(pk) OR expires_at <= :now";
        self.table.write(to_item(&item)).when(is_free, [(":now", n(now.unix_s()))]).put(Part::Claim)
    }

    /// The body of the whole answer, or `None` once its time is over.
    pub(super) async fn whole_answer(
        &self,
        claim_pk: &str,
        until_ms: i64,
        now: Timestamp,
    ) -> Result<Option<Vec<u8>>, StoreError> {
        let key = db::pk(secret_pk(claim_pk));
        if until_ms <= now.ms() {
            let expired = self.table.write(key).when("expires_at <= :now", [(":now", n(ends_s(now)))]);
            if let Err(error) = expired.delete_now().await {
                tracing::warn!(error = error_chain(&error), "failed to delete an expired secret; TTL deletes it");
            }
            return Ok(None);
        }
        let Some(item) = self.table.get::<SecretItem>("secret answer", key).await? else { return Ok(None) };
        let context = context(claim_pk, "secret");
        let whole: WholeAnswer = self.vault.unseal_json("secret answer", &context, &item.sealed.0)?;
        Ok((whole.until > now.ms()).then(|| whole.body.into_bytes()))
    }
}

fn secret_pk(claim_pk: &str) -> String {
    format!("SECRET#{claim_pk}")
}
