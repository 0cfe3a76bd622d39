//! The record of an answer under the request's idempotency key. Work that is one transaction records its answer in
//! that transaction: a repeat after a crash gets the answer, or does the work that has not happened.

use domain::idempotency::RETENTION;
use domain::time::Timestamp;
use edge::{Problem, Reply};
use store::Write;
use store::claim::{Answer, Claim, Claims};

/// Records the answer of one request. Without an idempotency key it records nothing.
pub(crate) struct Recorder(Option<Record>);

struct Record {
    claims: Claims,
    claim: Claim,
    now: Timestamp,
}

impl Recorder {
    /// The recorder of a request without a key.
    pub(crate) fn none() -> Self {
        Self(None)
    }

    pub(crate) fn of(claims: &Claims, claim: Claim, now: Timestamp) -> Self {
        Self(Some(Record { claims: claims.clone(), claim, now }))
    }

    /// The claim of the request's idempotency key.
    pub(crate) fn claim(&self) -> Option<&Claim> {
        self.0.as_ref().map(|record| &record.claim)
    }

    /// Part of the work's transaction: the answer.
    pub(crate) fn answer(&self, reply: &Reply) -> Vec<Write> {
        let answer = |record: &Record| record.claims.answer_to_coach(&record.claim, &reply.to_answer(), record.now);
        self.0.iter().map(answer).collect()
    }

    /// Parts of the work's transaction: an answer that shows a secret, and the same answer without it.
    pub(crate) fn secret(&self, whole: &Answer, redacted: &Answer) -> Vec<Write> {
        let parts = |record: &Record| record.claims.secret_to_coach(&record.claim, whole, redacted, record.now);
        self.0.iter().flat_map(parts).collect()
    }

    /// Records the answer of finished work that is not one transaction.
    pub(crate) async fn finish(&self, reply: Reply) -> Result<Reply, Problem> {
        let Some(Record { claims, claim, now }) = &self.0 else { return Ok(reply) };
        let is_ours = claims.finish(claim, &reply.to_answer(), None, RETENTION, *now).await?;
        if is_ours { Ok(reply) } else { Err(Problem::IdempotencyInProgress) }
    }
}
