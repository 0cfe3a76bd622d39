//! Links of answers: the operations that take values of a record.

use domain::openapi::referenced;
use serde_json::{Map, Value, json};

use super::components::Schemas;

const PARAMETER: &str = "parameters";
/// A member of the body. It stands in an extension, because `requestBody` of a link can only be a whole body.
const MEMBER: &str = "x-request-body";

/// The schema of a record, an operation that takes a value of it, what and where the value is there, and the place of
/// the value in the record.
const LINKS: [(&str, &str, &str, &str, &str); 29] = [
    ("CreateClientResult", "readClient", PARAMETER, "clientId", "/client_id"),
    ("CreateClientResult", "updateClient", PARAMETER, "clientId", "/client_id"),
    ("CreateClientResult", "createLoginLink", PARAMETER, "clientId", "/client_id"),
    ("CreateClientResult", "readCompliance", PARAMETER, "clientId", "/client_id"),
    ("CreateClientResult", "listCheckIns", PARAMETER, "clientId", "/client_id"),
    ("CreateClientResult", "listDailyLogs", PARAMETER, "clientId", "/client_id"),
    ("Contact", "readContact", PARAMETER, "id", "/id"),
    ("Contact", "updateContact", PARAMETER, "id", "/id"),
    ("Contact", "createOpportunity", MEMBER, "contactId", "/id"),
    ("Contact", "findTimes", MEMBER, "leadId", "/id"),
    ("Opportunity", "readOpportunity", PARAMETER, "id", "/id"),
    ("Opportunity", "updateOpportunity", PARAMETER, "id", "/id"),
    ("Calendar", "findTimes", MEMBER, "calendarId", "/id"),
    ("Availability", "createBooking", MEMBER, "leadId", "$request.body#/leadId"),
    ("Availability", "createBooking", MEMBER, "calendarId", "/calendars/0/id"),
    ("Availability", "createBooking", MEMBER, "date", "/calendars/0/days/0/date"),
    ("Availability", "createBooking", MEMBER, "time", "/calendars/0/days/0/slots/0"),
    ("Booking", "readBooking", PARAMETER, "id", "/id"),
    ("Booking", "rescheduleBooking", PARAMETER, "id", "/id"),
    ("Booking", "rescheduleBooking", MEMBER, "leadId", "/leadId"),
    ("Booking", "cancelBooking", PARAMETER, "id", "/id"),
    ("Booking", "cancelBooking", MEMBER, "leadId", "/leadId"),
    ("NewKey", "updateKey", PARAMETER, "id", "/id"),
    ("NewKey", "rotateKey", PARAMETER, "id", "/id"),
    ("NewKey", "revokeKey", PARAMETER, "id", "/id"),
    ("NewEndpoint", "readEndpoint", PARAMETER, "id", "/id"),
    ("NewEndpoint", "updateEndpoint", PARAMETER, "id", "/id"),
    ("NewEndpoint", "deleteEndpoint", PARAMETER, "id", "/id"),
    ("NewEndpoint", "listDeliveries", PARAMETER, "id", "/id"),
];

/// Renders the links of an answer with this schema.
pub(super) fn of(schema: &Value, schemas: &Schemas) -> Map<String, Value> {
    let mut links = Map::new();
    for (record, operation, kind, name, value) in LINKS {
        let Some(place) = schemas.place_of(record, schema) else { continue };
        let is_whole = value.starts_with('$');
        let expression = if is_whole { value.to_owned() } else { format!("$response.body#{place}{value}") };
        let link = links.entry(operation).or_insert_with(|| json!({ "operationId": operation, PARAMETER: {} }));
        link[kind][name] = json!(expression);
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
            _ if is_record(&schema["items"]) || is_record(&schema["items"]["anyOf"][0]) => Some(format!("/{member}/0")),
            _ => None,
        });
        if name == record { Some(String::new()) } else { places.next() }
    }
}
