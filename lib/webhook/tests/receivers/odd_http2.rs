//! HTTP/2 answers that no library would send: frames written by hand.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use webhook::WebhookClient;

use crate::certificates::{Authority, NAME};
use crate::world::{Book, DEADLINE, client_with, outcome, post};

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const CONTINUATION: u8 = 9;
/// END_STREAM of a request or an answer, ACK of settings and pings.
const END: u8 = 0x1;
const END_HEADERS: u8 = 0x4;
const MAX_FRAME_BYTES: usize = 16 * 1024;
const PREFACE_BYTES: usize = 24;
/// `:status` as entries of the static table.
const OK: u8 = 0x88;
const NOT_FOUND: u8 = 0x8d;

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// A literal field without indexing.
fn field(name: &str, value: &str) -> Vec<u8> {
    let length = |text: &str| {
        let mut rest = text.len().checked_sub(127)?;
        let mut bytes = vec![0x7f];
        while rest >= 0x80 {
            bytes.push(u8::try_from(rest & 0x7f).unwrap() | 0x80);
            rest >>= 7;
        }
        bytes.push(u8::try_from(rest).unwrap());
        Some(bytes)
    };
    let string = |text: &str| {
        let length = length(text).unwrap_or_else(|| vec![u8::try_from(text.len()).unwrap()]);
        [length, text.as_bytes().to_vec()].concat()
    };
    [vec![0], string(name), string(value)].concat()
}

/// An answer of this header block, in as many frames as it takes, with the body `ok`.
fn answer(stream: u32, block: &[u8]) -> Vec<u8> {
    let mut frames = Vec::new();
    let count = block.chunks(MAX_FRAME_BYTES).count();
    for (number, fragment) in block.chunks(MAX_FRAME_BYTES).enumerate() {
        let kind = if number == 0 { HEADERS } else { CONTINUATION };
        let flags = if number + 1 == count { END_HEADERS } else { 0 };
        frames.extend(frame(kind, flags, stream, fragment));
    }
    frames.extend(frame(DATA, END, stream, b"ok"));
    frames
}

/// A receiver that answers each request with scripted bytes.
struct Raw {
    port: u16,
    connections: Arc<AtomicUsize>,
    server: JoinHandle<()>,
}

impl Raw {
    async fn start(answers: impl Fn(u32) -> Vec<u8> + Send + Sync + 'static) -> (Self, WebhookClient) {
        let authority = Authority::named("One");
        let acceptor = authority.identity().both_versions(&["h2"]);
        let client = client_with(DEADLINE, Book::of(&[(NAME, &["127.0.0.1"])]), authority.trusted());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let connections = Arc::new(AtomicUsize::new(0));
        let (answers, counted) = (Arc::new(answers), Arc::clone(&connections));
        let server = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                counted.fetch_add(1, Ordering::Relaxed);
                let (acceptor, answers) = (acceptor.clone(), Arc::clone(&answers));
                // The client may close the connection at any time.
                tokio::spawn(async move { serve(stream, acceptor, &*answers).await.ok() });
            }
        });
        (Self { port, connections, server }, client)
    }

    fn url(&self) -> String {
        format!("https://{NAME}:{}/secret-path", self.port)
    }

    fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn serve(
    stream: TcpStream,
    acceptor: TlsAcceptor,
    answers: &(dyn Fn(u32) -> Vec<u8> + Sync),
) -> std::io::Result<()> {
    let mut stream = acceptor.accept(stream).await?;
    stream.read_exact(&mut [0; PREFACE_BYTES]).await?;
    stream.write_all(&frame(SETTINGS, 0, 0, &[])).await?;
    loop {
        let mut head = [0; 9];
        stream.read_exact(&mut head).await?;
        let mut payload = vec![0; u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize];
        stream.read_exact(&mut payload).await?;
        let (kind, flags, id) = (head[3], head[4], u32::from_be_bytes(head[5..].try_into().unwrap()));
        match kind {
            SETTINGS if flags & END == 0 => stream.write_all(&frame(SETTINGS, END, 0, &[])).await?,
            PING if flags & END == 0 => stream.write_all(&frame(PING, END, 0, &payload)).await?,
            HEADERS | DATA if flags & END != 0 => stream.write_all(&answers(id)).await?,
            _ => {}
        }
        stream.flush().await?;
    }
}

fn many(count: usize, bytes: usize) -> Vec<u8> {
    (0..count).flat_map(|number| field(&format!("x-{number}"), &"y".repeat(bytes))).collect()
}

