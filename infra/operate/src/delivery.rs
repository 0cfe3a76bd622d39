//! `delivery`: a delivery with its attempts, and where its order is.

use domain::delivery::DeliveryStatus;
use domain::id::{DeliveryId, EndpointId};
use domain::time::Timestamp;
use serde::Serialize;
use store::delivery::OperatedDelivery;
use store::operating::Overview;

use crate::connection::Operator;
use crate::dead;
use crate::failure::Failure;
use crate::options::{self, Place};
use crate::output::Answer;
use crate::progress::Said;

#[derive(Serialize)]
struct DeliveryAnswer {
    #[serde(flatten)]
    delivery: OperatedDelivery,
    order: Option<Order>,
}

/// Where the order of a pending delivery is. Queues cannot be searched, so the record says whether it is due.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum Order {
    Outbox,
    Queued,
    Waiting,
    Dead,
}

pub(crate) async fn delivery(operator: &Operator, wanted: &options::Delivery) -> Result<Answer, Failure> {
    let Some(id) = &wanted.id else { return Err(Failure::usage("which delivery?")) };
    let overview = Overview::new(&operator.env, &operator.db)?;
    let delivery = found(&overview, id, &wanted.place).await?;
    let order = match delivery.status {
        DeliveryStatus::Pending => Some(order_of(operator, &overview, &delivery).await?),
        DeliveryStatus::Delivered | DeliveryStatus::Failed => None,
    };
    Answer::of(&DeliveryAnswer { delivery, order })
}

/// Finds a delivery, by its endpoint or by a scan.
pub(crate) async fn found(overview: &Overview, id: &DeliveryId, place: &Place) -> Result<OperatedDelivery, Failure> {
    let missing =
        || Failure::not_found(format!("no delivery {id}: it is kept for 30 days; `find` says what the id is"));
    for endpoint in endpoints(overview, id, place).await?.iter() {
        if let Some(delivery) = overview.delivery(endpoint, id).await? {
            return Ok(delivery);
        }
    }
    Err(missing())
}

/// The endpoints that may have a delivery.
async fn endpoints(overview: &Overview, id: &DeliveryId, place: &Place) -> Result<Vec<EndpointId>, Failure> {
    if let Some(endpoint) = &place.endpoint {
        return Ok(vec![endpoint.clone()]);
    }
    match &place.coach {
        Some(coach) => {
            let summary = overview.coach(coach, Timestamp::from_ms(0)).await?;
            let summary = summary.ok_or_else(|| crate::coach::no_coach(coach))?;
            Ok(summary.endpoints.into_iter().map(|endpoint| endpoint.id).collect())
        }
        None => Ok(overview.endpoint_of_delivery(id, &Said::default()).await?.into_iter().collect()),
    }
}

async fn order_of(operator: &Operator, overview: &Overview, delivery: &OperatedDelivery) -> Result<Order, Failure> {
    if overview.waits_in_outbox(&delivery.order_entry()).await? {
        return Ok(Order::Outbox);
    }
    if dead::has_order(operator, &delivery.id).await? {
        return Ok(Order::Dead);
    }
    let is_due = delivery.next_attempt_at.is_none_or(|at| at <= operator.now());
    Ok(if is_due { Order::Queued } else { Order::Waiting })
}
