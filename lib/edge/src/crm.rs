//! The routes of the CRM beyond the gate: writes that are done once and whose fate can always be found out, ids in
//! paths, pages.

use std::borrow::Cow;
use std::future::Future;

use axum::response::Response;
use domain::api_key::Scope;
use domain::change::Change;
use domain::fields::Invalid;
use domain::id::{ContactId, InvalidUuid};
use domain::idempotency::Mismatch;
use domain::list::{CRM_PAGE, CrmPage};
use runtime::{BoxError, Environment};
use serde::Serialize;
use serde_json::Value;
use store::claim::{Claim, Claims};
use store::crm_write::{Committed, CrmWrite};
use store::outbox::Outbox;
use store::page::{Listed, PAGE_BYTES, PageRequest};
use store::vault::Vault;
use store::{Db, StoreError, retry};
use uuid::Uuid;

use crate::gate::{CrmCaller, Gate};
use crate::idempotency::{Outcome, Repeat, Ticket, once, required_key_of};
use crate::inbound::Inbound;
use crate::problem::{Fault, Problem};
use crate::reply::Reply;

/// A write, as an endpoint says what is to be done.
pub trait Write: Sync {
    /// The request, parsed.
    type Request: Send + Sync;
    /// The records that decide the write.
    type Found: Send;

    /// The payload of the request's fingerprint.
    fn payload<'a>(&self, inbound: &'a Inbound) -> Cow<'a, Value> {
        inbound.payload()
    }

    /// Reads the request.
    fn parse(&self, inbound: &Inbound) -> Result<Self::Request, Problem>;

    /// Reads what the write is decided by.
    fn read(
        &self,
        caller: &CrmCaller,
        request: &Self::Request,
    ) -> impl Future<Output = Result<Self::Found, StoreError>> + Send;

    /// Decides, and writes the records together with the answer.
    fn attempt(
        &self,
        attempt: &Attempt<'_>,
        request: &Self::Request,
        found: Self::Found,
    ) -> impl Future<Output = Result<Attempted, Problem>> + Send;
}

/// The result of an attempt at a write.
pub enum Attempted {
    /// The records and their answer were committed, or were not.
    Committed { committed: Committed, reply: Reply },
    /// The write was refused, and the refusal is not recorded.
    Withdrawn(Problem),
}

/// A write whose claim is taken.
pub struct Attempt<'a> {
    pub caller: &'a CrmCaller,
    writer: &'a Writer,
    claim: &'a Claim,
}

impl Attempt<'_> {
    /// The part of the transaction beside the records: this answer, which is about the contact, and this change if
    /// there is one to emit.
    pub fn leaving(&self, contact: ContactId, reply: &Reply, fact: Option<Change>) -> CrmWrite<'_> {
        CrmWrite {
            claims: &self.writer.claims,
            outbox: &self.writer.outbox,
            claim: self.claim,
            coach: &self.caller.coach,
            contact,
            answer: reply.to_answer(),
            change: fact,
            now: self.caller.now,
        }
    }
}

/// Does writes, each once.
#[derive(Clone)]
pub struct Writer {
    claims: Claims,
    outbox: Outbox,
}

impl Writer {
    /// Claims writes in the idempotency table and emits changes through the outbox.
    pub fn new(env: &Environment, db: &Db, vault: &Vault) -> Result<Self, BoxError> {
        Ok(Self { claims: Claims::new(env, db, vault)?, outbox: Outbox::new(env, db, vault)? })
    }

    /// Checks the caller of a write, does the write once, and answers.
    pub async fn answer<W: Write>(&self, gate: &Gate, inbound: &Inbound, write: &W) -> Response {
        gate.crm(inbound, async |caller| self.write(inbound, &caller, write).await).await
    }

