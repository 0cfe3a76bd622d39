//! Decodes HPACK header blocks (RFC 7541), piece by piece.
//!
//! No published decoder fits. The one of h2 is private. `httlib-hpack` 0.1 panics on a block that ends early.
//! `loona-hpack` 0.4 takes whole blocks only, and builds a hash table for each Huffman string.

use std::collections::VecDeque;

/// Default of `SETTINGS_HEADER_TABLE_SIZE`, which our client does not change (RFC 9113, 6.5.2).
const MAX_TABLE_BYTES: usize = 4096;
/// Size of a table entry beyond its name and value (RFC 7541, 4.1).
const ENTRY_OVERHEAD_BYTES: usize = 32;
/// Bytes of the longest integer that is accepted. Its value fits into 32 bits.
const MAX_INTEGER_BYTES: u32 = 5;

/// Names of the static table (RFC 7541, Appendix A).
const STATIC_NAMES: &str = "\
    :authority :method :method :path :path :scheme :scheme :status :status :status :status :status :status :status \
    accept-charset accept-encoding accept-language accept-ranges accept access-control-allow-origin age allow \
    authorization cache-control content-disposition content-encoding content-language content-length \
    content-location content-range content-type cookie date etag expect expires from host if-match if-modified-since \
    if-none-match if-range if-unmodified-since last-modified link location max-forwards proxy-authenticate \
    proxy-authorization range referer refresh retry-after server set-cookie strict-transport-security \
    transfer-encoding user-agent vary via www-authenticate";
const STATIC_COUNT: usize = 61;
/// Index of the first `:status` in the static table. Values of other static entries are not needed.
const FIRST_STATUS: usize = 8;
const STATUSES: [&str; 7] = ["200", "204", "206", "304", "400", "404", "500"];

/// Lengths of the symbols' Huffman codes (RFC 7541, Appendix B). The code is canonical: the lengths determine it.
#[rustfmt::skip]
const CODE_BITS: [u8; 257] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28,
    28, 28, 28, 28, 28, 28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6,
    5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10, 13, 6, 7, 7, 7, 7, 7, 7,
    7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
    15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6, 7, 6, 5, 5, 6, 7, 7,
    7, 7, 7, 15, 11, 14, 13, 28, 20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23,
    24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24, 22, 21, 20, 22, 22, 23, 23, 21,
    23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, 19, 21, 26, 27, 27, 26, 27, 24,
    21, 21, 26, 26, 28, 27, 27, 27, 20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23,
    26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26, 30,
];
const END_OF_STRING: usize = 256;
const MAX_CODE_BITS: usize = 30;

/// The block is not valid HPACK. The dynamic table is unknown from here on, so the connection cannot go on.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Malformed;

/// The reason why a field cannot be decoded.
enum Stop {
    /// The bytes end within the field.
    Short,
    Malformed,
}

/// The decoder of one connection.
#[derive(Default)]
pub(super) struct Decoder {
    /// Newest first.
    table: VecDeque<(Vec<u8>, Vec<u8>)>,
    table_bytes: usize,
    /// Set by a size update of the peer.
    limit_bytes: Option<usize>,
}

impl Decoder {
    /// Decodes the complete fields, calls `show` with each, and returns how many bytes they took. The caller gives the
    /// rest again, with more bytes behind it.
    pub(super) fn decode(&mut self, block: &[u8], mut show: impl FnMut(&[u8], &[u8])) -> Result<usize, Malformed> {
        let mut done = 0;
        while done < block.len() {
            let mut reader = Reader { bytes: &block[done..] };
            match self.field(&mut reader, &mut show) {
                Ok(()) => done = block.len() - reader.bytes.len(),
                Err(Stop::Short) => break,
                Err(Stop::Malformed) => return Err(Malformed),
            }
        }
        Ok(done)
    }

    fn field(&mut self, reader: &mut Reader<'_>, show: &mut impl FnMut(&[u8], &[u8])) -> Result<(), Stop> {
        let first = *reader.bytes.first().ok_or(Stop::Short)?;
        if first & 0b1000_0000 != 0 {
            let (name, value) = self.entry(reader.integer(7)?)?;
            show(name, value);
            return Ok(());
        }
        if first & 0b1110_0000 == 0b0010_0000 {
            let limit_bytes = reader.integer(5)?;
            if limit_bytes > MAX_TABLE_BYTES {
                return Err(Stop::Malformed);
            }
            self.limit_bytes = Some(limit_bytes);
            self.evict();
            return Ok(());
        }
        let is_added = first & 0b0100_0000 != 0;
        let name = match reader.integer(if is_added { 6 } else { 4 })? {
            0 => reader.string()?,
            index => self.entry(index)?.0.to_vec(),
        };
        let value = reader.string()?;
        show(&name, &value);
        if is_added {
            self.table_bytes += entry_bytes(&name, &value);
            self.table.push_front((name, value));
            self.evict();
        }
        Ok(())
    }

