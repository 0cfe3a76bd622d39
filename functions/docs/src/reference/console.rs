//! The request of an operation, as data of the button that opens the console. `assets/console.js` builds its form.

use edge::routes::Access;
use maud::{Markup, html};
use serde_json::json;

use super::{facts, samples};
use crate::document::operation::Operation;
use crate::document::parameter::Parameter;
use crate::document::response::Response;
use crate::parts::icon;

/// The button that opens the console, which a script shows where the API serves the page itself. Operations for
/// browsers have none.
pub(super) fn button(operation: &Operation, responses: &[Response]) -> Markup {
    let route = operation.route;
    let is_session = matches!(route.access, Access::Session);
    let parameter = |parameter: &Parameter| {
        json!({
            "name": parameter.name, "in": parameter.place.as_str(), "required": parameter.is_required,
            "value": samples::example(parameter),
        })
    };
    let body = operation.body.as_ref().and_then(|body| body.content.examples.first());
    let request = json!({
        "method": route.method,
        "path": route.path,
        "credential": facts::credential(route.access),
        "isSession": is_session,
        "parameters": operation.parameters.iter().map(parameter).collect::<Vec<_>>(),
        "body": body.map(|example| format!("{:#}", example.value)),
    });
    html! {
        @if samples::answers_json(responses) {
            button .try type="button" hidden data-request=(request.to_string()) { (icon("play")) "Try it" }
        }
    }
}
