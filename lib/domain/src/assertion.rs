//! The assertion that a client has verified a login link: a JWT (RFC 7519) signed with Ed25519 (RFC 8037), valid for
//! one minute and one audience. The verification keys are published as a JWK set (RFC 7517). A key's id is its
//! thumbprint (RFC 7638).
//!
//! Ed25519 comes from `ring`, which TLS links anyway. The application verifies with published keys and shares no secret
//! with the service.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::TimeDelta;
use ring::signature::{Ed25519KeyPair, KeyPair};
use serde::Serialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use uuid::Uuid;
use zeroize::Zeroizing;

use crate::id::{ClientId, CoachId};
use crate::key_ring::{InvalidSecret, KeyRing};
use crate::time::Timestamp;
use crate::workspace::CanonicalHost;

/// Time in which the application must exchange an assertion.
pub const ASSERTION_LIFE: TimeDelta = TimeDelta::seconds(60);

/// Prefix of the key's text in the derivation of the seed. If the same text serves another purpose, it yields another
/// key there.
const SEED_DOMAIN: &[u8] = b"partner-api login assertion Ed25519\0";

/// The claims about a client that signed in.
#[derive(Debug, Clone)]
pub struct Assertion<'a> {
    pub issuer: &'a str,
    pub audience: &'a CanonicalHost,
    pub client: &'a ClientId,
    pub coach: &'a CoachId,
    pub issued_at: Timestamp,
    /// Identifies this assertion, so that the application accepts it once.
    pub id: Uuid,
}

/// A signed assertion: a bearer credential.
pub struct SignedAssertion(Zeroizing<String>);
crate::discreet! { SignedAssertion }

/// A public key as it is published.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct Jwk {
    /// The type of the key: `OKP` (RFC 8037).
    pub kty: &'static str,
    /// The curve of the key: `Ed25519`.
    pub crv: &'static str,
    /// The public key, base64url.
    pub x: String,
    /// The key's thumbprint.
    pub kid: String,
    /// The use of the key: `sig`, for signatures.
    #[serde(rename = "use")]
    pub usage: &'static str,
    /// The algorithm of the signatures: `EdDSA`.
    pub alg: &'static str,
}

/// The keys that verify assertions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct JwkSet {
    /// The published keys. The `kid` in the header of an assertion names one of them.
    pub keys: Vec<Jwk>,
}

/// The service's keys: the current key signs, all keys are published.
pub struct AssertionSigner {
    pair: Ed25519KeyPair,
    kid: String,
    published: JwkSet,
}

impl AssertionSigner {
    pub fn from_secret(json: &str) -> Result<Self, InvalidSecret> {
        let ring = KeyRing::parse(json)?;
        let mut keys = Vec::new();
        let mut signing = None;
        for (id, text) in ring.texts() {
            let pair = key_pair(text);
            let jwk = Jwk::of(&pair);
            keys.push(jwk.clone());
            if id == ring.current() {
                signing = Some((pair, jwk.kid));
            }
        }
        let (pair, kid) = signing.expect("the current key is one of the keys");
        Ok(Self { pair, kid, published: JwkSet { keys } })
    }

    pub fn jwk_set(&self) -> &JwkSet {
        &self.published
    }

    pub fn sign(&self, assertion: &Assertion<'_>) -> SignedAssertion {
        let header = json!({ "alg": ALGORITHM, "kid": self.kid, "typ": "JWT" });
        let claims = json!({
            "iss": assertion.issuer,
            "aud": assertion.audience.as_str(),
            "sub": assertion.client,
            "coach_id": assertion.coach,
            "iat": assertion.issued_at.unix_s(),
            "exp": (assertion.issued_at + ASSERTION_LIFE).unix_s(),
            "jti": assertion.id,
        });
        let mut jws = Zeroizing::new(format!("{}.{}", encoded(&header), encoded(&claims)));
        let signature = self.pair.sign(jws.as_bytes());
        jws.push('.');
        jws.push_str(&URL_SAFE_NO_PAD.encode(signature));
        SignedAssertion(jws)
    }
}

const ALGORITHM: &str = "EdDSA";

fn encoded(part: &Value) -> String {
    URL_SAFE_NO_PAD.encode(part.to_string())
}

