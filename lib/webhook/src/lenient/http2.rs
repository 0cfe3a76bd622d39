//! Rewrites the header blocks of HTTP/2 answers. The status and `Retry-After` are kept; all else is dropped.
//!
//! h2 ends the connection, with all other requests on it, for a malformed field name and for a header list far above
//! its limit. It resets the stream for `connection` and for a wrong `content-length`.
//!
//! Other frames pass unchanged. h2 checks their framing.

use super::hpack::{Decoder, Malformed};
use super::{AnswerRewriter, MAX_HEAD_BYTES, Status, kept_retry_after};

const FRAME_HEAD_BYTES: usize = 9;
/// Default of `SETTINGS_MAX_FRAME_SIZE`, which our client does not change (RFC 9113, 4.2).
const MAX_FRAME_BYTES: usize = 16 * 1024;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const CONTINUATION: u8 = 9;
const END_STREAM: u8 = 0x1;
const END_HEADERS: u8 = 0x4;
const PADDED: u8 = 0x8;
const PRIORITY: u8 = 0x20;
const PROTOCOL_ERROR: u32 = 1;
/// Literal fields without indexing, named by the static table: `:status` (8) and `retry-after` (53).
const STATUS_FIELD: [u8; 1] = [0x08];
const RETRY_AFTER_FIELD: [u8; 2] = [0x0f, 53 - 15];

/// Rewriter of the answers on one connection.
#[derive(Default)]
pub(super) struct Frames {
    /// The beginning of an incomplete frame.
    read: Vec<u8>,
    /// Bytes of the present frame that are still to pass.
    passing_bytes: usize,
    decoder: Decoder,
    block: Option<Block>,
    has_ended: bool,
}

/// The treatment of a frame.
enum Action {
    /// The frame has no header block, or h2 will reject it.
    Forward,
    Rewrite,
    /// The frame interrupts a header block.
    Reject,
}

/// A header block that has begun.
struct Block {
    stream: u32,
    ends_stream: bool,
    /// Bytes that are not decoded yet.
    coded: Vec<u8>,
    /// Length of `coded` after the latest attempt to decode it.
    tried_bytes: usize,
    read_bytes: usize,
    status: Option<Status>,
    retry_after: Option<Vec<u8>>,
}

impl AnswerRewriter for Frames {
    fn is_within(&self) -> bool {
        self.block.is_some()
    }

    fn has_ended(&self) -> bool {
        self.has_ended
    }

    fn feed(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        self.read.extend_from_slice(bytes);
        let read = std::mem::take(&mut self.read);
        let mut rest = read.as_slice();
        while !self.has_ended {
            let (passing, after) = rest.split_at(self.passing_bytes.min(rest.len()));
            out.extend_from_slice(passing);
            self.passing_bytes -= passing.len();
            rest = after;
            let Some((head, after)) = rest.split_first_chunk::<FRAME_HEAD_BYTES>() else { break };
            let frame = Frame::parse(head);
            match self.action(&frame) {
                Action::Forward => {
                    out.extend_from_slice(head);
                    self.passing_bytes = frame.length;
                    rest = after;
                }
                Action::Rewrite => {
                    let Some((payload, after)) = after.split_at_checked(frame.length) else { break };
                    self.take(&frame, payload, out);
                    rest = after;
                }
                Action::Reject => self.give_up(out),
            }
        }
        self.read = rest.to_vec();
    }

    /// The connection ends too: no frame may come between those of a header block.
    fn give_up(&mut self, out: &mut Vec<u8>) {
        if let Some(mut block) = self.block.take() {
            // The latest bytes may not have been decoded yet. An error changes nothing: the connection ends.
            let _ = block.decode(&mut self.decoder);
            block.ends_stream = true;
            if block.status.is_some() {
                block.write(out);
            }
        }
        self.has_ended = true;
    }
}

