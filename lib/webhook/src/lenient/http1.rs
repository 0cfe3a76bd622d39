//! Rewrites the heads of HTTP/1 answers. The status, the framing of the body and `Retry-After` are kept; all else is
//! dropped.
//!
//! A status line begins with `HTTP/1.x`, blanks and three digits. Bytes that begin otherwise pass unchanged, and hyper
//! rejects them.

use super::{AnswerRewriter, KEPT_LINE_BYTES, MAX_HEAD_BYTES, Status, kept_retry_after};

const VERSION: &[u8] = b"HTTP/1.";

/// Rewriter of the answers on one connection.
#[derive(Default)]
pub(super) struct Heads {
    state: State,
    /// The line that is being read, at most [`KEPT_LINE_BYTES`] of it.
    line: Vec<u8>,
    /// The latest field. The next line may continue it.
    field: Vec<u8>,
    head: Head,
    head_bytes: usize,
}

#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum State {
    #[default]
    StatusLine,
    Fields,
    /// The body passes unchanged.
    Body,
    /// The bytes are not HTTP/1. All pass unchanged.
    Foreign,
    Ended,
}

/// The kept part of a head.
#[derive(Default)]
struct Head {
    status: Option<Status>,
    is_http_1_0: bool,
    closes: bool,
    keeps_alive: bool,
    length: Length,
    coding: Coding,
    retry_after: Option<Vec<u8>>,
}

#[derive(Default, Clone, Copy)]
enum Length {
    #[default]
    Unknown,
    Bytes(u64),
    /// Not a number, or two different numbers.
    Contradictory,
}

#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum Coding {
    #[default]
    Identity,
    Chunked,
    /// An unknown coding: only the end of the connection ends the body.
    Other,
}

impl AnswerRewriter for Heads {
    fn expect_answer(&mut self) {
        if self.state == State::Body {
            *self = Self::default();
        }
    }

    fn passes(&self) -> bool {
        matches!(self.state, State::Body | State::Foreign)
    }

    fn is_within(&self) -> bool {
        self.state == State::Fields
    }

    fn has_ended(&self) -> bool {
        self.state == State::Ended
    }

    fn feed(&mut self, mut bytes: &[u8], out: &mut Vec<u8>) {
        while !bytes.is_empty() {
            match self.state {
                State::Body | State::Foreign => return out.extend_from_slice(bytes),
                State::Ended => return,
                State::StatusLine | State::Fields => {}
            }
            let end = bytes.iter().position(|byte| *byte == b'\n');
            let (part, rest) = bytes.split_at(end.map_or(bytes.len(), |end| end + 1));
            let kept = part.len().min(KEPT_LINE_BYTES - self.line.len());
            self.line.extend_from_slice(&part[..kept]);
            self.head_bytes += part.len();
            if self.state == State::StatusLine {
                self.status_line(end.is_some(), &part[kept..], out);
            } else if end.is_some() {
                self.line(out);
            }
            if end.is_some() {
                self.line.clear();
            }
            if self.state == State::Fields && self.head_bytes > MAX_HEAD_BYTES as usize {
                self.give_up(out);
            }
            bytes = rest;
        }
    }

    fn give_up(&mut self, out: &mut Vec<u8>) {
        self.end_field();
        let head = std::mem::take(&mut self.head);
        if let Some(status) = head.status.filter(|status| !status.is_interim()) {
            Head { closes: true, length: Length::Unknown, coding: Coding::Identity, ..head }.write(status, out);
        }
        self.state = State::Ended;
    }
}

impl Heads {
    /// Parses a complete status line, or checks the beginning of one. `beyond` holds the bytes that were not kept.
    fn status_line(&mut self, is_complete: bool, beyond: &[u8], out: &mut Vec<u8>) {
        let line = trimmed(&self.line);
        if is_complete && line.is_empty() {
            self.head_bytes = 0;
            return;
        }
        let known = if is_complete { parse_status_line(line) } else { None };
        if let Some((status, is_http_1_0)) = known {
            self.head = Head { status: Some(status), is_http_1_0, ..Head::default() };
            self.state = State::Fields;
        } else if is_complete || !begins_like(line, VERSION) || self.head_bytes > MAX_HEAD_BYTES as usize {
            out.append(&mut self.line);
            out.extend_from_slice(beyond);
            self.state = State::Foreign;
        }
    }

    /// Parses a complete line after the status line.
    fn line(&mut self, out: &mut Vec<u8>) {
        let line = trimmed(&self.line);
        match line.first() {
            None => {
                self.end_field();
                self.end(out);
            }
            // A folded line continues the field before it (RFC 9112, 5.2).
            Some(b' ' | b'\t') => {
                let room = KEPT_LINE_BYTES - self.field.len();
                self.field.extend_from_slice(&line[..line.len().min(room)]);
            }
            Some(_) => {
                self.head.field(&self.field);
                self.field.clear();
                self.field.extend_from_slice(line);
            }
        }
    }

