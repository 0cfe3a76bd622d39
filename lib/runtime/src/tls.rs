//! TLS as a client that has no certificate of its own.

use std::sync::Arc;

use rustls::crypto::ring::{cipher_suite, default_provider, kx_group};
use rustls::crypto::{CryptoProvider, KeyProvider};
use rustls::pki_types::PrivateKeyDer;
use rustls::sign::SigningKey;
use rustls::{Error, SupportedCipherSuite};

/// What AWS's endpoints choose from, in the order in which they do: AES and SHA-256 are the processor's work, SHA-384 and ChaCha20 the program's.
const AWS_SUITES: [SupportedCipherSuite; 6] = [
    cipher_suite::TLS13_AES_128_GCM_SHA256,
    cipher_suite::TLS13_AES_256_GCM_SHA384,
    cipher_suite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
    cipher_suite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
    cipher_suite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
    cipher_suite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
];

/// ring's algorithms, all but those that sign for a client: of a function's code, a part that would never run.
pub fn client_crypto() -> CryptoProvider {
    CryptoProvider { key_provider: &NoKeys, ..default_provider() }
}

/// What a client of AWS needs of them.
pub(crate) fn aws_crypto() -> CryptoProvider {
    CryptoProvider {
        cipher_suites: AWS_SUITES.to_vec(),
        kx_groups: vec![kx_group::X25519, kx_group::SECP256R1],
        ..client_crypto()
    }
}

#[derive(Debug)]
struct NoKeys;

impl KeyProvider for NoKeys {
    fn load_private_key(&self, _key: PrivateKeyDer<'static>) -> Result<Arc<dyn SigningKey>, Error> {
        Err(Error::General("a function has no certificate of its own".to_owned()))
    }
}
