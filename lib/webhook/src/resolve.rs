//! Name resolution for receivers. If any address of a name may not be reached, the whole name is refused. The
//! connection goes to the addresses that were checked, so DNS rebinding gains nothing.

use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::vec;

use domain::receiver_url::Reach;
use hyper_util::client::legacy::connect::dns::Name;
use tower::Service;

/// Limit of the addresses of a name that are tried. They share the time for connecting: a hundred addresses would leave
/// too little for each.
const MAX_TRIED: usize = 8;

/// A lookup of a name's addresses.
pub type Lookup = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>>;

/// A resolver of names.
pub trait Names: Send + Sync + 'static {
    /// All addresses of the name, unchecked.
    fn lookup(&self, name: &str) -> Lookup;
}

/// The operating system's resolver.
pub struct SystemNames;

impl Names for SystemNames {
    fn lookup(&self, name: &str) -> Lookup {
        let name = name.to_owned();
        Box::pin(async move {
            let found = tokio::net::lookup_host((name, 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        })
    }
}

/// The reason why a name has no usable address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ResolveError {
    #[error("name does not resolve")]
    NotFound,
    #[error("address not allowed")]
    NotAllowed,
    #[error("name has no IPv4 address")]
    NoIpv4,
}

/// Resolves names and checks their addresses.
#[derive(Clone)]
pub(crate) struct CheckedResolver {
    pub(crate) reach: Reach,
    pub(crate) names: Arc<dyn Names>,
}

/// Addresses with port 0, which the connector replaces by the URL's port.
type Addresses = vec::IntoIter<SocketAddr>;

impl Service<Name> for CheckedResolver {
    type Response = Addresses;
    type Error = ResolveError;
    type Future = Pin<Box<dyn Future<Output = Result<Addresses, ResolveError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ResolveError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let (reach, lookup) = (self.reach, self.names.lookup(name.as_str()));
        Box::pin(async move {
            let found = lookup.await.map_err(|_| ResolveError::NotFound)?;
            let addresses = check(found, reach)?.into_iter().take(MAX_TRIED);
            Ok(addresses.map(|address| SocketAddr::new(address, 0)).collect::<Vec<_>>().into_iter())
        })
    }
}

/// The addresses to try, if the name may be reached.
fn check(addresses: Vec<IpAddr>, reach: Reach) -> Result<Vec<IpAddr>, ResolveError> {
    if addresses.is_empty() {
        return Err(ResolveError::NotFound);
    }
    if !addresses.iter().all(|address| reach.allows(*address)) {
        return Err(ResolveError::NotAllowed);
    }
    let tried: Vec<IpAddr> = addresses.into_iter().filter(|address| reach.has_way_to(*address)).collect();
    if tried.is_empty() { Err(ResolveError::NoIpv4) } else { Ok(tried) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[rstest::rstest]
    #[case(&[], Reach::Public, Err(ResolveError::NotFound))]
    #[case(&["8.8.8.8", "1.1.1.1"], Reach::Public, Ok(2))]
    #[case(&["8.8.8.8", "2606:4700::1111"], Reach::Public, Ok(1))]
    #[case(&["2606:4700::1111"], Reach::Public, Err(ResolveError::NoIpv4))]
    #[case(&["2606:4700::1111"], Reach::PublicAndLoopback, Err(ResolveError::NoIpv4))]
    #[case(&["8.8.8.8", "10.0.0.1"], Reach::Public, Err(ResolveError::NotAllowed))]
    #[case(&["2606:4700::1111", "::ffff:8.8.8.8"], Reach::Public, Err(ResolveError::NotAllowed))]
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

    #[tokio::test]
    async fn the_machines_own_names_are_refused_in_production() {
        let mut resolver = CheckedResolver { reach: Reach::Public, names: Arc::new(SystemNames) };
        let refused = resolver.call("localhost".parse().unwrap()).await.err().unwrap();
        assert_eq!(refused.to_string(), "address not allowed");
    }
}
