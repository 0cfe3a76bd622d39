//! What the routes of the CRM have in common beyond the gate: writes that are done once and whose fate can always be found out, ids in
//! paths, pages.

use std::future::Future;

use domain::api_key::Scope;
use domain::fields::Invalid;
use domain::id::InvalidUuid;
use domain::list::{CRM_PAGE, CrmPage};
use serde::Serialize;
use serde_json::Value;
use store::StoreError;
use store::claim::{Claim, Claims};
use store::page::{Listed, PageRequest};
use uuid::Uuid;

use crate::gate::CrmCaller;
use crate::idempotency::{Mismatch, Outcome, Ticket, once, required_key_of};
use crate::inbound::Inbound;
use crate::problem::{Fault, Problem};
use crate::reply::Reply;

/// Does a write once. `read` runs beside the claiming of the key; the work is given the claim, to record its answer in its own
/// transaction, and what was read.
///
/// A repeat is given the recorded answer; another payload under the key is refused. Where the store does not answer, nobody knows
/// whether the work was done: [`Problem::Unconfirmed`] is told, nothing is recorded, and the repeat finds out.
pub async fn write<T, F, Fut>(
    claims: &Claims,
    inbound: &Inbound,
    caller: &CrmCaller,
    read: impl Future<Output = T>,
    work: F,
) -> Result<Reply, Problem>
where
    F: FnOnce(Claim, T) -> Fut,
    Fut: Future<Output = Result<Outcome, Problem>>,
{
    let key = required_key_of(inbound, &caller.coach, Scope::Crm)?;
    let work = |ticket: Option<Ticket<()>>, read: T| async move {
        let ticket = ticket.ok_or_else(|| Problem::internal("write to the CRM", "there is no claim"))?;
        work(ticket.claim, read).await.map_err(unconfirmed)
    };
    let done = once(claims, inbound, (Some(key), Mismatch::Refused), caller.now, read, work).await;
    done.map_err(unconfirmed)
}

/// No answer of the store is no fault to report: the caller retries and finds out.
fn unconfirmed(problem: Problem) -> Problem {
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
pub fn body(inbound: &Inbound) -> Result<Value, Problem> {
    inbound.json().map_err(|problem| match problem {
        Problem::InvalidJson(_) | Problem::TooDeep => Invalid::whole(problem.message()).into(),
        other => other,
    })
}

/// The id that a path names.
pub fn path_id<T>(text: &str, parse: impl FnOnce(&str) -> Result<T, InvalidUuid>) -> Result<T, Problem> {
    parse(text).map_err(|rule| Invalid::field("id", rule).into())
}

/// Which page a request asks for.
pub fn page(inbound: &Inbound) -> Result<PageRequest, Problem> {
    let cursor = inbound.query("cursor");
    let after = cursor.as_deref().map(domain::id::parse_uuid).transpose();
    let after = after.map_err(|rule| Invalid::field("cursor", rule))?;
    Ok(PageRequest { after, limit: CRM_PAGE.parse(inbound.query("limit").as_deref()) })
}

/// Answers with a page. `id_of` tells a record's id.
pub fn page_reply<T, V: Serialize>(
    listed: Listed<T>,
    id_of: impl Fn(&T) -> Uuid,
    view: impl Fn(T) -> V,
) -> Result<Reply, Problem> {
    let next_cursor = listed.records.last().filter(|_| listed.more).map(id_of);
    Reply::ok(&CrmPage { data: listed.records.into_iter().map(view).collect(), next_cursor })
}