fn key_pair(text: &str) -> Ed25519KeyPair {
    let seed = Sha256::new().chain_update(SEED_DOMAIN).chain_update(text.as_bytes()).finalize();
    Ed25519KeyPair::from_seed_unchecked(&seed).expect("32 bytes make a seed")
}

impl Jwk {
    fn of(pair: &Ed25519KeyPair) -> Self {
        let x = URL_SAFE_NO_PAD.encode(pair.public_key());
        let kid = thumbprint(&x);
        Self { kty: "OKP", crv: "Ed25519", x, kid, usage: "sig", alg: ALGORITHM }
    }
}

/// Returns the SHA-256 over the required members, in the order of their names and without white space.
fn thumbprint(x: &str) -> String {
    URL_SAFE_NO_PAD.encode(Sha256::digest(format!(r#"{{"crv":"Ed25519","kty":"OKP","x":"{x}"}}"#)))
}

impl SignedAssertion {
    /// Returns the application's URL for the assertion. The assertion is in the fragment, which reaches no server and
    /// no log.
    pub fn session_url(&self, host: &CanonicalHost) -> String {
        format!("{}#token={}", session_address(host), *self.0)
    }
}

/// Returns the application's address that takes an assertion.
pub fn session_address(host: &CanonicalHost) -> String {
    format!("{}/session", host.as_str())
}

impl fmt::Debug for AssertionSigner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AssertionSigner(current: {})", self.kid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ring::signature::{ED25519, UnparsedPublicKey};

    const NOW_S: i64 = 1_790_000_000;

    #[test]
    fn an_assertion_names_client_audience_and_expiry() {
        let secret = json!({ "current": "1", "1": "a".repeat(64) });
        let signer = AssertionSigner::from_secret(&secret.to_string()).unwrap();
        let signed = signer.sign(&Assertion {
            issuer: "https://api.example.com",
            audience: &CanonicalHost::parse("https://coach.example.com").unwrap(),
            client: &ClientId::parse("client_1").unwrap(),
            coach: &CoachId::parse("coach_1").unwrap(),
            issued_at: Timestamp::from_ms(NOW_S * 1000 + 999),
            id: Uuid::from_u128(7),
        });
        assert_eq!(format!("{signed:?}"), "SignedAssertion(..)");
        let (text, signature) = signed.0.rsplit_once('.').unwrap();
        let (header, claims) = text.split_once('.').unwrap();
        let decoded = |part: &str| URL_SAFE_NO_PAD.decode(part).unwrap();
        let key = &signer.jwk_set().keys[0];
        UnparsedPublicKey::new(&ED25519, decoded(&key.x)).verify(text.as_bytes(), &decoded(signature)).unwrap();
        let object = |part: &str| serde_json::from_slice::<Value>(&decoded(part)).unwrap();
        assert_eq!(object(header), json!({ "alg": "EdDSA", "kid": key.kid, "typ": "JWT" }));
        let expected = json!({
            "iss": "https://api.example.com", "aud": "https://coach.example.com", "sub": "client_1", "coach_id": "coach_1",
            "iat": NOW_S, "exp": NOW_S + 60, "jti": "00000000-0000-0000-0000-000000000007",
        });
        assert_eq!(object(claims), expected);
    }

    #[test]
    fn the_same_text_elsewhere_is_another_key() {
        let text = "a".repeat(64);
        let plain = Ed25519KeyPair::from_seed_unchecked(&Sha256::digest(&text)).unwrap();
        assert_ne!(plain.public_key().as_ref(), key_pair(&text).public_key().as_ref());
    }

    #[test]
    fn key_thumbprint_and_signature_are_those_of_rfc_8037() {
        let decoded = |text| URL_SAFE_NO_PAD.decode(text).unwrap();
        let pair =
            Ed25519KeyPair::from_seed_unchecked(&decoded("nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A")).unwrap();
        let jwk = Jwk::of(&pair);
        assert_eq!(jwk.x, "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo");
        assert_eq!(jwk.kid, "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k");
        let signature = pair.sign(b"eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc");
        assert_eq!(
            URL_SAFE_NO_PAD.encode(signature),
            "hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg"
        );
    }
}
