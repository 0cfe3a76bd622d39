//! The delivery log, newest first: of one endpoint, of all endpoints of the coach, and one delivery with its request.

use std::collections::BTreeMap;

use domain::breaker::Breaker;
use domain::cursor::CursorList;
use domain::delivery::{DeliveryFilter, DeliveryPage, DeliveryView};
use domain::endpoint::EndpointWithHealth;
use domain::fields::Invalid;
use domain::id::{DeliveryId, EndpointId};
use domain::id_kind::IdKind;
use domain::list::DELIVERY_PAGE;
use edge::{Inbound, Problem, Reply, Session};
use futures::future::try_join;
use store::delivery::{DeliveryLogPage, DeliveryLogRequest};

use crate::App;
use crate::webhooks::{endpoint_id, find};

/// The name of the log of all endpoints, among lists with cursors.
const LOG: &str = "deliveries";

/// A page of a log, as the query asks for it.
struct PageQuery<'a> {
    list: CursorList<'a>,
    filter: DeliveryFilter,
    after: Option<DeliveryId>,
    limit: usize,
}

/// `GET /settings/deliveries`
pub(crate) async fn list_all(app: App, session: Session, inbound: Inbound) -> Result<Reply, Problem> {
    let list = CursorList { name: LOG, coach: &session.coach };
    let query = parse(&inbound, list)?;
    let endpoints = match &query.filter.endpoint_id {
        Some(id) => one_endpoint(&app, &session, id).await?,
        None => all_endpoints(&app, &session).await?,
    };
    page(&app, &endpoints, &query, &session).await
}

/// `GET /settings/webhooks/{id}/deliveries`
pub(crate) async fn list(app: App, session: Session, inbound: Inbound) -> Result<Reply, Problem> {
    let name = format!("{LOG}/{}", inbound.parameter(0));
    let list = CursorList { name: &name, coach: &session.coach };
    let query = parse(&inbound, list)?;
    let found = find(&app, &session, inbound.parameter(0)).await?;
    page(&app, &Breakers::from([breaker_of(found.with_health())]), &query, &session).await
}

/// `GET /settings/webhooks/{id}/deliveries/{delivery_id}`
pub(crate) async fn read(app: App, session: Session, inbound: Inbound) -> Result<Reply, Problem> {
    let (endpoint, id) = (endpoint_id(inbound.parameter(0))?, delivery_id(inbound.parameter(1))?);
    let read = app.deliveries.read(&endpoint, &id, app.mode, session.now);
    let (found, stored) = try_join(read, app.endpoints.find(&session.coach, &endpoint)).await?;
    let own = found.filter(|found| found.coach == session.coach).ok_or(Problem::not_found(IdKind::Delivery))?;
    let mut detail = own.detail;
    // The delivery of a deleted endpoint can still be read.
    if let Some(stored) = stored {
        detail.delivery = detail.delivery.behind(&stored.health.breaker, session.now);
    }
    Reply::ok(&detail)
}

/// The id of a delivery that a path names.
pub(crate) fn delivery_id(text: &str) -> Result<DeliveryId, Problem> {
    DeliveryId::parse_whole(text).map_err(|_| Problem::not_found(IdKind::Delivery))
}

fn parse<'a>(inbound: &Inbound, list: CursorList<'a>) -> Result<PageQuery<'a>, Invalid> {
    inbound.only_known_parameters()?;
    Ok(PageQuery {
        list,
        filter: DeliveryFilter::parse(|name| inbound.query(name))?,
        after: list.parse(inbound.query("cursor").as_deref(), |position| DeliveryId::parse_whole(position).ok())?,
        limit: DELIVERY_PAGE.parse(inbound.query("limit").as_deref()) as usize,
    })
}

/// The endpoints of a log with their breakers.
type Breakers = BTreeMap<EndpointId, Breaker>;

fn breaker_of(found: EndpointWithHealth) -> (EndpointId, Breaker) {
    (found.endpoint.id, found.health.breaker)
}

/// The endpoint of an id, if the coach has it or has deleted it.
async fn one_endpoint(app: &App, session: &Session, id: &EndpointId) -> Result<Breakers, Problem> {
    if let Some(found) = app.endpoints.find(&session.coach, id).await? {
        return Ok(Breakers::from([breaker_of(found.with_health())]));
    }
    let is_deleted = app.deliveries.has_deleted(&session.coach, id, session.now).await?;
    Ok(is_deleted.then(|| (id.clone(), Breaker::default())).into_iter().collect())
}

/// The endpoints whose deliveries are kept.
async fn all_endpoints(app: &App, session: &Session) -> Result<Breakers, Problem> {
    let existing = app.endpoints.list_with_health(&session.coach);
    let deleted = app.deliveries.deleted_endpoints(&session.coach, session.now);
    let (existing, deleted) = try_join(existing, deleted).await?;
    let deleted = deleted.into_iter().map(|id| (id, Breaker::default()));
    Ok(deleted.chain(existing.into_iter().map(breaker_of)).collect())
}

async fn page(app: &App, breakers: &Breakers, query: &PageQuery<'_>, session: &Session) -> Result<Reply, Problem> {
    let PageQuery { list, filter, after, limit } = query;
    let (coach, endpoints) = (&session.coach, &breakers.keys().cloned().collect::<Vec<_>>());
    let request = DeliveryLogRequest { coach, endpoints, filter, after: after.as_ref(), limit: *limit };
    let DeliveryLogPage { deliveries, next_cursor } = app.deliveries.page(&request, session.now).await?;
    let behind = |delivery: DeliveryView| match breakers.get(&delivery.endpoint_id) {
        Some(breaker) => delivery.behind(breaker, session.now),
        None => delivery,
    };
    let next_cursor = next_cursor.map(|last| list.cursor(last.as_str()));
    Reply::ok(&DeliveryPage { data: deliveries.into_iter().map(behind).collect(), next_cursor })
}
