//! Checks the addresses of a receiver's name when its URL is set, so that the coach learns at once of a URL that can
//! never work. The check that counts is made at each attempt, on the address of the connection.

use std::io;
use std::net::IpAddr;
use std::time::Duration;

use domain::fields::Invalid;
use domain::receiver_url::{REFUSED_ADDRESS, Reach, ReceiverUrl};

/// Time-out of the lookup. A name that does not resolve in time, or not at all, is accepted.
const LOOKUP: Duration = Duration::from_secs(2);

/// Refuses a URL whose name resolves to an address that no webhook is sent to.
pub(crate) async fn check(url: &ReceiverUrl, reach: Reach) -> Result<(), Invalid> {
    if !url.is_name() {
        // The address was checked when the URL was parsed.
        return Ok(());
    }
    let lookup = async {
        let found = tokio::net::lookup_host((url.host(), 0)).await?;
        Ok(found.map(|address| address.ip()).collect())
    };
    check_addresses(lookup, reach).await
}

async fn check_addresses(lookup: impl Future<Output = io::Result<Vec<IpAddr>>>, reach: Reach) -> Result<(), Invalid> {
    match tokio::time::timeout(LOOKUP, lookup).await {
        Ok(Ok(found)) if found.iter().any(|address| !reach.allows(*address)) => {
            Err(Invalid::field("url", REFUSED_ADDRESS))
        }
        Ok(_) | Err(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[rstest::rstest]
    #[case::public(&["8.8.8.8", "2606:4700::1111"], true)]
    #[case::none(&[], true)]
    #[case::private(&["10.0.0.1"], false)]
    #[case::mixed(&["8.8.8.8", "169.254.169.254"], false)]
    #[case::loopback(&["::1"], false)]
    #[tokio::test]
    async fn a_name_is_refused_whole_for_any_of_its_addresses(#[case] found: &[&str], #[case] is_taken: bool) {
        let found = found.iter().map(|text| text.parse().unwrap()).collect();
        assert_eq!(check_addresses(async { Ok(found) }, Reach::Public).await.is_ok(), is_taken);
    }

    #[tokio::test(start_paused = true)]
    async fn a_name_that_does_not_resolve_is_accepted_and_one_that_does_not_in_time() {
        assert!(check_addresses(async { Err(io::ErrorKind::NotFound.into()) }, Reach::Public).await.is_ok());
        assert!(check_addresses(std::future::pending(), Reach::Public).await.is_ok());
    }

    #[tokio::test]
    async fn the_machines_own_name_is_resolved_and_checked() {
        let own = ReceiverUrl::parse("https://localhost/hook", Reach::PublicAndLoopback).unwrap();
        assert!(check(&own, Reach::PublicAndLoopback).await.is_ok());
        assert!(check(&own, Reach::Public).await.is_err());
    }
}
