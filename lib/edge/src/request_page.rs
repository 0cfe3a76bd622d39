//! Pages of the request log: a coach's, and a key's own.

use domain::cursor::CursorList;
use domain::id::CoachId;
use domain::list::REQUEST_PAGE;
use domain::request_log::{RequestFilter, RequestNames, RequestPage, RequestPosition};
use domain::time::Timestamp;
use store::request_log::{Requests, RequestsRead, RequestsWanted};

use crate::code::Code;
use crate::inbound::Inbound;
use crate::problem::Problem;
use crate::reply::Reply;
use crate::routes::{ROUTES, Route};

/// Reads the page of a list that the query asks for. `restrict` narrows the filter of the query.
pub async fn request_page(
    requests: &Requests,
    list: &CursorList<'_>,
    inbound: &Inbound,
    now: Timestamp,
    restrict: impl FnOnce(RequestFilter) -> RequestFilter,
) -> Result<Reply, Problem> {
    inbound.only_known_parameters()?;
    let filter = restrict(parse_filter(inbound)?);
    let after = list.parse(inbound.query("cursor").as_deref(), RequestPosition::parse)?;
    let limit = REQUEST_PAGE.parse(inbound.query("limit").as_deref()) as usize;
    let coach: &CoachId = list.coach;
    let wanted = RequestsWanted { coach, filter: &filter, after: after.as_ref(), limit };
    let RequestsRead { records, next } = requests.page(&wanted, now).await?;
    let next_cursor = next.map(|position| list.cursor(&position.to_string()));
    Reply::ok(&RequestPage { data: records, next_cursor })
}

fn parse_filter(inbound: &Inbound) -> Result<RequestFilter, Problem> {
    let codes: Vec<&str> = Code::ALL.iter().map(|code| code.as_str()).collect();
    let routes: Vec<&str> = ROUTES.iter().filter(|route| route.takes_key()).map(|Route { path, .. }| *path).collect();
    let names = RequestNames { codes: &codes, routes: &routes };
    Ok(RequestFilter::parse(|name| inbound.query(name), names)?)
}
