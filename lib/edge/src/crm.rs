//! Helpers of the CRM routes: bodies, ids in paths, contacts that must be live, answers with pages.

use domain::cursor::CursorList;
use domain::fields::Invalid;
use domain::id::InvalidUuid;
use domain::id_kind::IdKind;
use domain::list::CrmPage;
use serde::Serialize;
use serde_json::Value;
use store::contact::{ContactState, StoredContact};
use store::page::{PAGE_BYTES, Page};

use crate::inbound::Inbound;
use crate::problem::Problem;
use crate::reply::Reply;

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

/// The contact that a request names, if it is live.
pub fn live(contact: &ContactState) -> Result<&StoredContact, Problem> {
    contact.live().map_err(|into| into.map_or(Problem::not_found(IdKind::Contact), Problem::ContactMerged))
}

/// The contact that a read names, if it is live. A merged contact is not found.
pub fn found(contact: &ContactState) -> Result<&StoredContact, Problem> {
    contact.live().map_err(|into| into.map_or(Problem::not_found(IdKind::Contact), Problem::MergedContactNotFound))
}

/// Answers with a page of the list. A page that exceeds the size of an answer is cut, and its cursor names the last
/// record left.
pub fn page_reply<T, V: Serialize>(
    list: &CursorList<'_>,
    page: Page<T>,
    view: impl Fn(T) -> V,
) -> Result<Reply, Problem> {
    let (positions, records): (Vec<_>, Vec<_>) =
        page.records.into_iter().map(|placed| (placed.position, view(placed.record))).unzip();
    let mut page = CrmPage { data: records, next_cursor: page.next.map(|next| next.cursor(list)) };
    loop {
        let reply = Reply::ok(&page)?;
        let fewer = page.data.len() / 2;
        if reply.size() <= PAGE_BYTES || fewer == 0 {
            return Ok(reply);
        }
        page.data.truncate(fewer);
        page.next_cursor = Some(positions[fewer - 1].cursor(list));
    }
}
