//! The application at the other end of the bus, as far as it signs in clients whom the API has created.

use std::collections::BTreeMap;

use argon2::password_hash::phc::PasswordHash;
use argon2::{Argon2, PasswordVerifier};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::{Reply, World};

/// What a new client is told, by mail or by the caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Invitation {
    pub(crate) password: String,
    /// The end of the intake link.
    pub(crate) token: String,
}

impl Invitation {
    /// What a welcome mail says.
    #[track_caller]
    pub(crate) fn mailed(mail: &Value) -> Self {
        let text = mail["text"].as_str().unwrap();
        let after = |mark: &str| text.split(mark).nth(1).unwrap().split_whitespace().next().unwrap().to_owned();
        Self { password: after("Password:"), token: after("/intake/") }
    }

    /// What a caller is given to deliver.
    #[track_caller]
    pub(crate) fn handed(reply: &Reply) -> Self {
        let token = reply.str("intake_url").rsplit_once('/').unwrap().1.to_owned();
        Self { password: reply.str("temp_password").to_owned(), token }
    }

    /// As [`Invitation::handed`], if the answer holds one.
    pub(crate) fn in_answer(reply: &Reply) -> Option<Self> {
        reply.body.get("temp_password").map(|_| Self::handed(reply))
    }
}

/// What the application knows of the clients that it was told of, by their addresses.
pub(crate) struct Application {
    accounts: BTreeMap<String, Account>,
}

struct Account {
    credential: Value,
    intake: Value,
}

impl Application {
    /// The application once it has read the bus. A fact that it has read before changes nothing.
    pub(crate) async fn of(world: &World) -> Self {
        let mut accounts = BTreeMap::new();
        for fact in world.outgoing("client.created").await {
            let email = fact["client"]["email"].as_str().unwrap().to_owned();
            let account = Account { credential: fact["credential"].clone(), intake: fact["intake"].clone() };
            accounts.entry(email).or_insert(account);
        }
        Self { accounts }
    }

    /// How many accounts there are.
    pub(crate) fn accounts(&self) -> usize {
        self.accounts.len()
    }

    /// Whether the password opens the account, and whether another one has to be chosen then.
    pub(crate) fn signs_in(&self, email: &str, password: &str) -> Option<bool> {
        let credential = &self.accounts.get(email)?.credential;
        assert_eq!(credential["scheme"], "argon2id");
        let hash = PasswordHash::new(credential["phc"].as_str().unwrap()).unwrap();
        assert_eq!(hash.algorithm.as_str(), "argon2id");
        Argon2::default().verify_password(password.as_bytes(), &hash).ok()?;
        credential["must_change"].as_bool()
    }

    /// The state of the account's intake, if the token opens it.
    pub(crate) fn intake(&self, email: &str, token: &str) -> Option<&str> {
        let intake = &self.accounts.get(email)?.intake;
        let opens = intake["token_sha256"] == hex::encode(Sha256::digest(token));
        if opens { intake["state"].as_str() } else { None }
    }

    /// Whether the invitation opens account and intake.
    pub(crate) fn welcomes(&self, email: &str, invitation: &Invitation) -> bool {
        self.signs_in(email, &invitation.password).is_some() && self.intake(email, &invitation.token).is_some()
    }
}
