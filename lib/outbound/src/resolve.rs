//! Name resolution for receivers: an answer that holds an address which may not be reached is refused as a whole, and the connection
//! goes to the addresses that were checked. A name that turns to a private address later (DNS rebinding) gains nothing.

use std::net::{IpAddr, SocketAddr};

use domain::receiver_url::Reach;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

/// Why a name leads nowhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ResolveError {
    #[error("name does not resolve")]
    NotFound,
    #[error("address not allowed")]
    NotAllowed,
}

/// Resolves by the operating system and checks what it says.
pub(crate) struct CheckedResolver {
    pub(crate) reach: Reach,
}

impl Resolve for CheckedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let reach = self.reach;
        Box::pin(async move {
            // Port 0 is replaced by the URL's.
            let found = tokio::net::lookup_host((name.as_str(), 0)).await.map_err(|_| ResolveError::NotFound)?;
            let addresses = check(found.map(|address| address.ip()).collect(), reach)?;
            Ok(Box::new(addresses.into_iter().map(|address| SocketAddr::new(address, 0))) as Addrs)
        })
    }
}

fn check(addresses: Vec<IpAddr>, reach: Reach) -> Result<Vec<IpAddr>, ResolveError> {
    match addresses.as_slice() {
        [] => Err(ResolveError::NotFound),
        all if all.iter().all(|address| reach.allows(*address)) => Ok(addresses),
        _ => Err(ResolveError::NotAllowed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[rstest::rstest]
    #[case(&[], Reach::Public, Err(ResolveError::NotFound))]
    #[case(&["8.8.8.8", "2606:4700::1111"], Reach::Public, Ok(2))]
    #[case(&["8.8.8.8", "10.0.0.1"], Reach::Public, Err(ResolveError::NotAllowed))]
    #[case(&["127.0.0.1"], Reach::Public, Err(ResolveError::NotAllowed))]
    #[case(&["127.0.0.1", "::1"], Reach::PublicAndLoopback, Ok(2))]
    #[case(&["127.0.0.1", "169.254.169.254"], Reach::PublicAndLoopback, Err(ResolveError::NotAllowed))]
    fn a_mixed_answer_is_refused_whole(
        #[case] found: &[&str],
        #[case] reach: Reach,
        #[case] outcome: Result<usize, ResolveError>,
    ) {
        let addresses = found.iter().map(|text| text.parse().unwrap()).collect();
        assert_eq!(check(addresses, reach).map(|checked| checked.len()), outcome);
    }
}
