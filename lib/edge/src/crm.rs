//! Helpers of the CRM routes: bodies, ids in paths, contacts that must be live, pages.

use domain::fields::Invalid;
use domain::id::InvalidUuid;
use domain::list::{CRM_PAGE, CrmPage};
use serde::Serialize;
use serde_json::Value;
use store::contact::{ContactState, StoredContact};
use store::page::{Listed, PAGE_BYTES, PageRequest};
use uuid::Uuid;

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
    contact.live().map_err(|into| into.map_or(Problem::NotFound("contact"), Problem::ContactMerged))
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
