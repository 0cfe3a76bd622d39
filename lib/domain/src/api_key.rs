//! API keys: a prefix such as `svc_live_`, which names scope and mode, 32 random base62 characters, and 6 base62
//! characters of CRC-32 over the preceding text.
//!
//! The checksum detects a typing mistake without a look-up. Keys are compared byte by byte, never trimmed or
//! case-folded. Only the SHA-256 of a key is stored.

use crc::{CRC_32_ISO_HDLC, Crc};
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use crate::id::KeyId;
use crate::mode::Mode;

const RANDOM_CHARS: usize = 32;
const CHECKSUM_CHARS: usize = 6;
const BASE62: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// Bytes of randomness that [`ApiKey::generate`] takes. With 32 bits per character the bias is negligible.
pub const KEY_RANDOM_BYTES: usize = RANDOM_CHARS * 4;

crate::named! {
    /// The scope of a key.
    Scope {
        /// `/v1/*` but for `/v1/crm/*`.
        Partner = "partner",
        /// `/v1/crm/*`.
        Crm = "crm",
    }
    /// A permission of a key. Each belongs to a scope.
    Permission {
        ClientsRead = "clients.read",
        ClientsWrite = "clients.write",
        /// Compliance, check-ins and daily logs.
        RecordsRead = "records.read",
        LoginLinksCreate = "login_links.create",
        ContactsRead = "contacts.read",
        ContactsWrite = "contacts.write",
        OpportunitiesRead = "opportunities.read",
        OpportunitiesWrite = "opportunities.write",
        BookingsRead = "bookings.read",
        BookingsWrite = "bookings.write",
        WorkflowsRead = "workflows.read",
    }
}

/// The beginning of keys of a scope in deployments of a mode. All prefixes have one length.
const PREFIXES: [(&str, Scope, Mode); 4] = [
    ("svc_live_", Scope::Partner, Mode::Live),
    ("crm_live_", Scope::Crm, Mode::Live),
    ("svc_test_", Scope::Partner, Mode::Test),
    ("crm_test_", Scope::Crm, Mode::Test),
];
const PREFIX_CHARS: usize = 9;

impl Permission {
    /// Returns the permissions of a scope.
    pub fn of(scope: Scope) -> Vec<Self> {
        Self::ALL.into_iter().filter(|permission| permission.scope() == scope).collect()
    }

    /// Returns the scope of the keys that may have the permission.
    pub fn scope(self) -> Scope {
        match self {
            Self::ClientsRead | Self::ClientsWrite | Self::RecordsRead | Self::LoginLinksCreate => Scope::Partner,
            Self::ContactsRead
            | Self::ContactsWrite
            | Self::OpportunitiesRead
            | Self::OpportunitiesWrite
            | Self::BookingsRead
            | Self::BookingsWrite
            | Self::WorkflowsRead => Scope::Crm,
        }
    }

    /// Returns true for permissions to write.
    pub fn is_write(self) -> bool {
        matches!(
            self,
            Self::ClientsWrite
                | Self::LoginLinksCreate
                | Self::ContactsWrite
                | Self::OpportunitiesWrite
                | Self::BookingsWrite
        )
    }

    /// Returns the permission in words for a coach, as an infinitive: "See contacts".
    pub fn title(self) -> &'static str {
        match self {
            Self::ClientsRead => "See clients",
            Self::ClientsWrite => "Add clients, and switch them on and off",
            Self::RecordsRead => "See compliance, check-ins and daily logs",
            Self::LoginLinksCreate => "Sign clients in",
            Self::ContactsRead => "See contacts",
            Self::ContactsWrite => "Add and change contacts",
            Self::OpportunitiesRead => "See opportunities",
            Self::OpportunitiesWrite => "Add and change opportunities",
            Self::BookingsRead => "See calendars, free times and bookings",
            Self::BookingsWrite => "Book, move and cancel appointments",
            Self::WorkflowsRead => "See workflows",
        }
    }
}

/// A whole key. It exists in memory only, while it is created or checked.
pub struct ApiKey(Zeroizing<String>);
crate::discreet! { ApiKey }

impl ApiKey {
    pub fn generate(scope: Scope, mode: Mode, random: &[u8; KEY_RANDOM_BYTES]) -> Self {
        let mut key = Zeroizing::new(String::with_capacity(PREFIX_CHARS + RANDOM_CHARS + CHECKSUM_CHARS));
        key.push_str(prefix(scope, mode));
        for chunk in random.chunks_exact(4) {
            let value = u32::from_be_bytes(chunk.try_into().expect("chunks of four bytes"));
            key.push(char::from(BASE62[(value % 62) as usize]));
        }
        let sum = checksum(&key);
        key.push_str(std::str::from_utf8(&sum).expect("base62 is ASCII"));
        Self(key)
    }