impl Frames {
    fn action(&self, frame: &Frame) -> Action {
        let fits = frame.length <= MAX_FRAME_BYTES;
        match (&self.block, frame.kind) {
            (Some(block), CONTINUATION) if frame.stream == block.stream && fits => Action::Rewrite,
            (Some(_), _) => Action::Reject,
            (None, HEADERS) if frame.stream != 0 && fits => Action::Rewrite,
            (None, _) => Action::Forward,
        }
    }

    fn take(&mut self, frame: &Frame, payload: &[u8], out: &mut Vec<u8>) {
        let fragment = match self.block {
            None => {
                let Some(fragment) = frame.unpadded(payload) else { return self.give_up(out) };
                self.block = Some(Block::new(frame));
                fragment
            }
            Some(_) => payload,
        };
        let Some(block) = &mut self.block else { return };
        block.coded.extend_from_slice(fragment);
        block.read_bytes += FRAME_HEAD_BYTES + fragment.len();
        let is_whole = frame.flags & END_HEADERS != 0;
        // Decoding after each small frame would read a long field again and again.
        let is_tried = is_whole || block.coded.len() >= block.tried_bytes + MAX_FRAME_BYTES;
        if is_tried && block.decode(&mut self.decoder).is_err() {
            return self.give_up(out);
        }
        if is_whole && block.coded.is_empty() {
            block.write(out);
            self.block = None;
        } else if is_whole || block.read_bytes > MAX_HEAD_BYTES as usize {
            self.give_up(out);
        }
    }
}

impl Block {
    fn new(frame: &Frame) -> Self {
        Self {
            stream: frame.stream,
            ends_stream: frame.flags & END_STREAM != 0,
            coded: Vec::new(),
            tried_bytes: 0,
            read_bytes: 0,
            status: None,
            retry_after: None,
        }
    }

    fn decode(&mut self, decoder: &mut Decoder) -> Result<(), Malformed> {
        let decoded = decoder.decode(&self.coded, |name, value| match name {
            b":status" => self.status = self.status.or(Status::parse(value)),
            b"retry-after" if self.retry_after.is_none() => self.retry_after = kept_retry_after(value),
            _ => {}
        })?;
        self.coded.drain(..decoded);
        self.tried_bytes = self.coded.len();
        Ok(())
    }

    fn write(&self, out: &mut Vec<u8>) {
        let ends = if self.ends_stream { END_STREAM } else { 0 };
        match self.status {
            Some(status) if !status.is_interim() => {
                let mut fields = STATUS_FIELD.to_vec();
                write_string(status.to_string().as_bytes(), &mut fields);
                if let Some(retry_after) = &self.retry_after {
                    fields.extend_from_slice(&RETRY_AFTER_FIELD);
                    write_string(retry_after, &mut fields);
                }
                write_frame(HEADERS, END_HEADERS | ends, self.stream, &fields, out);
            }
            Some(_interim) if !self.ends_stream => {}
            // Trailers are dropped.
            None if self.ends_stream => write_frame(DATA, END_STREAM, self.stream, &[], out),
            Some(_) | None => write_frame(RST_STREAM, 0, self.stream, &PROTOCOL_ERROR.to_be_bytes(), out),
        }
    }
}

/// Writes a plain string of less than 127 bytes (RFC 7541, 5.2).
fn write_string(string: &[u8], out: &mut Vec<u8>) {
    out.push(string.len() as u8);
    out.extend_from_slice(string);
}

fn write_frame(kind: u8, flags: u8, stream: u32, payload: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&(payload.len() as u32).to_be_bytes()[1..]);
    out.extend_from_slice(&[kind, flags]);
    out.extend_from_slice(&stream.to_be_bytes());
    out.extend_from_slice(payload);
}

/// The head of a frame (RFC 9113, 4.1).
struct Frame {
    length: usize,
    kind: u8,
    flags: u8,
    stream: u32,
}

impl Frame {
    fn parse(head: &[u8; FRAME_HEAD_BYTES]) -> Self {
        let [high, middle, low, kind, flags, stream @ ..] = *head;
        Self {
            length: u32::from_be_bytes([0, high, middle, low]) as usize,
            kind,
            flags,
            stream: u32::from_be_bytes(stream) & (u32::MAX >> 1),
        }
    }

