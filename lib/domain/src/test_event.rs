//! Example events: what a coach has sent to try a receiver. They look like the real ones, name nobody, and say that they are tests.

use serde_json::{Value, json};

use crate::event::{EventType, PayloadMode};
use crate::time::Timestamp;

/// The id of the client that examples are about. There is none.
pub const CLIENT: &str = "client_example";

/// The body of an example event of that type, for receivers of that mode.
pub fn body(event_type: EventType, mode: PayloadMode, at: Timestamp) -> Vec<u8> {
    let mut client = json!({ "id": CLIENT });
    if mode == PayloadMode::ContactDetails {
        client["name"] = json!("Example Client");
        client["email"] = json!("client@example.com");
        client["phone"] = Value::Null;
    }
    let mut data = own_data(event_type, at);
    data["client"] = client;
    data["test"] = json!(true);
    json!({ "type": event_type.as_str(), "timestamp": at, "data": data }).to_string().into_bytes()
}

fn own_data(event_type: EventType, at: Timestamp) -> Value {
    let check_in = json!({ "id": "check_in_example", "submitted_at": at });
    match event_type {
        EventType::NewClient => json!({ "created_at": at, "source": "application" }),
        EventType::CheckInSubmitted | EventType::SystemGradeDrop => json!({ "check_in": check_in }),
        EventType::LowCheckInScore => json!({ "check_in": check_in, "automation": { "id": "automation_example" } }),
        EventType::PhaseAdvanced => json!({ "from_phase": "Foundation", "to_phase": "Build", "advanced_at": at }),
        EventType::MessageReceived => json!({ "message": { "id": "message_example", "received_at": at } }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_example_is_marked_and_names_somebody_only_where_that_is_wanted() {
        for event_type in EventType::ALL {
            let at = Timestamp::from_ms(1_790_000_000_000);
            let read = |mode| serde_json::from_slice::<Value>(&body(event_type, mode, at)).unwrap();
            let bare = read(PayloadMode::Identifiers);
            assert_eq!((&bare["type"], &bare["data"]["test"]), (&json!(event_type.as_str()), &json!(true)));
            assert_eq!(bare["data"]["client"], json!({ "id": "client_example" }));
            assert_eq!(read(PayloadMode::ContactDetails)["data"]["client"]["email"], "client@example.com");
        }
    }
}
