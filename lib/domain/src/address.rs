//! Which addresses a webhook may be sent to: public unicast ones. Everything in IANA's special-purpose registries for IPv4 and
//! IPv6 that is not globally reachable is refused, and so is every IPv6 form that carries a refused IPv4 address.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::LazyLock;

use ipnet::{Ipv4Net, Ipv6Net};

/// <https://www.iana.org/assignments/iana-ipv4-special-registry/>, multicast and the reserved block.
const REFUSED_V4: [&str; 18] = [
    "0.0.0.0/8",
    "10.0.0.0/8",
    "100.64.0.0/10",
    "127.0.0.0/8",
    "168.63.129.16/32",
    "169.254.0.0/16",
    "172.16.0.0/12",
    "192.0.0.0/24",
    "192.0.2.0/24",
    "192.31.196.0/24",
    "192.52.193.0/24",
    "192.88.99.0/24",
    "192.168.0.0/16",
    "192.175.48.0/24",
    "198.18.0.0/15",
    "198.51.100.0/24",
    "203.0.113.0/24",
    "224.0.0.0/3",
];

/// Of <https://www.iana.org/assignments/iana-ipv6-special-registry/>, what lies inside `2000::/3`. Outside of it nothing is unicast
/// and global, but for the translation prefixes that [`carried_v4`] looks into.
const REFUSED_V6: [&str; 5] = ["2001::/23", "2001:db8::/32", "2620:4f:8000::/48", "3fff::/20", "2002::/16"];

const GLOBAL_UNICAST_V6: &str = "2000::/3";

fn v4(text: &str) -> Ipv4Net {
    text.parse().expect("a literal network")
}

fn v6(text: &str) -> Ipv6Net {
    text.parse().expect("a literal network")
}

static REFUSED_V4_NETS: LazyLock<Vec<Ipv4Net>> = LazyLock::new(|| REFUSED_V4.into_iter().map(v4).collect());
static REFUSED_V6_NETS: LazyLock<Vec<Ipv6Net>> = LazyLock::new(|| REFUSED_V6.into_iter().map(v6).collect());
static GLOBAL_UNICAST_V6_NET: LazyLock<Ipv6Net> = LazyLock::new(|| v6(GLOBAL_UNICAST_V6));

/// Whether a webhook may be sent there.
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    !REFUSED_V4_NETS.iter().any(|net| net.contains(&address))
}

/// NAT64 (64:ff9b::/96) is how an IPv6-only network reaches the IPv4 internet: judged by the address it carries. Other forms that
/// carry one (mapped, compatible, 6to4, local-use NAT64) have no business in a public name and fall to the rules.
fn is_public_v6(address: Ipv6Addr) -> bool {
    if let Some(carried) = carried_v4(address) {
        return is_public_v4(carried);
    }
    GLOBAL_UNICAST_V6_NET.contains(&address) && !REFUSED_V6_NETS.iter().any(|net| net.contains(&address))
}

fn carried_v4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let segments = address.segments();
    let well_known = segments[..6] == [0x64, 0xff9b, 0, 0, 0, 0];
    let [.., a, b, c, d] = address.octets();
    well_known.then(|| Ipv4Addr::new(a, b, c, d))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[rstest::rstest]
    #[case("8.8.8.8", true)]
    #[case("2606:4700::1111", true)]
    #[case("64:ff9b::808:808", true)]
    #[case("64:ff9b::a00:1", false)]
    #[case("64:ff9b:1::808:808", false)]
    #[case("::ffff:10.0.0.1", false)]
    #[case("::ffff:8.8.8.8", false)]
    #[case("::127.0.0.1", false)]
    #[case("2002:0a00:0001::", false)]
    #[case("2001::1", false)]
    #[case("::1", false)]
    #[case("::", false)]
    #[case("fe80::1", false)]
    #[case("fc00::1", false)]
    #[case("fd00:ec2::254", false)]
    #[case("ff02::1", false)]
    #[case("127.0.0.1", false)]
    #[case("127.255.0.1", false)]
    #[case("0.0.0.0", false)]
    #[case("10.1.2.3", false)]
    #[case("172.31.255.255", false)]
    #[case("172.32.0.0", true)]
    #[case("192.168.0.1", false)]
    #[case("100.64.0.1", false)]
    #[case("169.254.169.254", false)]
    #[case("224.0.0.1", false)]
    #[case("255.255.255.255", false)]
    fn only_public_unicast_addresses_pass(#[case] address: &str, #[case] public: bool) {
        assert_eq!(is_public(address.parse().unwrap()), public, "{address}");
    }
}
