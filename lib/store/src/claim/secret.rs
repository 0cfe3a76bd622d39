//! Answers that show a coach a key or secret once. The claim records the answer without the secret. The whole answer
//! is an item of its own, which TTL deletes after [`SECRET_RETENTION`], while the claim lives for a day.
//! pk `SECRET#<pk of the claim>`.
//!
//! TTL deletes late. So the sealed part states its own end, and the first replay after the end deletes the item.
//!
//! 1. `answer_to_coach` Part of the work's transaction: an answer without a secret.
//! 2. `secret_to_coach` Parts of the work's transaction: the claim with the redacted answer, and the whole answer.
//! 3. `whole_answer` GetItem while the secret is replayed, DeleteItem afterwards.

use domain::idempotency::{RETENTION, SECRET_RETENTION};
use domain::time::Timestamp;
use runtime::error_chain;
use serde::{Deserialize, Serialize};

use super::{Answer, Claim, Claims, Sealed, context, ends_s};
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
    /// Part of the work's transaction: the claim ends with the answer. Answers to a coach's settings have no subject,
    /// since they hold no client's data.
    pub fn answer_to_coach(&self, claim: &Claim, answer: &Answer, now: Timestamp) -> Write {
        self.answer_write(claim, answer, None, RETENTION, now).update(Part::Claim)
    }

    /// Parts of the work's transaction: the claim ends with an answer that shows a secret. `redacted` is the answer
    /// without the secret.
    pub fn secret_to_coach(&self, claim: &Claim, whole: &Answer, redacted: &Answer, now: Timestamp) -> [Write; 2] {
        let until = now + SECRET_RETENTION;
        let sealed = WholeAnswer { until: until.ms(), body: String::from_utf8_lossy(&whole.body).into_owned() };
        let item = SecretItem {
            pk: secret_pk(&claim.pk),
            sealed: Sealed(self.vault.seal_json(&context(&claim.pk, "secret"), &sealed)),
            expires_at: ends_s(until),
        };
        let answered = self.answer_write(claim, redacted, None, RETENTION, now).set("secret_until", n(until.ms()));
        let secret = self.table.write(to_item(&item));
        let secret = secret.when("attribute_not_exists(pk) OR expires_at <= :now", [(":now", n(now.unix_s()))]);
        [answered.update(Part::Claim), secret.put(Part::Claim)]
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
