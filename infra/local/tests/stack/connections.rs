//! Tests of connections: bodies that are late or too long, and callers that the stack's own routes refuse.

use axum::body::Body;
use http::Request;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tower::ServiceExt;

use crate::Local;

/// A TCP connection with the bytes read so far.
struct Wire {
    stream: TcpStream,
    read: Vec<u8>,
}

impl Wire {
    async fn open(url: &str) -> Self {
        Self { stream: TcpStream::connect(url.trim_start_matches("http://")).await.unwrap(), read: Vec::new() }
    }

    async fn write(&mut self, text: &str) {
        self.stream.write_all(text.as_bytes()).await.unwrap();
    }

    /// Reads the next response and returns its status and head. Returns `None` when the connection has ended.
    async fn answer(&mut self) -> Option<(u16, String)> {
        loop {
            let text = String::from_utf8_lossy(&self.read).into_owned();
            if let Some((head, body)) = text.split_once("\r\n\r\n") {
                let head = head.to_lowercase();
                let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap_or("0");
                let length: usize = length.parse().unwrap();
                if body.len() >= length {
                    self.read.drain(..head.len() + 4 + length);
                    return Some((head[9..12].parse().unwrap(), head));
                }
            }
            if self.stream.read_buf(&mut self.read).await.ok()? == 0 {
                return None;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unused_body_may_arrive_late_and_the_connection_stays_open() {
    let local = Local::start(&["--ephemeral"]).await;
    let (api, aws) = (local.0.stack.base_url.clone(), local.0.stack.aws_url.clone());
    for (url, request, status) in [
        (&api, "GET /_local/health", 503),
        (&api, "POST /_local/health", 404),
        (&api, "POST /_local/settle", 200),
        (&api, "POST /_local/nowhere", 404),
        (&api, "POST /_local", 404),
        (&api, "GET /_local/mail", 200),
        (&api, "GET /_local/receiver.json", 200),
        (&api, "POST /nowhere", 200),
        (&api, "GET /v1/ping", 200),
        (&api, "DELETE /settings/keys/k", 401),
        (&aws, "POST /nowhere", 400),
        (&aws, "GET /", 400),
    ] {
        let mut wire = Wire::open(url).await;
        for _ in 0..2 {
            wire.write(&format!("{request} HTTP/1.1\r\nhost: localhost\r\ncontent-length: 2\r\n\r\n")).await;
            // A response that does not wait for the body arrives now.
            let early = tokio::time::timeout(std::time::Duration::from_millis(50), wire.answer()).await;
            wire.write("{}").await;
            let answer = match early {
                Ok(answer) => answer,
                Err(_) => wire.answer().await,
            };
            assert_eq!(answer.map(|(status, _)| status), Some(status), "{request}");
        }
    }
    local.0.end().await;
}

#[tokio::test]
async fn a_response_to_a_too_long_body_announces_connection_close() {
    let local = Local::start(&["--ephemeral"]).await;
    let aws = local.0.stack.timeline.aws.router();
    for (router, path) in [(local.0.router(), "/_local/settle"), (local.0.router(), "/v1/clients"), (aws, "/")] {
        let request = Request::post(path).body(Body::from(vec![b'x'; 17 * 1024 * 1024])).unwrap();
        let answer = router.oneshot(request).await.unwrap();
        assert_eq!(
            (answer.status().as_u16(), answer.headers()["connection"].as_bytes()),
            (413, &b"close"[..]),
            "{path}"
        );
    }
    local.0.end().await;
}

/// Headers of a request, and whether the stack's own routes accept them. PORT is the port that the request goes to.
const CALLERS: [(&str, bool); 32] = [
    ("host: 127.0.0.1:PORT", true),
    ("host: 127.0.0.1", true),
    ("host: localhost:PORT", true),
    ("host: LocalHost", true),
    ("host: [::1]:PORT", true),
    ("host: [::1]", true),
    ("host: 127.9.9.9:1", true),
    ("host: localhost:PORT\r\norigin: http://localhost:PORT", true),
    ("host: [::1]:PORT\r\norigin: http://[::1]:PORT\r\nsec-fetch-site: same-origin", true),
    ("host: localhost:PORT\r\nsec-fetch-site: none", true),
    // A name that an attacker points to loopback.
    ("host: evil.example", false),
    ("host: evil.example:PORT", false),
    ("host: localhost.evil.example:PORT", false),
    ("host: 127.0.0.1.evil.example:PORT", false),
    ("host: localhost@evil.example", false),
    ("host: evil.example@localhost", false),
    ("host: 192.168.0.7:PORT", false),
    ("host: 0.0.0.0:PORT", false),
    ("host: [::ffff:127.0.0.1]:PORT", false),
    ("host: localhost.:PORT", false),
    ("host: ", false),
    ("host: localhost:PORT:PORT", false),
    ("host: localhost\r\nhost: evil.example", false),
    // A page of another site, or of another server on this machine.
    ("host: localhost:PORT\r\norigin: http://evil.example", false),
    ("host: localhost:PORT\r\norigin: http://localhost:3000", false),
    ("host: localhost:PORT\r\norigin: http://127.0.0.1:PORT", false),
    ("host: localhost:PORT\r\norigin: null", false),
    ("host: localhost:PORT\r\norigin: ", false),
    ("host: localhost:PORT\r\norigin: http://localhost:PORT\r\norigin: http://evil.example", false),
    ("host: localhost:PORT\r\nsec-fetch-site: cross-site", false),
    ("host: localhost:PORT\r\nsec-fetch-site: same-site", false),
    ("host: localhost:PORT\r\norigin: http://localhost:PORT\r\nsec-fetch-site: cross-site", false),
];

/// Requests to the stack's own routes with the AWS endpoint, by the base URL that they go to.
fn own_requests(local: &Local) -> Vec<(String, &'static str)> {
    let (api, aws) = (&local.0.stack.base_url, &local.0.stack.aws_url);
    let control = [
        "GET /_local/health",
        "POST /_local/clock",
        "POST /_local/settle",
        "GET /_local/mail",
        "GET /_local/faults",
        "POST /_local/faults",
        "POST /_local/session",
        "GET /_local/calls",
        "GET /_local/events",
        "GET /_local/settings",
        "GET /_local/receiver",
        "GET /_local/receiver.json",
        "POST /_local/receiver/hooks/demo",
        "POST /_local/receiver/secrets/demo",
        "OPTIONS /_local/session",
        "GET /_local",
        "GET /_local/",
        "GET /_local/unknown",
    ];
    let endpoint = ["POST /", "POST /env/clients-1/", "POST /v2/email/outbound-emails", "GET /000000000000/queue"];
    control.map(|request| (api.clone(), request)).into_iter().chain(endpoint.map(|r| (aws.clone(), r))).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_of_other_sites_reach_neither_the_stacks_own_routes_nor_the_aws_endpoint() {
    let local = Local::start(&["--ephemeral"]).await;
    for (url, request) in own_requests(&local) {
        let port = url.rsplit(':').next().unwrap().to_owned();
        for (headers, is_allowed) in CALLERS {
            let headers = headers.replace("PORT", &port);
            let body = "{\"coach_id\": \"x\"}";
            let mut wire = Wire::open(&url).await;
            let length = body.len();
            wire.write(&format!(
                "{request} HTTP/1.1\r\n{headers}\r\ncontent-type: text/plain\r\ncontent-length: {length}\r\n\r\n{body}"
            ))
            .await;
            let (status, head) = wire.answer().await.unwrap();
            assert_eq!(status != 403, is_allowed, "{request} with {headers}: {status}");
            assert!(is_allowed || head.contains("connection: close"), "the body was not read: {head}");
        }
        // The target may name the host, too.
        let (method, path) = request.split_once(' ').unwrap();
        let mut wire = Wire::open(&url).await;
        wire.write(&format!(
            "{method} http://evil.example{path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: 0\r\n\r\n"
        ))
        .await;
        assert_eq!(wire.answer().await.unwrap().0, 403, "{request}");
    }
    local.0.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_api_accepts_any_host_and_origin_as_in_production() {
    let local = Local::start(&["--ephemeral"]).await;
    for headers in ["host: api.example", "host: localhost\r\norigin: http://evil.example\r\nsec-fetch-site: cross-site"]
    {
        let mut wire = Wire::open(&local.0.stack.base_url).await;
        wire.write(&format!("GET /v1/ping HTTP/1.1\r\n{headers}\r\n\r\n")).await;
        assert_eq!(wire.answer().await.unwrap().0, 200);
    }
    local.0.end().await;
}