#[tokio::test]
async fn a_status_counts_whatever_the_header_block_holds_and_the_connection_is_kept() {
    for (shown, fields) in [
        ("101 fields", many(101, 1)),
        ("1000 fields", many(1000, 1)),
        ("64 KiB of fields", many(10, 6600)),
        ("800 KiB of fields", many(80, 10_000)),
        ("3 MiB of fields", many(300, 10_000)),
        ("a field of 100 KiB", many(1, 102_400)),
        ("three fields of 1 MiB", many(3, 1_048_576)),
        ("a blank in a name", field("Allow-Credentials ", "true")),
        ("a name in capitals", field("X-Capital", "y")),
        ("no name", field("", "y")),
        ("a name beyond ASCII", field("x-größe", "groß")),
        ("a folded value", field("x-folded", "a\r\n b")),
        ("control characters", field("x-bell", "\u{7}\0")),
        ("a field of the connection", field("connection", "keep-alive")),
        ("a coding", field("transfer-encoding", "identity")),
        ("a length that is none", field("content-length", "many")),
        ("a wrong length", field("content-length", "3")),
        ("lengths that differ", [field("content-length", "2"), field("content-length", "3")].concat()),
        ("a pseudo-field that is none", field(":made-up", "y")),
        ("two statuses", vec![NOT_FOUND]),
    ] {
        for (status, code) in [(vec![OK], "200"), (field(":status", "410"), "410")] {
            let block = [status, fields.clone()].concat();
            let (receiver, client) = Raw::start(move |stream| answer(stream, &block)).await;
            for _ in 0..2 {
                let answered = post(&client, &receiver.url()).await;
                assert_eq!((outcome(&answered).as_str(), answered.excerpt.as_deref()), (code, Some("ok")), "{shown}");
            }
            assert_eq!(receiver.connections(), 1, "{shown}");
        }
    }
}

#[tokio::test]
async fn odd_headers_of_one_answer_leave_the_others_on_its_connection_alone() {
    let (receiver, client) = Raw::start(|stream| match stream % 8 {
        1 => answer(stream, &[OK]),
        3 => answer(stream, &[vec![OK], many(80, 10_000), many(1, 102_400)].concat()),
        5 => answer(stream, &[vec![OK], field("No Token", "\0")].concat()),
        _ => answer(stream, &field("x", "no status")),
    })
    .await;
    let url = receiver.url();
    assert_eq!(outcome(&post(&client, &url).await), "200");
    let all = tokio::join!(
        post(&client, &url),
        post(&client, &url),
        post(&client, &url),
        post(&client, &url),
        post(&client, &url),
        post(&client, &url),
        post(&client, &url),
    );
    let mut results = [all.0, all.1, all.2, all.3, all.4, all.5, all.6].map(|answered| outcome(&answered));
    results.sort();
    assert_eq!(results, ["200", "200", "200", "200", "200", "HTTP/2 stream reset", "HTTP/2 stream reset"]);
    assert_eq!(receiver.connections(), 1);
}

#[tokio::test]
async fn a_header_block_without_end_counts_by_its_status_and_takes_its_connection_with_it() {
    let endless = |stream| {
        let more = frame(CONTINUATION, 0, stream, &many(100, 100));
        [frame(HEADERS, 0, stream, &[OK]), more.repeat(500)].concat()
    };
    let silent = |stream| frame(HEADERS, 0, stream, &[vec![OK], field("retry-after", "9")].concat());
    let broken =
        |stream| [frame(HEADERS, 0, stream, &[OK]), frame(CONTINUATION, END_HEADERS, stream, &[0x80])].concat();
    type Answers = Box<dyn Fn(u32) -> Vec<u8> + Send + Sync>;
    let all: [(Answers, Duration); 3] = [
        (Box::new(endless), Duration::ZERO),
        (Box::new(silent), Duration::from_millis(490)),
        (Box::new(broken), Duration::ZERO),
    ];
    for (number, (answers, least)) in all.into_iter().enumerate() {
        let (receiver, client) = Raw::start(answers).await;
        for posted in 1..=2 {
            let answered = post(&client, &receiver.url()).await;
            assert_eq!(outcome(&answered), "200", "case {number}, post {posted}");
            let took = Duration::from_millis(answered.duration_ms.into());
            assert!((least..DEADLINE).contains(&took), "case {number} took {took:?}");
            assert_eq!(receiver.connections(), posted, "case {number}");
        }
    }
}

#[tokio::test]
async fn retry_after_is_read_in_http2_too() {
    let block = [field(":status", "429"), many(500, 100), field("retry-after", "120")].concat();
    let (receiver, client) = Raw::start(move |stream| answer(stream, &block)).await;
    let answered = post(&client, &receiver.url()).await;
    assert_eq!((outcome(&answered).as_str(), answered.retry_after.as_deref()), ("429", Some("120")));
}
