//! Signatures of outgoing webhooks, by Standard Webhooks 1.0.0
//! (<https://github.com/standard-webhooks/standard-webhooks>): `v1,` and the base64 of HMAC-SHA-256 over
//! `{webhook-id}.{webhook-timestamp}.{body}`.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use zeroize::Zeroizing;

use crate::id::EventId;

pub const SECRET_BYTES: usize = 32;
const PREFIX: &str = "whsec_";

/// The secret with which an endpoint's receiver verifies signatures.
#[derive(Clone)]
pub struct SigningSecret(Zeroizing<[u8; SECRET_BYTES]>);
crate::discreet! { SigningSecret }

impl SigningSecret {
    pub fn new(bytes: [u8; SECRET_BYTES]) -> Self {
        Self(Zeroizing::new(bytes))
    }

    /// Restores a secret from its bytes; `None` unless there are 32.
    pub fn restore(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self::new)
    }

    /// Returns the bytes, for sealing.
    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_ref()
    }

    /// Returns the secret for the coach, who is shown it once: `whsec_` and base64.
    pub fn reveal(&self) -> String {
        format!("{PREFIX}{}", STANDARD.encode(self.0.as_ref()))
    }

    fn sign(&self, event: &EventId, unix_s: i64, body: &[u8]) -> String {
        let mut mac = Hmac::<Sha256>::new_from_slice(self.0.as_ref()).expect("HMAC takes a key of any length");
        mac.update(event.as_str().as_bytes());
        mac.update(b".");
        mac.update(unix_s.to_string().as_bytes());
        mac.update(b".");
        mac.update(body);
        format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
    }
}

/// Returns the value of `webhook-signature`: one signature per secret, separated by spaces.
pub fn signature_header(secrets: &[SigningSecret], event: &EventId, unix_s: i64, body: &[u8]) -> String {
    let signatures: Vec<String> = secrets.iter().map(|secret| secret.sign(event, unix_s, body)).collect();
    signatures.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_secrets_sign_as_the_official_library_does() {
        let secrets = [SigningSecret::new([1; 32]), SigningSecret::new([2; 32])];
        let event = EventId::parse("evt_1").unwrap();
        let body = br#"{"type":"new_client"}"#;
        let header = signature_header(&secrets, &event, 1_700_000_000, body);
        let official = secrets.map(|secret| {
            let signer = standardwebhooks::Webhook::new(&secret.reveal()).unwrap();
            signer.sign("evt_1", 1_700_000_000, body).unwrap()
        });
        assert_eq!(header, official.join(" "));
    }
}
