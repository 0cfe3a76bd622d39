//! `GET /v1/requests`: the request log of the caller's key, newest first.

use domain::api_key::Scope;
use domain::cursor::CursorList;
use domain::request_log::RequestFilter;
use edge::{Inbound, KeyHolder, Problem, Reply, request_page};
use store::request_log::Requests;

pub(crate) async fn list(requests: Requests, caller: KeyHolder, inbound: Inbound) -> Result<Reply, Problem> {
    let KeyHolder { key, now } = caller;
    if key.scope == Scope::Partner && !key.entitlements.partner_api {
        return Err(Problem::NotEntitled);
    }
    let list = CursorList { name: &format!("requests/{}", key.key_id), coach: &key.coach_id };
    let own = |filter| RequestFilter { key_id: Some(key.key_id.clone()), ..filter };
    request_page(&requests, &list, &inbound, now, own).await
}
