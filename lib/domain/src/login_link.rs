//! A link that signs a client in once. It is a bearer credential, valid for 15 minutes at most.
//!
//! A link is valid for the client at its creation, identified by the client's `login_epoch`. Deactivation, hand-over
//! and a changed e-mail address begin another epoch, and links of earlier epochs are void for good.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::TimeDelta;
use serde::Serialize;
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use crate::client::Client;
use crate::id::{ClientId, CoachId};
use crate::time::Timestamp;
use crate::workspace::CanonicalHost;

/// Bytes of randomness in a link's token.
pub const LOGIN_TOKEN_BYTES: usize = 32;
/// Time in which a link can be used.
pub const LOGIN_LINK_LIFE: TimeDelta = TimeDelta::minutes(15);
/// The life of a link, as answers put it.
pub const EXPIRES_NOTE: &str = "Single use: the link works once, within 15 minutes of being made.";

/// The token that opens a login page: 256 random bits. Only its SHA-256 is stored.
#[derive(Clone)]
pub struct LoginToken(Zeroizing<String>);
crate::discreet! { LoginToken }

impl LoginToken {
    pub fn new(bytes: &[u8; LOGIN_TOKEN_BYTES]) -> Self {
        Self(Zeroizing::new(URL_SAFE_NO_PAD.encode(bytes)))
    }

    /// Parses the token in a path. Checks its form only.
    pub fn parse(text: &str) -> Option<Self> {
        let bytes = Zeroizing::new(URL_SAFE_NO_PAD.decode(text).ok()?);
        (bytes.len() == LOGIN_TOKEN_BYTES).then(|| Self(Zeroizing::new(text.to_owned())))
    }

    pub fn url(&self, host: &CanonicalHost) -> String {
        format!("{}{}", host.as_str(), self.path())
    }

    /// Returns the path of the link, which is the same on each host.
    pub fn path(&self) -> String {
        format!("/login/{}", *self.0)
    }

    /// Returns the SHA-256 of the token's text, in lower-case hex.
    pub fn sha256(&self) -> String {
        hex::encode(Sha256::digest(self.0.as_bytes()))
    }
}

/// A link that signs a client in, once.
// `login_url` is a credential: there is no `Debug`.
#[derive(Clone, Serialize, utoipa::ToSchema)]
pub struct LoginLink {
    /// The client whom the link signs in.
    pub client_id: ClientId,
    /// The link, which signs in any person who opens it. Pass it on at once, and do not store it.
    pub login_url: String,
    /// The validity of the link, in words.
    pub expires_note: String,
}

impl LoginLink {
    /// Creates the link of a token on the coach's host.
    pub fn new(client_id: ClientId, token: &LoginToken, host: &CanonicalHost) -> Self {
        Self { client_id, login_url: token.url(host), expires_note: EXPIRES_NOTE.to_owned() }
    }
}

/// The client that a link signs in, and the link's validity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoginGrant {
    pub client_id: ClientId,
    pub coach_id: CoachId,
    /// The client's epoch at the creation of the link.
    pub login_epoch: u64,
    /// The first instant at which the link is expired.
    pub valid_until: Timestamp,
}

/// The reason why a client gets no link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoLoginLink {
    /// Reported first if both hold: the caller can change it.
    Inactive,
    NoEmail,
}

impl LoginGrant {
    /// Creates the grant of a new link.
    pub fn new(client: &Client, login_epoch: u64, now: Timestamp) -> Result<Self, NoLoginLink> {
        if !client.is_active {
            return Err(NoLoginLink::Inactive);
        }
        if client.profile.email.is_none() {
            return Err(NoLoginLink::NoEmail);
        }
        Ok(Self {
            client_id: client.id.clone(),
            coach_id: client.coach_id.clone(),
            login_epoch,
            valid_until: now + LOGIN_LINK_LIFE,
        })
    }

    /// Returns true if the link can be used now: its client's epoch is unchanged, and the link has not expired.
    pub fn holds(&self, client: &Client, login_epoch: u64, now: Timestamp) -> bool {
        let same_client = client.id == self.client_id && client.coach_id == self.coach_id;
        same_client && client.is_active && login_epoch == self.login_epoch && now < self.valid_until
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::tests::client;
    use proptest::prelude::*;

    const NOW: i64 = 1_790_000_000_000;

    #[test]
    fn the_note_states_the_life_of_a_link() {
        assert!(EXPIRES_NOTE.contains(&format!("within {} minutes", LOGIN_LINK_LIFE.num_minutes())), "{EXPIRES_NOTE}");
    }

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_ms(NOW + ms)
    }

    #[test]
    fn an_inactive_client_and_one_without_an_address_get_no_link() {
        let mut client = client();
        assert!(LoginGrant::new(&client, 0, at(0)).is_ok());
        client.profile.email = None;
        assert_eq!(LoginGrant::new(&client, 0, at(0)), Err(NoLoginLink::NoEmail));
        client.is_active = false;
        assert_eq!(LoginGrant::new(&client, 0, at(0)), Err(NoLoginLink::Inactive));
    }

    #[test]
    fn a_link_holds_for_15_minutes_and_for_its_client_as_it_was() {
        const LIFE_MS: i64 = 15 * 60 * 1000;
        let client = client();
        let grant = LoginGrant::new(&client, 3, at(0)).unwrap();
        assert!(grant.holds(&client, 3, at(0)) && grant.holds(&client, 3, at(LIFE_MS - 1)));
        assert!(!grant.holds(&client, 3, at(LIFE_MS)));
        assert!(!grant.holds(&client, 4, at(0)));
        assert!(!grant.holds(&Client { is_active: false, ..client.clone() }, 3, at(0)));
        assert!(!grant.holds(&Client { coach_id: CoachId::parse("coach_2").unwrap(), ..client.clone() }, 3, at(0)));
        assert!(!grant.holds(&Client { id: ClientId::parse("client_2").unwrap(), ..client }, 3, at(0)));
    }

    #[test]
    fn a_link_leads_through_the_coachs_host_and_its_token_is_not_printed() {
        let host = CanonicalHost::parse("https://coach.example.com").unwrap();
        let token = LoginToken::new(&[255; 32]);
        let link = LoginLink::new(ClientId::parse("client_1").unwrap(), &token, &host);
        let secret = link.login_url.strip_prefix("https://coach.example.com/login/").unwrap();
        assert_eq!(link.login_url, format!("{}{}", host.as_str(), token.path()));
        assert_eq!(LoginToken::parse(secret).unwrap().sha256(), token.sha256());
        assert_eq!(format!("{token:?}"), "LoginToken(..)");
    }

    proptest! {
        #[test]
        fn a_token_reads_back_and_nothing_else_does(bytes: [u8; LOGIN_TOKEN_BYTES], at in 0usize..43, other in "[ -~]") {
            let token = LoginToken::new(&bytes);
            let text = token.0.to_string();
            prop_assert_eq!(text.len(), 43);
            prop_assert_eq!(LoginToken::parse(&text).unwrap().sha256(), token.sha256());
            for bad in [&text[1..], &format!("{text}A"), &format!("{text}="), &format!(" {text}"), ""] {
                prop_assert!(LoginToken::parse(bad).is_none());
            }
            let mut changed = text.clone();
            changed.replace_range(at..=at, &other);
            let read = LoginToken::parse(&changed).map(|read| read.sha256());
            prop_assert!(changed == text || read != Some(token.sha256()));
        }
    }
}