    fn end_field(&mut self) {
        self.head.field(&self.field);
        self.field.clear();
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        self.head_bytes = 0;
        let head = std::mem::take(&mut self.head);
        match head.status {
            Some(status) if !status.is_interim() => {
                head.write(status, out);
                self.state = State::Body;
            }
            _ => self.state = State::StatusLine,
        }
    }
}

impl Head {
    fn field(&mut self, field: &[u8]) {
        let Some(colon) = field.iter().position(|byte| *byte == b':') else { return };
        let (name, value) = (field[..colon].trim_ascii(), field[colon + 1..].trim_ascii());
        if name.eq_ignore_ascii_case(b"content-length") {
            for length in value.split(|byte| *byte == b',') {
                self.length = self.length.and(length.trim_ascii());
            }
        } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
            for coding in tokens(value) {
                if coding.eq_ignore_ascii_case(b"chunked") {
                    self.coding = Coding::Chunked;
                } else if !coding.eq_ignore_ascii_case(b"identity") {
                    self.coding = Coding::Other;
                }
            }
        } else if name.eq_ignore_ascii_case(b"connection") {
            self.closes |= tokens(value).any(|token| token.eq_ignore_ascii_case(b"close"));
            self.keeps_alive |= tokens(value).any(|token| token.eq_ignore_ascii_case(b"keep-alive"));
        } else if name.eq_ignore_ascii_case(b"retry-after") && self.retry_after.is_none() {
            self.retry_after = kept_retry_after(value);
        }
    }

    /// Writes the head for hyper. The connection is not reused if servers and clients may disagree on where the body
    /// ends.
    fn write(self, status: Status, out: &mut Vec<u8>) {
        let mut closes = self.closes || (self.is_http_1_0 && !self.keeps_alive);
        let mut framing = String::new();
        match (self.coding, self.length) {
            (Coding::Identity, Length::Bytes(length)) => {
                framing = format!("content-length: {length}\r\n");
                closes |= status.has_no_body() && length > 0;
            }
            (Coding::Identity, Length::Unknown) => {}
            // HTTP/1.0 has no chunked coding (RFC 9112, 6.1).
            (Coding::Chunked, length) if !self.is_http_1_0 => {
                framing = "transfer-encoding: chunked\r\n".to_owned();
                closes |= status.has_no_body() || !matches!(length, Length::Unknown);
            }
            (Coding::Identity | Coding::Chunked | Coding::Other, _) => closes = true,
        }
        out.extend_from_slice(format!("HTTP/1.1 {status}\r\n{framing}").as_bytes());
        if closes {
            out.extend_from_slice(b"connection: close\r\n");
        }
        if let Some(retry_after) = self.retry_after {
            out.extend_from_slice(b"retry-after: ");
            out.extend_from_slice(&retry_after);
            out.extend_from_slice(b"\r\n");
        }
        out.extend_from_slice(b"\r\n");
    }
}

impl Length {
    fn and(self, text: &[u8]) -> Self {
        let length = std::str::from_utf8(text).ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
        // hyper reserves the largest numbers.
        match (length.and_then(|text| text.parse::<u64>().ok()).filter(|length| *length < u64::MAX / 2), self) {
            (Some(length), Self::Unknown) => Self::Bytes(length),
            (Some(length), Self::Bytes(before)) if length == before => self,
            _ => Self::Contradictory,
        }
    }
}

/// The line without its line break.
fn trimmed(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

fn begins_like(line: &[u8], beginning: &[u8]) -> bool {
    line.iter().zip(beginning).all(|(found, expected)| found == expected)
}

/// The status, and true for HTTP/1.0.
fn parse_status_line(line: &[u8]) -> Option<(Status, bool)> {
    let (minor, rest) = line.strip_prefix(VERSION)?.split_first()?;
    let status = rest.trim_ascii_start();
    let has_gap = status.len() < rest.len();
    let (code, reason) = status.split_at_checked(3)?;
    let ends = reason.first().is_none_or(|next| next.is_ascii_whitespace());
    (minor.is_ascii_digit() && has_gap && ends).then_some(())?;
    Some((Status::parse(code)?, *minor == b'0'))
}

fn tokens(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii).filter(|token| !token.is_empty())
}

#[cfg(test)]
mod tests {
    use std::iter::repeat_n;

    use proptest::prelude::*;

    use super::*;

    /// The bytes for hyper, and the rewriter after these pieces.
    fn rewritten<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> (String, Heads) {
        let (mut heads, mut out) = (Heads::default(), Vec::new());
        for piece in pieces {
            heads.feed(piece, &mut out);
        }
        (String::from_utf8_lossy(&out).into_owned(), heads)
    }

