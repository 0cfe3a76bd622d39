//! The addresses that webhooks come from, as the operator lists them. No function learns its own address: a NAT gateway
//! has it.

use std::net::IpAddr;
use std::str::FromStr;

use ipnet::IpNet;
use serde::Serialize;

/// The published list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct WebhookAddresses {
    /// The addresses and ranges, in CIDR form.
    prefixes: Vec<String>,
}

impl WebhookAddresses {
    /// Environment variable with the list. A deployment without it has no fixed addresses.
    pub const SETTING: &str = "WEBHOOK_ADDRESSES";
}

impl FromStr for WebhookAddresses {
    type Err = String;

    /// Parses addresses and CIDR ranges with commas between them, or returns the rule that an entry breaks.
    fn from_str(list: &str) -> Result<Self, String> {
        let prefixes = list.split(',').map(|entry| network(entry).map(|network| network.to_string()));
        Ok(Self { prefixes: prefixes.collect::<Result<_, _>>()? })
    }
}

/// Parses a CIDR range. An address is the range of itself.
fn network(entry: &str) -> Result<IpNet, String> {
    let network = entry.parse::<IpNet>().or_else(|_| entry.parse::<IpAddr>().map(IpNet::from));
    let network = network.map_err(|_| format!("{entry:?} is no address and no CIDR range"))?;
    if network.trunc() == network {
        Ok(network)
    } else {
        Err(format!("{entry:?} is an address within a range: the range is {}", network.trunc()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_become_ranges_in_the_order_of_the_list() {
        let list = "203.0.113.7,198.51.100.0/24,2001:db8::7,2001:db8:12::/48,192.0.2.1/32,0.0.0.0/0";
        assert_eq!(
            list.parse::<WebhookAddresses>().unwrap().prefixes,
            ["203.0.113.7/32", "198.51.100.0/24", "2001:db8::7/128", "2001:db8:12::/48", "192.0.2.1/32", "0.0.0.0/0"]
        );
    }

    #[rstest::rstest]
    #[case("203.0.113.256", "\"203.0.113.256\" is no address and no CIDR range")]
    #[case("203.0.113.7/33", "\"203.0.113.7/33\" is no address and no CIDR range")]
    #[case("203.0.113", "\"203.0.113\" is no address and no CIDR range")]
    #[case("hooks.example.com", "\"hooks.example.com\" is no address and no CIDR range")]
    #[case("203.0.113.7,", "\"\" is no address and no CIDR range")]
    #[case("203.0.113.7, 203.0.113.8", "\" 203.0.113.8\" is no address and no CIDR range")]
    #[case("198.51.100.7/24", "\"198.51.100.7/24\" is an address within a range: the range is 198.51.100.0/24")]
    #[case("2001:db8::1/64", "\"2001:db8::1/64\" is an address within a range: the range is 2001:db8::/64")]
    fn an_entry_that_is_no_range_is_refused_by_its_text(#[case] list: &str, #[case] rule: &str) {
        assert_eq!(list.parse::<WebhookAddresses>().unwrap_err(), rule);
    }
}
