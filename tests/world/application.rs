//! The application at the other end of the bus: signs in clients that the API has created.

use std::collections::BTreeMap;

use argon2::password_hash::phc::PasswordHash;
use argon2::{Argon2, PasswordVerifier};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::{Reply, World};

/// A new client's credentials, as a mail or an API answer carries them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Invitation {
    pub(crate) password: String,
    /// Token at the end of the intake link.
    pub(crate) token: String,
}

impl Invitation {
    /// Reads the credentials from a welcome mail.
    #[track_caller]
    pub(crate) fn from_mail(mail: &Value) -> Self {
        let text = mail["text"].as_str().unwrap();
        let after = |mark: &str| text.split(mark).nth(1).unwrap().split_whitespace().next().unwrap().to_owned();
        Self { password: after("Password:"), token: after("/intake/") }
    }

    /// Reads the credentials from an answer, for a caller who delivers them.
    #[track_caller]
    pub(crate) fn from_reply(reply: &Reply) -> Self {
        let token = reply.str("intake_url").rsplit_once('/').unwrap().1.to_owned();
        Self { password: reply.str("temp_password").to_owned(), token }
    }

    /// As [`Invitation::from_reply`], or `None` if the answer holds no credentials.
    pub(crate) fn try_from_reply(reply: &Reply) -> Option<Self> {
        reply.body.get("temp_password").map(|_| Self::from_reply(reply))
    }
}

/// The application's accounts, by e-mail address.
pub(crate) struct Application {
    accounts: BTreeMap<String, Account>,
}

struct Account {
    credential: Value,
    intake: Value,
}

impl Application {
    /// The application after reading the bus. A repeated change has no effect.
    pub(crate) async fn of(world: &World) -> Self {
        let mut accounts = BTreeMap::new();
        for fact in world.changes("client.created").await {
            let email = fact["client"]["email"].as_str().unwrap().to_owned();
            let account = Account { credential: fact["credential"].clone(), intake: fact["intake"].clone() };
            accounts.entry(email).or_insert(account);
        }
        Self { accounts }
    }

    /// Number of accounts.
    pub(crate) fn accounts(&self) -> usize {
        self.accounts.len()
    }

    /// If the password opens the account: `Some(must_change)`, else `None`.
    pub(crate) fn signs_in(&self, email: &str, password: &str) -> Option<bool> {
        let credential = &self.accounts.get(email)?.credential;
        assert_eq!(credential["scheme"], "argon2id");
        let hash = PasswordHash::new(credential["phc"].as_str().unwrap()).unwrap();
        assert_eq!(hash.algorithm.as_str(), "argon2id");
        Argon2::default().verify_password(password.as_bytes(), &hash).ok()?;
        credential["must_change"].as_bool()
    }

    /// State of the account's intake, or `None` if the token does not open it.
    pub(crate) fn intake(&self, email: &str, token: &str) -> Option<&str> {
        let intake = &self.accounts.get(email)?.intake;
        let opens = intake["token_sha256"] == hex::encode(Sha256::digest(token));
        if opens { intake["state"].as_str() } else { None }
    }

    /// Returns true if the invitation opens both account and intake.
    pub(crate) fn welcomes(&self, email: &str, invitation: &Invitation) -> bool {
        self.signs_in(email, &invitation.password).is_some() && self.intake(email, &invitation.token).is_some()
    }
}
