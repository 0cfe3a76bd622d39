//! `GET /v1/events/samples`: one example of a type, as the key would get it.

use domain::event::{example, example_time};
use domain::event_feed::{EventSamples, FeedEvent, parse_sample_type};
use edge::{EventReader, Inbound, Problem, Reply};
use store::event_feed::EventFeed;

use crate::access::check_allowed;

pub(crate) async fn sample(_: EventFeed, reader: EventReader, inbound: Inbound) -> Result<Reply, Problem> {
    let event_type = parse_sample_type(inbound.query("type").as_deref())?;
    check_allowed(&reader.access, &[event_type])?;
    let event = example(event_type.into(), example_time());
    Reply::ok(&EventSamples { data: vec![FeedEvent::render(&event, reader.access.payload_mode)] })
}
