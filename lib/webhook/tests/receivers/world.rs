//! Helpers of the webhook client's tests: clients, names, attempts.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use domain::delivery::{AttemptResult, WebhookHeaders};
use domain::id::EventId;
use domain::mode::Mode;
use domain::receiver_url::{Reach, ReceiverUrl};
use rustls::RootCertStore;
use webhook::resolve::{Lookup, Names};
use webhook::{Answer, Webhook, WebhookClient};

/// Deadline of an attempt. Anything on this machine that is not slow on purpose takes far less.
pub(crate) const DEADLINE: Duration = Duration::from_secs(2);

/// A resolver of made-up names. Other names do not resolve.
#[derive(Default)]
pub(crate) struct Book {
    pages: Mutex<HashMap<String, Vec<IpAddr>>>,
    lookups: AtomicUsize,
}

impl Book {
    pub(crate) fn of(names: &[(&str, &[&str])]) -> Arc<Self> {
        let book = Self::default();
        for (name, addresses) in names {
            book.set(name, addresses);
        }
        Arc::new(book)
    }

    pub(crate) fn set(&self, name: &str, addresses: &[&str]) {
        let addresses = addresses.iter().map(|text| text.parse().unwrap()).collect();
        self.pages.lock().unwrap().insert(name.to_owned(), addresses);
    }

    pub(crate) fn lookups(&self) -> usize {
        self.lookups.load(Ordering::Relaxed)
    }
}

impl Names for Book {
    fn lookup(&self, name: &str) -> Lookup {
        self.lookups.fetch_add(1, Ordering::Relaxed);
        let found = self.pages.lock().unwrap().get(name).cloned();
        Box::pin(async move { found.ok_or_else(|| std::io::Error::other("no such name")) })
    }
}

/// Mozilla's list of certificate authorities.
pub(crate) fn mozilla() -> RootCertStore {
    RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() }
}

/// A client for receivers on this machine.
pub(crate) fn client() -> WebhookClient {
    client_with(DEADLINE, Book::of(&[]), mozilla())
}

pub(crate) fn client_with(deadline: Duration, book: Arc<Book>, authorities: RootCertStore) -> WebhookClient {
    WebhookClient::with(Reach::PublicAndLoopback, deadline, book, authorities).unwrap()
}

/// Makes one attempt to send to `url`.
pub(crate) async fn post(client: &WebhookClient, url: &str) -> Answer {
    let url = ReceiverUrl::parse(url, Reach::PublicAndLoopback).unwrap();
    let event_id = EventId::parse("evt_1").unwrap();
    let headers = WebhookHeaders {
        event_id: &event_id,
        event_type: "new_client",
        unix_s: 1_700_000_000,
        signature: Some("v1,abc"),
        mode: Mode::Live,
    };
    client.send(Webhook { url: &url, headers, body: b"{}".to_vec() }).await
}

/// The result of an attempt, as the delivery log shows it.
pub(crate) fn outcome(answer: &Answer) -> String {
    match &answer.result {
        AttemptResult::StatusCode(status) => status.to_string(),
        AttemptResult::Error(reason) => reason.clone(),
    }
}