    /// The entry at this index of both tables, which count from 1.
    fn entry(&self, index: usize) -> Result<(&[u8], &[u8]), Stop> {
        let position = index.checked_sub(1).ok_or(Stop::Malformed)?;
        if let Some(position) = position.checked_sub(STATIC_COUNT) {
            let (name, value) = self.table.get(position).ok_or(Stop::Malformed)?;
            return Ok((name, value));
        }
        let name = STATIC_NAMES.split(' ').nth(position).ok_or(Stop::Malformed)?;
        let value =
            index.checked_sub(FIRST_STATUS).and_then(|status| STATUSES.get(status)).copied().unwrap_or_default();
        Ok((name.as_bytes(), value.as_bytes()))
    }

    fn evict(&mut self) {
        while self.table_bytes > self.limit_bytes.unwrap_or(MAX_TABLE_BYTES) {
            let Some((name, value)) = self.table.pop_back() else { return };
            self.table_bytes -= entry_bytes(&name, &value);
        }
    }
}

fn entry_bytes(name: &[u8], value: &[u8]) -> usize {
    name.len() + value.len() + ENTRY_OVERHEAD_BYTES
}

/// The unread rest of a block.
struct Reader<'a> {
    bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    fn byte(&mut self) -> Result<u8, Stop> {
        let (first, rest) = self.bytes.split_first().ok_or(Stop::Short)?;
        self.bytes = rest;
        Ok(*first)
    }

    /// Reads an integer with a prefix of `prefix_bits` bits (RFC 7541, 5.1).
    fn integer(&mut self, prefix_bits: u32) -> Result<usize, Stop> {
        let mask = (1 << prefix_bits) - 1;
        let mut value = usize::from(self.byte()?) & mask;
        if value < mask {
            return Ok(value);
        }
        for position in 0..MAX_INTEGER_BYTES - 1 {
            let byte = self.byte()?;
            value += usize::from(byte & 0x7f) << (7 * position);
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(Stop::Malformed)
    }

    /// Reads a string, Huffman-coded or plain (RFC 7541, 5.2).
    fn string(&mut self) -> Result<Vec<u8>, Stop> {
        let is_coded = self.bytes.first().ok_or(Stop::Short)? & 0x80 != 0;
        let length = self.integer(7)?;
        let (string, rest) = self.bytes.split_at_checked(length).ok_or(Stop::Short)?;
        self.bytes = rest;
        if is_coded { decoded(string).ok_or(Stop::Malformed) } else { Ok(string.to_vec()) }
    }
}

/// Symbols ordered by their codes, and the number of codes of each length.
const CODES: ([u16; 257], [u32; MAX_CODE_BITS + 1]) = {
    let (mut symbols, mut counts, mut found, mut bits) = ([0; 257], [0; MAX_CODE_BITS + 1], 0, 1);
    while bits <= MAX_CODE_BITS {
        let mut symbol = 0;
        while symbol < CODE_BITS.len() {
            if CODE_BITS[symbol] as usize == bits {
                symbols[found] = symbol as u16;
                counts[bits] += 1;
                found += 1;
            }
            symbol += 1;
        }
        bits += 1;
    }
    (symbols, counts)
};

