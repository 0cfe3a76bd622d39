//! Reasons for the coach's delivery log why a webhook was not answered: short, fixed texts without URL or path.

use std::error::Error;
use std::io::ErrorKind;

use hyper_util::client::legacy::Error as ClientError;
use rustls::{CertificateError, Error as TlsError, OtherError};
use tokio::time::error::Elapsed;

use crate::certificate::SelfSigned;
use crate::resolve::ResolveError;

/// The reason in an error of the HTTP client: the first known cause in its source chain.
pub(crate) fn reason(error: &ClientError) -> &'static str {
    let mut cause = error.source();
    while let Some(current) = cause {
        if let Some(reason) = of_cause(current) {
            return reason;
        }
        cause = current.source();
    }
    if error.is_connect() { "no connection" } else { "no valid HTTP answer" }
}

fn of_cause(cause: &(dyn Error + 'static)) -> Option<&'static str> {
    if let Some(error) = cause.downcast_ref::<ResolveError>() {
        return Some(match error {
            ResolveError::NotFound => "name does not resolve",
            ResolveError::NotAllowed => ADDRESS_NOT_ALLOWED,
            ResolveError::NoIpv4 => "name has no IPv4 address",
        });
    }
    if cause.is::<Elapsed>() {
        return Some(CONNECT_TIMED_OUT);
    }
    if let Some(error) = cause.downcast_ref::<TlsError>() {
        return Some(of_tls(error));
    }
    if let Some(error) = cause.downcast_ref::<std::io::Error>() {
        return of_io(error);
    }
    let error = cause.downcast_ref::<hyper::Error>()?;
    if error.is_timeout() {
        Some("connection lost")
    } else if error.is_incomplete_message() || error.is_closed() {
        Some(CLOSED)
    } else if error.is_parse() {
        Some("no valid HTTP answer")
    } else {
        None
    }
}

/// The address that a receiver's URL holds, or that its name resolves to, is refused.
pub(crate) const ADDRESS_NOT_ALLOWED: &str = "address not allowed";
const CONNECT_TIMED_OUT: &str = "connection timed out";
const CLOSED: &str = "connection closed before an answer";

/// An error of TLS comes wrapped in one of I/O, which passes its inner error's source on, not the inner error itself.
fn of_io(error: &std::io::Error) -> Option<&'static str> {
    if let Some(inner) = error.get_ref().and_then(|inner| of_cause(inner)) {
        return Some(inner);
    }
    match error.kind() {
        ErrorKind::ConnectionRefused => Some("connection refused"),
        ErrorKind::ConnectionReset | ErrorKind::ConnectionAborted | ErrorKind::BrokenPipe => Some("connection reset"),
        ErrorKind::TimedOut => Some(CONNECT_TIMED_OUT),
        ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable => Some("host not reachable"),
        ErrorKind::UnexpectedEof => Some(CLOSED),
        _ => None,
    }
}

fn of_tls(error: &TlsError) -> &'static str {
    match error {
        TlsError::InvalidCertificate(certificate) => match certificate {
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => "TLS: certificate expired",
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
                "TLS: certificate not valid yet"
            }
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                "TLS: certificate is for another name"
            }
            CertificateError::UnknownIssuer => "TLS: certificate issuer not trusted",
            CertificateError::BadSignature => "TLS: certificate signature not valid",
            CertificateError::Revoked => "TLS: certificate revoked",
            CertificateError::Other(OtherError(other)) if other.is::<SelfSigned>() => "TLS: certificate is self-signed",
            _ => "TLS: certificate not valid",
        },
        TlsError::PeerIncompatible(_) => "TLS: no version or cipher in common",
        TlsError::AlertReceived(_) => "TLS: refused by the receiver",
        TlsError::InvalidMessage(_) => "TLS: the receiver does not speak it",
        _ => "TLS: handshake failed",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The guide for receivers.
    const GUIDE: &str = include_str!("../../../functions/docs/pages/events.md");

    /// The texts of this module are the reasons.
    #[test]
    fn the_guide_explains_every_reason() {
        let module = include_str!("error.rs").split("#[cfg(test)]").next().unwrap();
        let reasons: Vec<&str> = module.split('"').skip(1).step_by(2).collect();
        assert!(reasons.contains(&"TLS: certificate is self-signed") && reasons.contains(&CLOSED));
        for reason in reasons {
            assert!(GUIDE.contains(&format!("`{reason}`")), "{reason}");
        }
    }
}