    /// Parses a key that a caller sent. `None`: wrong form or checksum.
    pub fn parse(text: &str) -> Option<Self> {
        prefix_of(text)?;
        let rest = text.as_bytes().get(PREFIX_CHARS..)?;
        let formed = rest.len() == RANDOM_CHARS + CHECKSUM_CHARS && rest.iter().all(u8::is_ascii_alphanumeric);
        if !formed {
            return None;
        }
        let (signed, sum) = text.split_at(text.len() - CHECKSUM_CHARS);
        (checksum(signed) == sum.as_bytes()).then(|| Self(Zeroizing::new(text.to_owned())))
    }

    /// Returns the whole key, which the coach is shown once.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Returns the SHA-256 that is stored.
    pub fn hash(&self) -> [u8; 32] {
        Sha256::digest(self.0.as_bytes()).into()
    }

    /// Returns the scope that the prefix names.
    pub fn scope(&self) -> Scope {
        self.named().0
    }

    /// Returns the mode of the deployments that the key is for.
    pub fn mode(&self) -> Mode {
        self.named().1
    }

    fn named(&self) -> (Scope, Mode) {
        prefix_of(&self.0).expect("a key begins with a prefix")
    }

    pub fn id(&self) -> KeyId {
        KeyId::from_hash(&self.hash())
    }

    /// Returns the prefix and the last four characters, which distinguish keys in a list.
    pub fn display(&self) -> String {
        format!("{}…{}", &self.0[..PREFIX_CHARS], &self.0[self.0.len() - 4..])
    }
}

fn prefix(scope: Scope, mode: Mode) -> &'static str {
    let found = PREFIXES.iter().find(|(_, of_scope, of_mode)| (*of_scope, *of_mode) == (scope, mode));
    found.expect("each scope has a prefix in each mode").0
}

/// The scope and the mode that a text's prefix names.
fn prefix_of(text: &str) -> Option<(Scope, Mode)> {
    PREFIXES.iter().find(|(prefix, ..)| text.starts_with(prefix)).map(|(_, scope, mode)| (*scope, *mode))
}

/// The CRC-32 of zlib and Ethernet.
static CRC_32: Crc<u32> = Crc::<u32>::new(&CRC_32_ISO_HDLC);

fn checksum(text: &str) -> [u8; CHECKSUM_CHARS] {
    let mut rest = CRC_32.checksum(text.as_bytes());
    let mut digits = [b'0'; CHECKSUM_CHARS];
    for digit in digits.iter_mut().rev() {
        *digit = BASE62[(rest % 62) as usize];
        rest /= 62;
    }
    digits
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn key(scope: Scope, mode: Mode, seed: u8) -> ApiKey {
        ApiKey::generate(
            scope,
            mode,
            &std::array::from_fn(|i| seed.wrapping_mul(31).wrapping_add(i as u8).wrapping_mul(17)),
        )
    }

    #[test]
    fn a_key_reads_back_and_its_id_comes_from_its_hash() {
        for (prefix, scope, mode) in PREFIXES {
            let made = key(scope, mode, 7);
            assert_eq!(made.expose().len(), 9 + 32 + 6);
            let read = ApiKey::parse(made.expose()).unwrap();
            assert_eq!((read.id(), read.scope(), read.mode()), (made.id(), scope, mode));
            assert_eq!(format!("{read:?}"), "ApiKey(..)");
            assert!(read.display().starts_with(prefix) && read.display().ends_with(&made.expose()[43..]));
        }
    }

    #[test]
    fn each_permission_has_words_of_its_own_without_technical_terms() {
        let mut titles = Permission::ALL.map(Permission::title).to_vec();
        assert!(titles.iter().all(|title| !title.contains(['.', '_', '`'])));
        titles.sort_unstable();
        titles.dedup();
        assert_eq!(titles.len(), Permission::ALL.len());
    }

    #[test]
    fn the_checksum_is_crc_32_in_base62() {
        // CRC-32 of "123456789" is 0xCBF43926 (the algorithm's check value) = 3421780262.
        assert_eq!(&checksum("123456789"), b"3jZRME");
    }

    proptest! {
        #[test]
        fn a_changed_key_is_refused(seed: u8, at in 0usize..47, to in "[ -~]") {
            let made = key(Scope::Partner, Mode::Live, seed);
            let mut text = made.expose().to_owned();
            text.replace_range(at..=at, &to);
            prop_assert_eq!(ApiKey::parse(&text).is_some(), text == made.expose());
        }

        #[test]
        fn anything_added_is_refused(seed: u8, tail in "[ \t\na-z0-9]{1,3}") {
            let made = key(Scope::Crm, Mode::Test, seed);
            let appended = format!("{}{tail}", made.expose());
            let prepended = format!("{tail}{}", made.expose());
            prop_assert!(ApiKey::parse(&appended).is_none());
            prop_assert!(ApiKey::parse(&prepended).is_none());
        }
    }
}