fn decoded(coded: &[u8]) -> Option<Vec<u8>> {
    static SYMBOLS: [u16; 257] = CODES.0;
    static COUNTS: [u32; MAX_CODE_BITS + 1] = CODES.1;
    let mut text = Vec::with_capacity(coded.len());
    // The code so far, its length, the first code of that length, and the place of that code among the symbols.
    let (mut code, mut bits, mut first, mut place) = (0_u32, 0, 0, 0);
    for bit in coded.iter().flat_map(|byte| (0..8).rev().map(move |shift| u32::from(byte >> shift & 1))) {
        place += COUNTS[bits] as usize;
        first = (first + COUNTS[bits]) << 1;
        code = code << 1 | bit;
        bits += 1;
        let beyond = code.checked_sub(first)?;
        if beyond < COUNTS[bits] {
            let symbol = usize::from(SYMBOLS[place + beyond as usize]);
            if symbol == END_OF_STRING {
                return None;
            }
            text.push(u8::try_from(symbol).ok()?);
            (code, bits, first, place) = (0, 0, 0, 0);
        }
    }
    // The padding is the beginning of end-of-string, shorter than a byte (RFC 7541, 5.2).
    (bits < 8 && code == (1 << bits) - 1).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    type Fields = Vec<(String, String)>;

    fn fields(decoder: &mut Decoder, block: &[u8]) -> (Result<usize, Malformed>, Fields) {
        let mut fields = Fields::new();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let done = decoder.decode(block, |name, value| fields.push((text(name), text(value))));
        (done, fields)
    }

    /// RFC 7541, C.6: three responses on one connection, Huffman-coded, with evictions.
    const C_6: [&str; 3] = [
        "488264025885aec3771a4b6196d07abe941054d444a8200595040b8166e082a62d1bff6e919d29ad171863c78f0b97c8e9ae82ae43d3",
        "4883640effc1c0bf",
        "88c16196d07abe941054d444a8200595040b8166e084a62d1bffc05a839bd9ab77ad94e7821dd7f2e6c7b335dfdfcd5b3960\
         d5af27087f3672c1ab270fb5291f9587316065c003ed4ee5b1063d5007",
    ];

    fn bytes(hex: &str) -> Vec<u8> {
        (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
    }

    #[test]
    fn the_answers_of_the_rfc_are_decoded_also_piece_by_piece() {
        let mut limited = Decoder { limit_bytes: Some(256), ..Decoder::default() };
        for (hex, status) in C_6.into_iter().zip(["302", "307", "200"]) {
            let (block, mut given, mut found) = (bytes(hex), Vec::new(), Fields::new());
            for byte in &block {
                given.push(*byte);
                let (done, mut more) = fields(&mut limited, &given);
                given.drain(..done.unwrap());
                found.append(&mut more);
            }
            assert!(given.is_empty());
            assert_eq!(found[0], (":status".to_owned(), status.to_owned()));
            let value = |name: &str| found.iter().find(|(found, _)| found == name).unwrap().1.clone();
            assert_eq!(value("cache-control"), "private");
            assert_eq!(value("location"), "https://www.example.com");
        }
        let newest = &limited.table[0];
        assert_eq!(newest.1, b"foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1");
        assert_eq!((limited.table.len(), limited.table_bytes), (3, 215));
    }

    #[rstest::rstest]
    #[case::index_zero(&[0x80])]
    #[case::index_beyond_the_tables(&[0xbe])]
    #[case::name_beyond_the_tables(&[0x7e, 0])]
    #[case::endless_integer(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff])]
    #[case::table_too_large(&[0x3f, 0xe2, 0x1f])]
    #[case::end_of_string_within(&[0x08, 0x84, 0xff, 0xff, 0xff, 0xff])]
    #[case::padding_of_zeros(&[0x08, 0x81, 0x00])]
    #[case::padding_of_a_byte(&[0x08, 0x82, 0x07, 0xff])]
    fn an_invalid_block_is_malformed(#[case] block: &[u8]) {
        assert_eq!(fields(&mut Decoder::default(), block).0, Err(Malformed));
    }

    #[test]
    fn an_entry_larger_than_the_table_empties_it() {
        let mut decoder = Decoder::default();
        let small = [0x40, 1, b'a', 1, b'b'];
        assert_eq!(fields(&mut decoder, &small).0, Ok(5));
        assert_eq!(fields(&mut decoder, &[0xbe]).1, [("a".to_owned(), "b".to_owned())]);
        let large = [&[0x40, 1, b'a', 0x7f, 0x81, 0x1f][..], &[b'x'; 4096]].concat();
        assert_eq!(fields(&mut decoder, &large).0, Ok(large.len()));
        assert_eq!((decoder.table.len(), decoder.table_bytes), (0, 0));
    }

    #[test]
    fn every_symbol_is_decoded() {
        let mut codes = vec![0_u32; 257];
        let (mut code, mut bits) = (0_u64, 1);
        for symbol in CODES.0 {
            let own = CODE_BITS[usize::from(symbol)];
            code <<= own - bits;
            bits = own;
            codes[usize::from(symbol)] = u32::try_from(code).unwrap();
            code += 1;
        }
        assert_eq!((codes[0], codes[usize::from(b'a')], codes[255], codes[256]), (0x1ff8, 3, 0x3ff_ffee, 0x3fff_ffff));
        for symbol in 0..=255_u8 {
            let own = u32::from(CODE_BITS[usize::from(symbol)]);
            // The code, and ones up to the next byte.
            let padded = (u64::from(codes[usize::from(symbol)]) << (40 - own)) | ((1 << (40 - own)) - 1);
            let coded = &padded.to_be_bytes()[3..][..own.div_ceil(8) as usize];
            assert_eq!(decoded(coded), Some(vec![symbol]));
        }
    }
}
