//! The form that a new client fills in. The application serves it; the link that opens it is made here.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use crate::workspace::CanonicalHost;

/// Bytes of randomness in an intake's token.
pub const INTAKE_TOKEN_BYTES: usize = 32;

/// The way that an intake's link takes to the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IntakeState {
    /// The service mailed it.
    Sent,
    /// The caller was given it, to deliver.
    Issued,
}

/// The token that opens an intake: 256 random bits. Only its SHA-256 is kept.
#[derive(Clone)]
pub struct IntakeToken(Zeroizing<String>);
crate::discreet! { IntakeToken }

impl IntakeToken {
    pub fn new(bytes: &[u8; INTAKE_TOKEN_BYTES]) -> Self {
        Self(Zeroizing::new(URL_SAFE_NO_PAD.encode(bytes)))
    }

    pub fn restore(text: String) -> Self {
        Self(Zeroizing::new(text))
    }

    pub fn expose(&self) -> &str {
        &self.0
    }

    pub fn url(&self, host: &CanonicalHost) -> String {
        format!("{}/intake/{}", host.as_str(), *self.0)
    }

    /// Lower-case hex of the SHA-256 of the token's text.
    pub fn sha256(&self) -> String {
        hex::encode(Sha256::digest(self.0.as_bytes()))
    }
}
