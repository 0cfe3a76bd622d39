//! `delivery retry`: a fresh retry chain, under the same webhook-id.

use domain::audit::{AuditAction, AuditDetail};
use domain::delivery::DeliveryStatus;
use domain::endpoint::EndpointStatus;
use store::delivery::{Deliveries, ResendLookup};
use store::endpoint_ref::EndpointRef;
use store::operating::Overview;
use store::unit::Unit;

use crate::act::RecordAct;
use crate::connection::Operator;
use crate::delivery::found;
use crate::failure::Failure;
use crate::options::DeliveryCommand;
use crate::output::Answer;

pub(crate) async fn retry(
    operator: &Operator,
    DeliveryCommand::Retry { id, place, consent }: &DeliveryCommand,
) -> Result<Answer, Failure> {
    let overview = Overview::new(&operator.env, &operator.db)?;
    let delivery = found(&overview, id, place).await?;
    let (coach, endpoint_id) = (&delivery.coach_id, &delivery.endpoint_id);
    if delivery.status == DeliveryStatus::Pending {
        return Err(Failure::refused(format!("delivery {id} is pending: its next attempt is under way or waits")));
    }
    let endpoint = overview.endpoint(coach, endpoint_id).await?.map(|stored| stored.endpoint);
    let endpoint = match endpoint {
        Some(endpoint) if endpoint.status == EndpointStatus::Enabled => endpoint,
        Some(_) => return Err(Failure::refused(format!("endpoint {endpoint_id} is off: enable it first"))),
        None => return Err(Failure::refused(format!("endpoint {endpoint_id} is deleted"))),
    };
    let vault = operator.vault().await?;
    let deliveries = Deliveries::new(&operator.env, &operator.db, &vault)?;
    let kept = match deliveries.find(endpoint_id, id, operator.now()).await? {
        ResendLookup::Ready(kept) => kept,
        ResendLookup::Erased => return Err(Failure::refused(format!("the client of delivery {id} is erased"))),
        ResendLookup::NotFound => return Err(Failure::refused(format!("delivery {id} is older than 30 days"))),
    };
    let host = endpoint.url.host();
    consent.ask(
        &operator.stack,
        &format!("sends delivery {id} to endpoint {endpoint_id} ({host}) of coach {coach} again"),
    )?;
    let now = operator.now();
    let detail = AuditDetail {
        endpoint_id: Some(endpoint_id.clone()),
        event_type: Some(kept.event_type().to_owned()),
        ..AuditDetail::of_endpoint(&endpoint)
    };
    let endpoint_ref = EndpointRef { coach: coach.clone(), id: endpoint_id.clone() };
    let (write, order) = deliveries.restart(&endpoint_ref, &kept, now);
    let unit = Unit::new().write([write]).entries([order]);
    let act = RecordAct { action: AuditAction::DeliveryRetried, target: id.as_str(), coach };
    act.commit(operator, &vault, unit, consent.detail(detail), now).await
}
