//! The intake form of a new client. The application serves the form; the service creates its link.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use crate::workspace::CanonicalHost;

/// Bytes of randomness in an intake's token.
pub const INTAKE_TOKEN_BYTES: usize = 32;

/// The way in which an intake's link reaches the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IntakeState {
    /// The service mailed it.
    Sent,
    /// The API returned it to the caller, who delivers it.
    Issued,
}

/// The token that opens an intake: 256 random bits. Only its SHA-256 is stored.
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

    /// Returns the SHA-256 of the token's text, in lower-case hex.
    pub fn sha256(&self) -> String {
        hex::encode(Sha256::digest(self.0.as_bytes()))
    }
}
