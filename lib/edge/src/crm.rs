//! CRM routes behind the gate: idempotent writes, ids in paths, pages.
//!
//! A write happens at most once, and a retry learns its result. If the store does not answer in time, the function
//! answers 503 itself, before the gateway would. The retry replays what was committed, or takes over the claim. After
//! the takeover the earlier request can no longer commit.

use std::borrow::Cow;
use std::future::Future;

use axum::response::Response;
use domain::change::Change;
use domain::fields::Invalid;
use domain::id::{ContactId, InvalidUuid};
use domain::idempotency::{Api, Mismatch};
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
use crate::idempotency::{ClaimedRequest, IdempotentRequest, Outcome, once, required_key_of};
use crate::inbound::Inbound;
use crate::problem::Problem;
use crate::reply::Reply;

/// A write operation of a route.
pub trait Write: Sync {
    /// The parsed request.
    type Request: Send + Sync;
    /// The records that decide the write.
    type Found: Send;

    /// The payload of the request's fingerprint.
    fn payload<'a>(&self, inbound: &'a Inbound) -> Cow<'a, Value> {
        inbound.payload()
    }

    /// Parses the request.
    fn parse(&self, inbound: &Inbound) -> Result<Self::Request, Problem>;

    /// Reads the records that decide the write.
    fn read(
        &self,
        caller: &CrmCaller,
        request: &Self::Request,
    ) -> impl Future<Output = Result<Self::Found, StoreError>> + Send;

    /// Decides, and commits the records and the answer in one transaction.
    fn commit(
        &self,
        context: &WriteContext<'_>,
        request: &Self::Request,
        found: Self::Found,
    ) -> impl Future<Output = Result<WriteResult, Problem>> + Send;
}

/// The result of [`Write::commit`].
pub enum WriteResult {
    /// The transaction was tried, with this result.
    Committed { committed: Committed, reply: Reply },
    /// The write was refused, and the refusal is not recorded.
    Withdrawn(Problem),
}

/// A write under its claim.
pub struct WriteContext<'a> {
    pub caller: &'a CrmCaller,
    writer: &'a Writer,
    claim: &'a Claim,
}

impl WriteContext<'_> {
    /// The part of the transaction beside the records: the answer, which is about `contact`, and the change to emit.
    pub fn crm_write(&self, contact: ContactId, reply: &Reply, change: Option<Change>) -> CrmWrite<'_> {
        CrmWrite {
            claims: &self.writer.claims,
            outbox: &self.writer.outbox,
            claim: self.claim,
            coach: &self.caller.coach,
            contact,
            answer: reply.to_answer(),
            change,
            now: self.caller.now,
        }
    }
}

/// Runs CRM writes idempotently.
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

    /// Runs a write once. The records are read while the key is claimed, and again after each conflict with another
    /// write.
    ///
    /// A repeat gets the recorded answer. Another payload under the key is refused. If the store does not answer, the
    /// result is unknown: the caller gets [`Problem::Unconfirmed`], nothing is recorded, and the repeat learns the
    /// result.
    async fn write<W: Write>(&self, inbound: &Inbound, caller: &CrmCaller, write: &W) -> Result<Reply, Problem> {
        let key = required_key_of(inbound, &caller.coach, Api::Crm)?;
        let read = async {
            let request = write.parse(inbound)?;
            let found = write.read(caller, &request).await?;
            Ok((request, found))
        };
        let work = async |claimed: ClaimedRequest<()>, read: Result<(W::Request, W::Found), Problem>| {
            let context = WriteContext { caller, writer: self, claim: &claimed.claim };
            commit_with_retries(write, &context, read).await.map_err(Problem::unconfirmed)
        };
        let request = IdempotentRequest { key, mismatch: Mismatch::Refused, payload: write.payload(inbound) };
        let done = once(&self.claims, inbound, request, caller.now, read, work).await;
        done.map_err(Problem::unconfirmed)
    }
}

/// Runs the write. Reads and decides again after each conflict with another write.
async fn commit_with_retries<W: Write>(
    write: &W,
    context: &WriteContext<'_>,
    read: Result<(W::Request, W::Found), Problem>,
) -> Result<Outcome, Problem> {
    let (request, found) = read?;
    let (request, mut found) = (&request, Some(found));
    retry("a CRM write", || {
        let found = found.take();
        async move {
            let found = match found {
                Some(found) => found,
                None => write.read(context.caller, request).await?,
            };
            Ok(match write.commit(context, request, found).await? {
                WriteResult::Withdrawn(problem) => Some(Outcome::Withdrawn(problem)),
                WriteResult::Committed { committed: Committed::Done, reply } => Some(Outcome::Answered(reply)),
                WriteResult::Committed { committed: Committed::ClaimLost, .. } => Some(Outcome::ClaimLost),
                WriteResult::Committed { committed: Committed::Changed, .. } => None,
            })
        }
    })
    .await
}

/// The JSON body. A body that is not JSON is an `invalid_request`: no other code of the CRM fits.
pub fn body(inbound: &Inbound) -> Result<&Value, Problem> {
    inbound.json().map_err(|problem| match problem {
        Problem::InvalidJson(_) | Problem::TooDeep => Invalid::whole(problem.to_string()).into(),
        other => other,
    })
}

/// The id in the path.
pub fn path_id<T>(inbound: &Inbound, parse: impl FnOnce(&str) -> Result<T, InvalidUuid>) -> Result<T, Problem> {
    parse(inbound.parameter(0)).map_err(|rule| Invalid::field("id", rule).into())
}

/// The page that a request asks for.
pub fn page(inbound: &Inbound) -> Result<PageRequest, Problem> {
    let cursor = inbound.cursor();
    let after = cursor.as_deref().map(domain::id::parse_uuid).transpose();
    let after = after.map_err(|rule| Invalid::field("cursor", rule))?;
    Ok(PageRequest { after, limit: CRM_PAGE.parse(inbound.query("limit").as_deref()) })
}

/// Answers with a page. A page that exceeds the size of an answer is cut, and its cursor names the last record left.
/// `id_of` returns a record's id.
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
