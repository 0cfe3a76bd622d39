//! The facts of an operation that callers have to know first: its credential, permission, repeats, cost and seat.

use domain::rate_limit::Limit;
use edge::Code;
use edge::routes::{Access, Idempotency};

use crate::document::operation::Operation;
use crate::document::response::Response;
use crate::site::{REFERENCE, SANDBOX_GUIDE};

/// A fact, in Markdown, with its icon and the page that explains it.
pub(super) struct Fact {
    pub(super) icon: &'static str,
    pub(super) text: String,
    pub(super) link: Option<String>,
}

impl Fact {
    fn new(icon: &'static str, text: impl Into<String>, link: &str) -> Self {
        Self { icon, text: text.into(), link: Some(link.to_owned()) }
    }
}

/// Returns the facts of an operation.
pub(super) fn of(operation: &Operation, responses: &[Response]) -> Vec<Fact> {
    let route = operation.route;
    let mut facts = vec![match credential(route.access) {
        Some(name) => Fact::new("key", name, &format!("{REFERENCE}#credentials")),
        None => Fact { icon: "key", text: "No credential".to_owned(), link: None },
    }];
    if route.access == Access::Sandbox {
        facts.push(Fact::new("info", "In a sandbox only", SANDBOX_GUIDE));
    }
    let guide = if matches!(route.access, Access::Crm(_)) { "crm" } else { "getting-started#get-a-key" };
    let permission = route.permission().map(|permission| format!("`{}`", permission.as_str()));
    facts.extend(permission.map(|name| Fact::new("lock", name, &format!("/docs/guides/{guide}"))));
    let repeats = "/docs/guides/idempotency";
    facts.push(match (route.method, route.idempotency()) {
        ("GET", _) => Fact { icon: "eye", text: "Changes nothing".to_owned(), link: None },
        (_, Idempotency::Required) => Fact::new("repeat", "`Idempotency-Key` required", repeats),
        (_, Idempotency::HeaderOrEmail | Idempotency::Optional) => Fact::new("repeat", "`Idempotency-Key`", repeats),
        (_, Idempotency::None) => Fact { icon: "repeat", text: "Safe to repeat".to_owned(), link: None },
    });
    let limit = match route.access {
        Access::Public => None,
        Access::Session => Some(Limit::SettingsRequests),
        Access::Partner(_) | Access::Crm(_) | Access::Events | Access::AnyKey | Access::Sandbox | Access::Assistant => {
            Some(Limit::Requests)
        }
    };
    let limit = limit.map(|limit| format!("1 of **{}** a minute", limit.per_minute()));
    facts.extend(limit.map(|text| Fact::new("gauge", text, "/docs/guides/limits#requests")));
    let codes = responses.iter().flat_map(|response| &response.causes).filter_map(|cause| cause.code);
    if codes.into_iter().any(|code| code == Code::PlanLimitReached) {
        facts.push(Fact::new("person", "Takes a **seat**", "/docs/guides/errors#codes"));
    }
    facts
}

/// The name of a route's credential.
pub(super) fn credential(access: Access) -> Option<&'static str> {
    match access {
        Access::Partner(_) => Some("Partner key"),
        Access::Crm(_) => Some("CRM key"),
        Access::Events | Access::AnyKey | Access::Sandbox | Access::Assistant => Some("Key of either scope"),
        Access::Session => Some("Session of a coach"),
        Access::Public => None,
    }
}