    /// The header block fragment of a HEADERS frame. `None` if padding or priority are longer than the payload.
    fn unpadded<'a>(&self, mut payload: &'a [u8]) -> Option<&'a [u8]> {
        let mut padding = 0;
        if self.flags & PADDED != 0 {
            let (length, rest) = payload.split_first()?;
            (padding, payload) = (usize::from(*length), rest);
        }
        if self.flags & PRIORITY != 0 {
            payload = payload.split_at_checked(5)?.1;
        }
        Some(payload.split_at_checked(payload.len().checked_sub(padding)?)?.0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        write_frame(kind, flags, stream, payload, &mut out);
        out
    }

    fn rewritten<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> (Vec<u8>, Frames) {
        let (mut frames, mut out) = (Frames::default(), Vec::new());
        for piece in pieces {
            frames.feed(piece, &mut out);
        }
        (out, frames)
    }

    /// `name: value` without indexing.
    fn literal(name: &str, value: &str) -> Vec<u8> {
        let mut out = vec![0];
        write_string(name.as_bytes(), &mut out);
        write_string(value.as_bytes(), &mut out);
        out
    }

    /// A whole header block of these fields.
    fn headers(fields: &[&[u8]]) -> Vec<u8> {
        frame(HEADERS, END_HEADERS, 1, &fields.concat())
    }

    fn others() -> Vec<u8> {
        [frame(4, 0, 0, &[]), frame(DATA, 0, 1, b"ok"), frame(77, 9, 3, b"?")].concat()
    }

    fn answer(ends: u8) -> Vec<u8> {
        frame(HEADERS, END_HEADERS | ends, 1, b"\x08\x03200")
    }

    #[rstest::rstest]
    #[case::plain(frame(HEADERS, END_HEADERS, 1, &[0x88]), answer(0))]
    #[case::at_the_end(frame(HEADERS, END_HEADERS | END_STREAM, 1, &[0x88]), answer(END_STREAM))]
    #[case::padded(frame(HEADERS, END_HEADERS | PADDED | PRIORITY, 1, &[2, 0, 0, 0, 0, 9, 0x88, 0, 0]), answer(0))]
    #[case::malformed_names(
        headers(&[&[0x88], &literal("Allow-Credentials ", "true"), &literal("", ""), &literal("a\r\n b", "\0")]),
        answer(0)
    )]
    #[case::of_a_connection(
        headers(&[&[0x88], &literal("connection", "keep-alive"), &literal("content-length", "many")]),
        answer(0)
    )]
    #[case::status_last(headers(&[&literal("a", "b"), &[0x88, 0x8d]]), answer(0))]
    #[case::continued(
        [
            frame(HEADERS, 0, 1, &[0x88, 0]),
            frame(CONTINUATION, 0, 1, b"\x01a"),
            frame(CONTINUATION, END_HEADERS, 1, b"\x01b"),
        ].concat(),
        answer(0)
    )]
    #[case::interim(headers(&[b"\x08\x03103"]), Vec::new())]
    #[case::trailers(
        frame(HEADERS, END_HEADERS | END_STREAM, 1, &literal("Grpc Status", "\n")),
        frame(DATA, END_STREAM, 1, &[])
    )]
    #[case::no_status(headers(&[&literal("a", "b")]), frame(RST_STREAM, 0, 1, &[0, 0, 0, 1]))]
    #[case::no_number(headers(&[b"\x08\x022x"]), frame(RST_STREAM, 0, 1, &[0, 0, 0, 1]))]
    #[case::other_frames(others(), others())]
    fn a_block_is_rewritten_to_what_is_needed(#[case] given: Vec<u8>, #[case] expected: Vec<u8>) {
        let (out, frames) = rewritten([given.as_slice()]);
        assert_eq!((out, frames.is_within(), frames.has_ended()), (expected.clone(), false, false));
        assert_eq!(rewritten(given.chunks(1)).0, expected, "byte by byte");
    }

    #[test]
    fn retry_after_is_kept() {
        let (out, _) = rewritten([frame(HEADERS, END_HEADERS, 1, b"\x08\x03503\x0f\x26\x03120").as_slice()]);
        assert_eq!(out, frame(HEADERS, END_HEADERS, 1, b"\x08\x03503\x0f\x26\x03120"));
        let (out, _) =
            rewritten([frame(HEADERS, END_HEADERS, 1, &[&b"\x08\x03429"[..], &literal("retry-after", "5")].concat())
                .as_slice()]);
        assert_eq!(out, frame(HEADERS, END_HEADERS, 1, b"\x08\x03429\x0f\x26\x015"));
    }

    #[test]
    fn blocks_of_any_size_up_to_the_limit_are_read_and_leave_the_connection_to_others() {
        let field = literal("x-large", &"y".repeat(100));
        let mut given = frame(HEADERS, 0, 1, &[0x88]);
        for _ in 0..MAX_HEAD_BYTES as usize / 2 / MAX_FRAME_BYTES {
            given.extend(frame(CONTINUATION, 0, 1, &field.repeat(MAX_FRAME_BYTES / field.len())));
        }
        given.extend(frame(CONTINUATION, END_HEADERS, 1, &[]));
        given.extend(frame(HEADERS, END_HEADERS | END_STREAM, 3, &[0x8d]));
        let (out, frames) = rewritten(given.chunks(1000));
        assert_eq!(out, [answer(0), frame(HEADERS, END_HEADERS | END_STREAM, 3, b"\x08\x03404")].concat());
        assert!(!frames.has_ended());
    }

    #[rstest::rstest]
    #[case::endless(frame(CONTINUATION, 0, 1, &literal("x", &"y".repeat(100)).repeat(100)))]
    #[case::endless_and_empty(frame(CONTINUATION, 0, 1, &[]))]
    #[case::one_endless_field(frame(CONTINUATION, 0, 1, &[0, 0x7f, 0xff, 0xff, 0xff, 0x7f]))]
    #[case::another_frame(frame(DATA, 0, 1, b"ok"))]
    #[case::another_stream(frame(CONTINUATION, END_HEADERS, 3, &[]))]
    #[case::malformed(frame(CONTINUATION, END_HEADERS, 1, &[0x80]))]
    #[case::cut_off(frame(CONTINUATION, END_HEADERS, 1, &[0x40]))]
    fn a_block_that_does_not_end_well_keeps_its_status_and_ends_the_connection(#[case] more: Vec<u8>) {
        let first = frame(HEADERS, 0, 1, &[0x88]);
        let (mut frames, mut out) = (Frames::default(), Vec::new());
        frames.feed(&first, &mut out);
        for _ in 0..500_000 {
            frames.feed(&more, &mut out);
            if frames.has_ended() {
                break;
            }
            assert!(frames.block.as_ref().unwrap().coded.len() <= MAX_HEAD_BYTES as usize + MAX_FRAME_BYTES);
        }
        assert!(frames.has_ended());
        assert_eq!(out, answer(END_STREAM));
        assert!(!frames.is_within());
    }

    /// A frame of any content, most often of a header block.
    fn piece() -> impl Strategy<Value = Vec<u8>> {
        let kind = prop_oneof![Just(HEADERS), Just(CONTINUATION), any::<u8>()];
        let payload = prop::collection::vec(any::<u8>(), 0..60);
        (kind, any::<u8>(), 0..3_u32, payload).prop_map(|(kind, flags, id, payload)| frame(kind, flags, id, &payload))
    }

    proptest! {
        #[test]
        fn no_bytes_panic(
            pieces in prop::collection::vec(piece(), 0..20),
            chunk in 1..100_usize,
            dirt in prop::collection::vec(any::<u8>(), 0..40),
        ) {
            let given = [pieces.concat(), dirt].concat();
            let (mut out, mut frames) = rewritten(given.chunks(chunk));
            frames.give_up(&mut out);
        }
    }
}
