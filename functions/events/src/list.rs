//! `GET /v1/events`: a page of the event feed.
//!
//! A key that reads few types of a busy feed would read far for each event. So a request reads up to [`MAX_READS`]
//! times, and its page may be short. The cursor then leads on from there.

use axum::extract::State;
use axum::response::Response;
use domain::event_feed::{CursorError, EventPage, FeedChoice, FeedCursor, FeedEvent, FeedQuery, FeedReader, Scan};
use domain::fields::Invalid;
use edge::{EventReader, Inbound, Problem, Reply};

use crate::app::{App, check_allowed};

/// Reads of a request, one after the other.
const MAX_READS: usize = 5;
/// Items of each read but the first, which reads as many as the page holds.
const FURTHER_ITEMS: u32 = 500;

pub(crate) async fn list(State(app): State<App>, inbound: Inbound) -> Response {
    let work = async |reader: EventReader| {
        let query = FeedQuery::parse(|name| inbound.query(name))?;
        let wanted = feed_reader(&reader, query)?;
        page(&app, &reader, &wanted).await
    };
    app.gate.events(&inbound, work).await
}

fn feed_reader(reader: &EventReader, query: FeedQuery) -> Result<FeedReader, Problem> {
    let types = match query.types {
        Some(types) => {
            check_allowed(&reader.access, &types)?;
            types
        }
        None => reader.access.types.clone(),
    };
    let parse = |text: String| FeedCursor::parse(&text, query.order, reader.now);
    let cursor = query.cursor.map(parse).transpose().map_err(|error| match error {
        CursorError::Malformed => {
            Problem::from(Invalid::field("cursor", "must be the next_cursor of an earlier answer in the same order"))
        }
        CursorError::Expired => Problem::CursorExpired,
    })?;
    Ok(FeedReader { types, since: query.since, order: query.order, cursor, limit: query.limit, now: reader.now })
}

async fn page(app: &App, reader: &EventReader, wanted: &FeedReader) -> Result<Reply, Problem> {
    let (mut scan, mut gaps) = (Scan::default(), 0);
    // One item more than the page holds shows if there is more.
    let mut most = u32::try_from(wanted.limit + 1).unwrap_or(FURTHER_ITEMS);
    for read in 1..=MAX_READS {
        app.feed.scan(&reader.coach, wanted, &mut scan, most).await?;
        match wanted.choose(&scan, read == MAX_READS) {
            FeedChoice::Page { events, next, has_more } => {
                let render = |event| FeedEvent::render(event, reader.access.payload_mode);
                let data = events.into_iter().map(render).collect();
                return Reply::ok(&EventPage { data, next_cursor: next, has_more });
            }
            FeedChoice::ReadOn => most = FURTHER_ITEMS,
            // An event that was being stored is there when the feed is read again.
            FeedChoice::Gap if gaps == 0 => (scan, gaps) = (Scan::default(), 1),
            FeedChoice::Gap => break,
        }
    }
    Err(Problem::CursorExpired)
}
