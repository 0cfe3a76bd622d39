//! `GET /v1/events`: a page of the event feed.

use domain::cursor::CURSOR_RULE;
use domain::event_feed::{
    CursorError, EventPage, FeedChoice, FeedEvent, FeedQuery, FeedReader, OrderedFeed, parse_types,
};
use domain::fields::Invalid;
use domain::list::Order;
use edge::{EventReader, Inbound, Problem, Reply};
use store::event_feed::EventFeed;

use crate::access::check_allowed;

/// Reads of a feed in which the event behind the cursor is missing. An event that was being stored is there when the
/// feed is read again.
const READS: usize = 2;

pub(crate) async fn list(feed: EventFeed, reader: EventReader, inbound: Inbound) -> Result<Reply, Problem> {
    let wanted = feed_reader(&reader, &inbound)?;
    page(&feed, &reader, &wanted).await
}

/// Reads the request. Permissions come before the rules of parameters.
fn feed_reader(reader: &EventReader, inbound: &Inbound) -> Result<FeedReader, Problem> {
    let parameter = |name: &str| inbound.query(name);
    let types = parse_types(parameter)?;
    check_allowed(&reader.access, types.as_deref().unwrap_or_default())?;
    inbound.only_known_parameters()?;
    let FeedQuery { since, order, cursor, limit } = FeedQuery::parse(parameter)?;
    let parse = |text: String| feed_of(reader, order).parse(&text, reader.now);
    let cursor = cursor.map(parse).transpose().map_err(|error| match error {
        CursorError::Malformed => Problem::from(Invalid::field("cursor", CURSOR_RULE)),
        CursorError::Expired => Problem::CursorExpired,
    })?;
    let types = types.unwrap_or_else(|| reader.access.types.clone());
    Ok(FeedReader { types, since, order, cursor, limit, now: reader.now })
}

fn feed_of(reader: &EventReader, order: Order) -> OrderedFeed<'_> {
    OrderedFeed { coach: &reader.coach, order, unbroken_since: reader.since }
}

async fn page(feed: &EventFeed, reader: &EventReader, wanted: &FeedReader) -> Result<Reply, Problem> {
    for _ in 0..READS {
        let scan = feed.scan(&reader.coach, wanted).await?;
        if let FeedChoice::Page { events, next, has_more } = wanted.choose(&scan) {
            let render = |event| FeedEvent::render(event, reader.access.payload_mode);
            let data = events.into_iter().map(render).collect();
            let next_cursor = next.map(|next| feed_of(reader, wanted.order).text(next));
            return Reply::ok(&EventPage { data, next_cursor, has_more });
        }
    }
    Err(Problem::CursorExpired)
}
