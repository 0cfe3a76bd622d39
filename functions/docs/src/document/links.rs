//! Links of answers: the operations that take values of a record.

use domain::openapi::referenced;
use serde_json::{Map, Value, json};

use super::components::Schemas;

/// Names in an operation, each with the place of its value in the record.
type Places = &'static [(&'static str, &'static str)];

/// The schema of a record, the operations that take its values, and their parameters and members of their bodies.
const LINKS: [(&str, &[&str], Places, Places); 10] = [
    (
        "CreateClientResult",
        &["readClient", "updateClient", "createLoginLink", "readCompliance", "listCheckIns", "listDailyLogs"],
        &[("clientId", "/client_id")],
        &[],
    ),
    ("Contact", &["updateContact"], &[("id", "/id")], &[]),
    ("Contact", &["createOpportunity"], &[], &[("contactId", "/id")]),
    ("Contact", &["findTimes"], &[], &[("leadId", "/id")]),
    ("Opportunity", &["updateOpportunity"], &[("id", "/id")], &[]),
    ("Calendar", &["findTimes"], &[], &[("calendarId", "/id")]),
    (
        "Availability",
        &["createBooking"],
        &[],
        &[
            ("leadId", "$request.body#/leadId"),
            ("calendarId", "/calendars/0/id"),
            ("date", "/calendars/0/days/0/date"),
            ("time", "/calendars/0/days/0/slots/0"),
        ],
    ),
    ("Booking", &["rescheduleBooking", "cancelBooking"], &[("id", "/id")], &[("leadId", "/leadId")]),
    ("NewKey", &["updateKey", "rotateKey", "revokeKey"], &[("id", "/id")], &[]),
    ("NewEndpoint", &["readEndpoint", "updateEndpoint", "deleteEndpoint", "listDeliveries"], &[("id", "/id")], &[]),
];

/// Renders the links of an answer with this schema. Members of bodies stand in an extension, because `requestBody` of a
/// link can only be a whole body.
pub(super) fn of(schema: &Value, schemas: &Schemas) -> Map<String, Value> {
    let mut links = Map::new();
    for (record, operations, parameters, body) in LINKS {
        let Some(place) = schemas.place_of(record, schema) else { continue };
        let expression = |(name, value): &(&str, &str)| match value.starts_with('$') {
            true => ((*name).to_owned(), json!(value)),
            false => ((*name).to_owned(), json!(format!("$response.body#{place}{value}"))),
        };
        let expressions = |all: Places| all.iter().map(expression).collect::<Map<_, _>>();
        for id in operations {
            let mut link = json!({ "operationId": id, "parameters": expressions(parameters) });
            if !body.is_empty() {
                link["x-request-body"] = json!(expressions(body));
            }
            links.insert((*id).to_owned(), link);
        }
    }
    links
}

/// Renders the link from a page of a list to the next page.
pub(super) fn to_next_page(id: &str, path: &str) -> Value {
    let mut parameters = json!({ "cursor": "$response.body#/next_cursor" });
    if path.contains("{id}") {
        parameters["id"] = json!("$request.path.id");
    }
    json!({ "operationId": id, "parameters": parameters })
}

impl Schemas {
    /// Finds a record in an answer: as the whole, as a member, or as the first item of a list.
    fn place_of(&self, record: &str, schema: &Value) -> Option<String> {
        let is_record = |schema: &Value| schema.as_object().and_then(referenced) == Some(record);
        let name = schema.as_object().and_then(referenced)?;
        let members = self.0[name]["properties"].as_object().into_iter().flatten();
        let mut places = members.filter_map(|(member, schema)| match schema {
            _ if is_record(schema) => Some(format!("/{member}")),
            _ if is_record(&schema["items"]) => Some(format!("/{member}/0")),
            _ => None,
        });
        if name == record { Some(String::new()) } else { places.next() }
    }
}
