//! `GET /.well-known/webhook-ips.json`: the addresses that webhooks come from. Firewalls of receivers read it.

use axum::response::Response;
use domain::webhook_addresses::WebhookAddresses;
use edge::{Inbound, Reply};

/// Cache time of the list. Operators list a new address long before webhooks come from it.
const MAX_AGE_S: u32 = 300;

pub(crate) fn answer(addresses: &WebhookAddresses, inbound: &Inbound) -> Response {
    let kept = format!("public, max-age={MAX_AGE_S}");
    let list = Reply::ok(addresses).map(|list| list.header("cache-control", kept));
    list.unwrap_or_else(|problem| Reply::problem(&problem, inbound)).into_response_for(inbound)
}
