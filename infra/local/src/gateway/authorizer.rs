//! The JWT authorizer, and the issuer whose tokens it accepts.
//!
//! In production the application issues the tokens and API Gateway verifies them. The stack does both, so one symmetric
//! key (HS256, RFC 7518 section 3.2) is enough. Expiry is checked on stack time, which no JWT library supports.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::{DateTime, Utc};
use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Map, Value, json};
use sha2::Sha256;

use crate::template::Authorizer;

/// Lifetime of a settings token.
const TOKEN_LIFETIME_S: i64 = 30 * 86_400;

/// The key that signs tokens.
#[derive(Clone)]
pub struct SigningKey([u8; 32]);

impl SigningKey {
    /// Generates a new key.
    pub fn generate() -> Self {
        Self(runtime::random_bytes())
    }

    /// Decodes a key from [`SigningKey::encode`]. Returns `None` for invalid text.
    pub fn decode(text: &str) -> Option<Self> {
        URL_SAFE_NO_PAD.decode(text.trim()).ok()?.try_into().ok().map(Self)
    }

    /// Encodes the key as text, for the data directory.
    pub fn encode(&self) -> String {
        URL_SAFE_NO_PAD.encode(self.0)
    }

    /// Issues a token for a coach that this authorizer accepts.
    pub fn token(&self, coach_id: &str, authorizer: &Authorizer, now: DateTime<Utc>) -> String {
        let issued_at = now.timestamp();
        let claims = json!({
            "iss": authorizer.issuer,
            "aud": authorizer.audience.first(),
            "sub": coach_id,
            "iat": issued_at,
            "exp": issued_at + TOKEN_LIFETIME_S,
        });
        let header = json!({ "alg": "HS256", "typ": "JWT" });
        let [header, claims] = [header, claims].map(|part| URL_SAFE_NO_PAD.encode(part.to_string()));
        let signed = format!("{header}.{claims}");
        let signature = URL_SAFE_NO_PAD.encode(self.mac(&signed).finalize().into_bytes());
        format!("{signed}.{signature}")
    }

    fn mac(&self, signed: &str) -> Hmac<Sha256> {
        let mac = Hmac::<Sha256>::new_from_slice(&self.0).expect("a key of any length is valid");
        mac.chain_update(signed)
    }

    fn verified_claims(&self, token: &str) -> Option<Map<String, Value>> {
        let (signed, signature) = token.rsplit_once('.')?;
        let (header, claims) = signed.split_once('.')?;
        self.mac(signed).verify_slice(&URL_SAFE_NO_PAD.decode(signature).ok()?).ok()?;
        let [header, claims] = [header, claims].map(|part| URL_SAFE_NO_PAD.decode(part).ok());
        let header: Value = serde_json::from_slice(&header?).ok()?;
        (header["alg"] == "HS256").then_some(())?;
        serde_json::from_slice(&claims?).ok()
    }
}

/// Verifies the token in an `Authorization` header and returns its claims. `None` refuses the request.
pub(super) fn authorize(
    authorizer: &Authorizer,
    key: &SigningKey,
    header: Option<&str>,
    now: DateTime<Utc>,
) -> Option<Map<String, Value>> {
    let header = header?.trim();
    // API Gateway accepts a token without "Bearer" too.
    let token = match header.get(..7) {
        Some(scheme) if scheme.eq_ignore_ascii_case("bearer ") => header[7..].trim_start(),
        _ => header,
    };
    let claims = key.verified_claims(token)?;
    let now = now.timestamp();
    let from_our_issuer = claims.get("iss")? == authorizer.issuer.as_str();
    let for_our_audience = match claims.get("aud").or_else(|| claims.get("client_id"))? {
        Value::String(audience) => authorizer.audience.contains(audience),
        Value::Array(named) => {
            named.iter().filter_map(Value::as_str).any(|one| authorizer.audience.iter().any(|ours| ours == one))
        }
        _ => false,
    };
    let not_expired = claims.get("exp")?.as_i64()? > now;
    let not_early = claims.get("nbf").is_none_or(|from| from.as_i64().is_some_and(|from| from <= now));
    (from_our_issuer && for_our_audience && not_expired && not_early).then_some(claims)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn authorizer() -> Authorizer {
        Authorizer { issuer: "http://issuer".to_owned(), audience: vec!["settings".to_owned()] }
    }

    fn at(seconds: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(1_790_000_000 + seconds, 0).unwrap()
    }

    #[test]
    fn a_token_is_valid_for_thirty_days_of_stack_time() {
        let key = SigningKey::decode(&SigningKey::generate().encode()).unwrap();
        let token = key.token("coach_1", &authorizer(), at(0));
        let open = |header: &str, now| authorize(&authorizer(), &key, Some(header), now);
        assert_eq!(open(&format!("Bearer {token}"), at(0)).unwrap()["sub"], "coach_1");
        assert!(open(&token, at(TOKEN_LIFETIME_S - 1)).is_some());
        assert!(open(&token, at(TOKEN_LIFETIME_S)).is_none());
    }

    #[test]
    fn other_keys_issuers_audiences_and_algorithms_are_refused() {
        let key = SigningKey::generate();
        let refused = |header: Option<&str>| authorize(&authorizer(), &key, header, at(0)).is_none();
        assert!(refused(None));
        for header in ["", "Bearer", "Bearer ", "a.b.c", "…é…", "Basic YTpi"] {
            assert!(refused(Some(header)), "{header}");
        }
        assert!(refused(Some(&SigningKey::generate().token("coach_1", &authorizer(), at(0)))));
        let elsewhere = Authorizer { issuer: "http://other".to_owned(), ..authorizer() };
        assert!(refused(Some(&key.token("coach_1", &elsewhere, at(0)))));
        let other_audience = Authorizer { audience: vec!["app".to_owned()], ..authorizer() };
        assert!(refused(Some(&key.token("coach_1", &other_audience, at(0)))));
        let token = key.token("coach_1", &authorizer(), at(0));
        let (_, rest) = token.split_once('.').unwrap();
        assert!(refused(Some(&format!("{}.{rest}", URL_SAFE_NO_PAD.encode(r#"{"alg":"none"}"#)))));
        assert!(refused(Some(&token[..token.len() - 2])));
    }
}