    /// Does a write once. What it is decided by is read beside the claiming of the key, and again each time that
    /// another write was in the way.
    ///
    /// A repeat is given the recorded answer; another payload under the key is refused. Where the store does not
    /// answer, nobody knows whether the work was done: the caller gets [`Problem::Unconfirmed`], nothing is recorded,
    /// and the repeat finds out.
    async fn write<W: Write>(&self, inbound: &Inbound, caller: &CrmCaller, write: &W) -> Result<Reply, Problem> {
        let key = required_key_of(inbound, &caller.coach, Scope::Crm)?;
        let read = async {
            let request = write.parse(inbound)?;
            let found = write.read(caller, &request).await?;
            Ok((request, found))
        };
        let work = async |ticket: Ticket<()>, read: Result<(W::Request, W::Found), Problem>| {
            let attempt = Attempt { caller, writer: self, claim: &ticket.claim };
            rounds(write, &attempt, read).await.map_err(unconfirmed)
        };
        let repeat = Repeat { key, mismatch: Mismatch::Refused, payload: write.payload(inbound) };
        let done = once(&self.claims, inbound, repeat, caller.now, read, work).await;
        done.map_err(unconfirmed)
    }
}

/// Decides by what was read, and anew by what is read then as long as another write was in the way.
async fn rounds<W: Write>(
    write: &W,
    attempt: &Attempt<'_>,
    read: Result<(W::Request, W::Found), Problem>,
) -> Result<Outcome, Problem> {
    let (request, found) = read?;
    let (request, mut found) = (&request, Some(found));
    retry("what the write rests on", || {
        let found = found.take();
        async move {
            let found = match found {
                Some(found) => found,
                None => write.read(attempt.caller, request).await?,
            };
            Ok(match write.attempt(attempt, request, found).await? {
                Attempted::Withdrawn(problem) => Some(Outcome::Withdrawn(problem)),
                Attempted::Committed { committed: Committed::Done, reply } => Some(Outcome::Answered(reply)),
                Attempted::Committed { committed: Committed::ClaimLost, .. } => Some(Outcome::ClaimLost),
                Attempted::Committed { committed: Committed::Changed, .. } => None,
            })
        }
    })
    .await
}

/// No answer of the store is no fault to report: the caller retries and finds out.
pub(crate) fn unconfirmed(problem: Problem) -> Problem {
    match problem {
        Problem::Internal(Fault { doing, source })
            if matches!(source.downcast_ref::<StoreError>(), Some(StoreError::Unavailable { .. })) =>
        {
            Problem::Unconfirmed(Fault { doing, source })
        }
        other => other,
    }
}

/// The body. What is no JSON breaks the one rule that bodies of the CRM have a code for.
pub fn body(inbound: &Inbound) -> Result<&Value, Problem> {
    inbound.json().map_err(|problem| match problem {
        Problem::InvalidJson(_) | Problem::TooDeep => Invalid::whole(problem.to_string()).into(),
        other => other,
    })
}

/// The id that a path names.
pub fn path_id<T>(inbound: &Inbound, parse: impl FnOnce(&str) -> Result<T, InvalidUuid>) -> Result<T, Problem> {
    parse(inbound.parameter(0)).map_err(|rule| Invalid::field("id", rule).into())
}

/// Which page a request asks for.
pub fn page(inbound: &Inbound) -> Result<PageRequest, Problem> {
    let cursor = inbound.cursor();
    let after = cursor.as_deref().map(domain::id::parse_uuid).transpose();
    let after = after.map_err(|rule| Invalid::field("cursor", rule))?;
    Ok(PageRequest { after, limit: CRM_PAGE.parse(inbound.query("limit").as_deref()) })
}

/// Answers with a page, or with its beginning where the whole is more than an answer can hold. `id_of` returns a
/// record's id.
pub fn page_reply<T, V: Serialize>(
    listed: Listed<T>,
    id_of: impl Fn(&T) -> Uuid,
    view: impl Fn(T) -> V,
) -> Result<Reply, Problem> {
    let ids: Vec<Uuid> = listed.records.iter().map(id_of).collect();
    let next_cursor = ids.last().copied().filter(|_| listed.more);
    let mut page = CrmPage { data: listed.records.into_iter().map(view).collect(), next_cursor };
    loop {
        let reply = Reply::ok(&page)?;
        let fewer = page.data.len() / 2;
        if reply.size() <= PAGE_BYTES || fewer == 0 {
            return Ok(reply);
        }
        page.data.truncate(fewer);
        page.next_cursor = Some(ids[fewer - 1]);
    }
}
