//! The delivery log, newest first: of one endpoint, of all endpoints of the coach, and one delivery with its request.

use axum::extract::State;
use axum::response::Response;
use domain::cursor::CursorList;
use domain::delivery::{DeliveryFilter, DeliveryPage, ENDPOINT_FILTER};
use domain::fields::Invalid;
use domain::id::{DeliveryId, EndpointId};
use domain::list::DELIVERY_PAGE;
use edge::{Inbound, Problem, Reply};
use futures::future::try_join;
use store::delivery::DeliveryLogRequest;

use crate::App;
use crate::session::Session;
use crate::webhooks::{endpoint_id, find};

pub(crate) const DELIVERY: &str = "delivery";
/// The name of the log of all endpoints, among lists with cursors.
const LOG: &str = "deliveries";
/// The parameters of a page.
const PAGE: [&str; 2] = ["cursor", "limit"];

/// A page of a log, as the query asks for it.
struct PageQuery<'a> {
    list: CursorList<'a>,
    filter: DeliveryFilter,
    after: Option<DeliveryId>,
    limit: usize,
}

/// `GET /settings/deliveries`
pub(crate) async fn list_all(State(app): State<App>, inbound: Inbound) -> Response {
    let work = async |session: Session| {
        let list = CursorList { name: LOG, coach: &session.coach };
        let query = parse(&inbound, list, &[&DeliveryFilter::PARAMETERS[..], &[ENDPOINT_FILTER], &PAGE].concat())?;
        let endpoints = match &query.filter.endpoint_id {
            Some(id) if has_had(&app, &session, id).await? => vec![id.clone()],
            Some(_) => Vec::new(),
            None => all_endpoints(&app, &session).await?,
        };
        page(&app, &endpoints, &query, &session).await
    };
    app.sessions.answer(&inbound, work).await
}

/// `GET /settings/webhooks/{id}/deliveries`
pub(crate) async fn list(State(app): State<App>, inbound: Inbound) -> Response {
    let work = async |session: Session| {
        let name = format!("{LOG}/{}", inbound.parameter(0));
        let list = CursorList { name: &name, coach: &session.coach };
        let query = parse(&inbound, list, &[&DeliveryFilter::PARAMETERS[..], &PAGE].concat())?;
        let found = find(&app, &session, inbound.parameter(0)).await?;
        page(&app, &[found.endpoint.id], &query, &session).await
    };
    app.sessions.answer(&inbound, work).await
}

/// `GET /settings/webhooks/{id}/deliveries/{delivery_id}`
pub(crate) async fn read(State(app): State<App>, inbound: Inbound) -> Response {
    let work = async |session: Session| {
        let (endpoint, id) = (endpoint_id(inbound.parameter(0))?, delivery_id(inbound.parameter(1))?);
        // The delivery of a deleted endpoint can still be read.
        let found = app.deliveries.read(&endpoint, &id, session.now).await?;
        let own = found.filter(|found| found.coach == session.coach);
        Reply::ok(&own.ok_or(Problem::NotFound(DELIVERY))?.detail)
    };
    app.sessions.answer(&inbound, work).await
}

/// The id of a delivery that a path names.
pub(crate) fn delivery_id(text: &str) -> Result<DeliveryId, Problem> {
    DeliveryId::parse_whole(text).map_err(|_| Problem::NotFound(DELIVERY))
}

fn parse<'a>(inbound: &Inbound, list: CursorList<'a>, parameters: &[&str]) -> Result<PageQuery<'a>, Invalid> {
    inbound.only_parameters(parameters)?;
    Ok(PageQuery {
        list,
        filter: DeliveryFilter::parse(|name| inbound.query(name))?,
        after: list.parse(inbound.query("cursor").as_deref(), |position| DeliveryId::parse_whole(position).ok())?,
        limit: DELIVERY_PAGE.parse(inbound.query("limit").as_deref()) as usize,
    })
}

/// Returns true for an endpoint that the coach has, or has deleted.
async fn has_had(app: &App, session: &Session, id: &EndpointId) -> Result<bool, Problem> {
    let exists = app.endpoints.find(&session.coach, id).await?.is_some();
    Ok(exists || app.deliveries.has_deleted(&session.coach, id, session.now).await?)
}

/// The endpoints whose deliveries are kept.
async fn all_endpoints(app: &App, session: &Session) -> Result<Vec<EndpointId>, Problem> {
    let existing = app.endpoints.list_with_health(&session.coach);
    let deleted = app.deliveries.deleted_endpoints(&session.coach, session.now);
    let (existing, deleted) = try_join(existing, deleted).await?;
    Ok(existing.into_iter().map(|watched| watched.endpoint.id).chain(deleted).collect())
}

async fn page(app: &App, endpoints: &[EndpointId], query: &PageQuery<'_>, session: &Session) -> Result<Reply, Problem> {
    let PageQuery { list, filter, after, limit } = query;
    let coach = &session.coach;
    let request = DeliveryLogRequest { coach, endpoints, filter, after: after.as_ref(), limit: *limit };
    let page = app.deliveries.page(&request, session.now).await?;
    let next_cursor = page.next_cursor.map(|last| list.cursor(last.as_str()));
    Reply::ok(&DeliveryPage { data: page.deliveries, next_cursor })
}
