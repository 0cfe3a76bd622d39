//! The check of a receiver's certificate: rustls's own, with a name for the certificates that sign themselves. Its own
//! error differs for them, by whether the certificate may sign others.

use std::sync::Arc;

use runtime::BoxError;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, DigitallySignedStruct, Error, OtherError, RootCertStore, SignatureScheme};
use webpki::EndEntityCert;

/// The certificate names itself as its issuer.
#[derive(Debug, thiserror::Error)]
#[error("the certificate is self-signed")]
pub(crate) struct SelfSigned;

/// Checks certificates as rustls does.
#[derive(Debug)]
pub(crate) struct Certificates(Arc<WebPkiServerVerifier>);

impl Certificates {
    /// Trusts these authorities.
    pub(crate) fn new(authorities: RootCertStore, provider: Arc<CryptoProvider>) -> Result<Self, BoxError> {
        Ok(Self(WebPkiServerVerifier::builder_with_provider(Arc::new(authorities), provider).build()?))
    }
}

impl ServerCertVerifier for Certificates {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.0.verify_server_cert(certificate, intermediates, name, ocsp_response, now).map_err(|error| {
            if is_self_signed(certificate) {
                CertificateError::Other(OtherError(Arc::new(SelfSigned))).into()
            } else {
                error
            }
        })
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.0.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.0.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_verify_schemes()
    }
}

fn is_self_signed(certificate: &CertificateDer<'_>) -> bool {
    EndEntityCert::try_from(certificate).is_ok_and(|parsed| parsed.issuer() == parsed.subject())
}