    const CLOSED: &str = "HTTP/1.1 200\r\nconnection: close\r\n\r\n";

    #[rstest::rstest]
    #[case("", "")]
    #[case("Content-Length: 2\r\nX: y\r\n", "content-length: 2\r\n")]
    #[case("Content-Length : 2\r\nno colon\r\n: no name\r\n\u{1}\0: \u{7f}\r\nX-Ü: ü\r\n", "content-length: 2\r\n")]
    #[case("content-length: 2\nx: bare line feed\n", "content-length: 2\r\n")]
    #[case("content-length: 2, 2\r\ncontent-length: 2\r\n", "content-length: 2\r\n")]
    #[case("content-length: 2\r\ntransfer-encoding: identity\r\n", "content-length: 2\r\n")]
    #[case("transfer-encoding: identity\r\n", "")]
    #[case("transfer-encoding: Chunked\r\n", "transfer-encoding: chunked\r\n")]
    #[case("transfer-encoding: gzip,\r\n chunked\r\n", "transfer-encoding: chunked\r\n")]
    #[case(
        "transfer-encoding: chunked\r\ncontent-length: 2\r\n",
        "transfer-encoding: chunked\r\nconnection: close\r\n"
    )]
    #[case("transfer-encoding: chunked\r\ntransfer-encoding: gzip\r\n", "connection: close\r\n")]
    #[case("transfer-encoding: rot13\r\ncontent-length: 2\r\n", "connection: close\r\n")]
    #[case("content-length: 2\r\ncontent-length: 3\r\n", "connection: close\r\n")]
    #[case("content-length: +2\r\n", "connection: close\r\n")]
    #[case("content-length: \r\n", "connection: close\r\n")]
    #[case("content-length: 18446744073709551615\r\n", "connection: close\r\n")]
    #[case("content-length: 99999999999999999999\r\n", "connection: close\r\n")]
    #[case("CONNECTION: Keep-Alive, Close\r\n", "connection: close\r\n")]
    #[case("retry-after: 120\r\nretry-after: 5\r\n", "retry-after: 120\r\n")]
    #[case("Retry-After:\r\n\t 120\r\n", "retry-after: 120\r\n")]
    #[case("retry-after: é\r\n", "")]
    fn a_head_is_rewritten_to_what_is_needed(#[case] fields: &str, #[case] kept: &str) {
        let head = format!("HTTP/1.1 200 OK\r\n{fields}\r\nbody");
        let expected = format!("HTTP/1.1 200\r\n{kept}\r\nbody");
        assert_eq!(rewritten([head.as_bytes()]).0, expected);
        assert_eq!(rewritten(head.as_bytes().chunks(1)).0, expected, "byte by byte");
    }

    #[rstest::rstest]
    #[case("HTTP/1.0 200 OK\r\n\r\n", "HTTP/1.1 200\r\nconnection: close\r\n\r\n")]
    #[case(
        "HTTP/1.0 200 OK\r\nconnection: keep-alive\r\ncontent-length: 0\r\n\r\n",
        "HTTP/1.1 200\r\ncontent-length: 0\r\n\r\n"
    )]
    #[case("HTTP/1.0 200 OK\r\ntransfer-encoding: chunked\r\n\r\n", "HTTP/1.1 200\r\nconnection: close\r\n\r\n")]
    #[case("\r\n\nHTTP/1.1 201\n\n", "HTTP/1.1 201\r\n\r\n")]
    #[case("HTTP/1.1  299 \u{7} ü\r\n\r\n", "HTTP/1.1 299\r\n\r\n")]
    #[case("HTTP/1.1 100 Continue\r\nx\r\n\r\nHTTP/1.1 410 Gone\r\n\r\n", "HTTP/1.1 410\r\n\r\n")]
    #[case(
        "HTTP/1.1 204 No\r\ncontent-length: 2\r\n\r\n",
        "HTTP/1.1 204\r\ncontent-length: 2\r\nconnection: close\r\n\r\n"
    )]
    #[case("HTTP/1.1 204 No\r\ncontent-length: 0\r\n\r\n", "HTTP/1.1 204\r\ncontent-length: 0\r\n\r\n")]
    fn a_status_line_of_any_kind_is_read(#[case] head: &str, #[case] expected: &str) {
        assert_eq!(rewritten([head.as_bytes()]).0, expected);
    }

    #[rstest::rstest]
    #[case(b"220 mail.example.com ESMTP\r\n")]
    #[case(b"SSH")]
    #[case(b"\0")]
    #[case(b"HTTP/2 200\r\n")]
    #[case(b"HTTP/1.1 OK\r\n\r\n")]
    #[case(b"HTTP/1.1 20 OK\r\n\r\n")]
    #[case(b"HTTP/1.1 2000 OK\r\n\r\n")]
    #[case(b"HTTP/1.1 099 OK\r\n\r\n")]
    #[case(b"HTTP/1.1200 OK\r\n\r\n")]
    #[case(b"HTTP/1.1 200OK\r\n\r\n")]
    #[case(&[b'\t'; 100_000])]
    fn bytes_that_are_no_status_line_pass_unchanged(#[case] bytes: &[u8]) {
        let (out, heads) = rewritten([bytes]);
        assert_eq!(out.as_bytes(), bytes);
        assert!(heads.passes() && !heads.is_within());
    }

    #[test]
    fn a_head_that_does_not_end_keeps_its_status_and_little_memory() {
        let (out, heads) =
            rewritten(std::iter::once(&b"HTTP/1.1 200 OK\r\n"[..]).chain(repeat_n(&b"x: y\r\n"[..], 800_000)));
        assert_eq!(out, CLOSED);
        assert!(heads.has_ended());
        let (out, heads) =
            rewritten(std::iter::once(&b"HTTP/1.1 200 OK\r\nx"[..]).chain(repeat_n(&[b'x'; 1000][..], 4400)));
        assert_eq!(out, CLOSED);
        assert!(heads.has_ended() && heads.line.capacity() <= 2 * KEPT_LINE_BYTES);
        let (mut out, mut heads) = rewritten([&b"HTTP/1.1 503 Busy\r\nretry-after: 9\r\ncontent-length: 2\r\nx"[..]]);
        assert!(heads.is_within() && out.is_empty());
        let mut given = Vec::new();
        heads.give_up(&mut given);
        heads.feed(b": y\r\n\r\nok", &mut given);
        out = String::from_utf8(given).unwrap();
        assert_eq!(out, "HTTP/1.1 503\r\nconnection: close\r\nretry-after: 9\r\n\r\n");
    }

    #[test]
    fn the_next_answer_of_a_connection_is_rewritten_too() {
        let (mut out, mut heads) = rewritten([&b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nx y\r\n\r\nok"[..]]);
        heads.expect_answer();
        let mut more = Vec::new();
        heads.feed(b"HTTP/1.1 404 No\r\nx y\r\ncontent-length: 0\r\n\r\n", &mut more);
        out.push_str(std::str::from_utf8(&more).unwrap());
        assert_eq!(out, "HTTP/1.1 200\r\ncontent-length: 2\r\n\r\nokHTTP/1.1 404\r\ncontent-length: 0\r\n\r\n");
    }

    /// A line of a head: printable, nearly a field that counts, or anything else.
    fn line() -> impl Strategy<Value = String> {
        prop_oneof![
            "[ -~]{0,60}",
            "(content-length|transfer-encoding|connection|retry-after) ?: ?[ -~]{0,20}",
            ".{0,60}"
        ]
    }

    proptest! {
        #[test]
        fn no_bytes_panic(
            pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), 0..20),
            has_status in any::<bool>(),
        ) {
            let beginning: &[u8] = if has_status { b"HTTP/1.1 200 OK\r\n" } else { b"" };
            let (_, mut heads) = rewritten(std::iter::once(beginning).chain(pieces.iter().map(Vec::as_slice)));
            heads.give_up(&mut Vec::new());
        }

        #[test]
        fn a_complete_status_line_decides(
            status in (200_u16..1000),
            minor in 0..10_u8,
            reason in "[^\r\n]{0,40}",
            fields in prop::collection::vec(line(), 0..150),
            pieces in 1..400_usize,
            ends in any::<bool>(),
        ) {
            let mut head = format!("HTTP/1.{minor} {status} {reason}\r\n").into_bytes();
            for field in fields {
                head.extend_from_slice(field.as_bytes());
                head.extend_from_slice(b"\r\n");
            }
            if ends {
                head.extend_from_slice(b"\r\n");
            }
            let (mut heads, mut out) = (Heads::default(), Vec::new());
            head.chunks(pieces).for_each(|piece| heads.feed(piece, &mut out));
            if heads.is_within() {
                heads.give_up(&mut out);
            }
            let out = String::from_utf8(out).unwrap();
            let beginning = format!("HTTP/1.1 {status}\r\n");
            prop_assert!(out.starts_with(&beginning), "{}", out);
            let head = out.split_once("\r\n\r\n").unwrap().0;
            let known = ["content-length: ", "transfer-encoding: chunked", "connection: close", "retry-after: "];
            for line in head.lines().skip(1) {
                prop_assert!(known.iter().any(|known| line.starts_with(known)), "{}", line);
            }
        }
    }
}
