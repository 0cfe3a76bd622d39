//! The addresses that a webhook may be sent to: public unicast addresses.
//!
//! Every block of IANA's special-purpose registries is refused, globally reachable blocks included (protocol anycast,
//! AS112): no receiver lives there. Every IPv6 form that carries a refused IPv4 address is refused too.
//!
//! Sources, as of 2025-10: <https://www.iana.org/assignments/iana-ipv4-special-registry/> and
//! <https://www.iana.org/assignments/iana-ipv6-special-registry/>.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;

/// The IPv4 registry, multicast, and one block of a cloud provider. Inner blocks are covered by their outer blocks.
const REFUSED_V4: [&str; 18] = [
    "0.0.0.0/8",        // this network (RFC 791)
    "10.0.0.0/8",       // private (RFC 1918)
    "100.64.0.0/10",    // shared by carriers (RFC 6598); a provider's metadata, 100.100.100.200
    "127.0.0.0/8",      // loopback (RFC 1122)
    "168.63.129.16/32", // Azure's host: public by its number, and answers every virtual machine
    "169.254.0.0/16",   // link-local (RFC 3927); metadata, 169.254.169.254 and .170.2
    "172.16.0.0/12",    // private (RFC 1918)
    "192.0.0.0/24",     // protocol assignments (RFC 6890): DS-Lite, PCP, TURN, NAT64 discovery; metadata, 192.0.0.192
    "192.0.2.0/24",     // documentation (RFC 5737)
    "192.31.196.0/24",  // AS112 (RFC 7535)
    "192.52.193.0/24",  // AMT (RFC 7450)
    "192.88.99.0/24",   // 6to4 and 6a44 relays, deprecated (RFC 7526, RFC 6751)
    "192.168.0.0/16",   // private (RFC 1918)
    "192.175.48.0/24",  // AS112 (RFC 7534)
    "198.18.0.0/15",    // benchmarking (RFC 2544)
    "198.51.100.0/24",  // documentation (RFC 5737)
    "203.0.113.0/24",   // documentation (RFC 5737)
    "224.0.0.0/3",      // multicast (RFC 5771), reserved (RFC 1112), limited broadcast (RFC 8190)
];

/// The IPv6 registry inside `2000::/3`. No other IPv6 address is global unicast, except the translation prefix that
/// [`carried_v4`] handles.
const REFUSED_V6: [&str; 5] = [
    "2001::/23", // protocol assignments (RFC 2928): Teredo, benchmarking, AMT, AS112, ORCHID, drone tags, anycast
    "2001:db8::/32", // documentation (RFC 3849)
    "2002::/16", // 6to4 (RFC 3056)
    "2620:4f:8000::/48", // AS112 (RFC 7534)
    "3fff::/20", // documentation (RFC 9637)
];

const GLOBAL_UNICAST_V6: [&str; 1] = ["2000::/3"];

/// Returns true if a webhook may be sent to the address. NAT64 (64:ff9b::/96) is how an IPv6-only network reaches the
/// IPv4 internet, so the carried IPv4 address decides. Other forms that carry one (mapped, compatible, 6to4, local-use
/// NAT64) never belong to a public name and are refused.
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(_) => !is_in(address, &REFUSED_V4),
        IpAddr::V6(v6) => match carried_v4(v6) {
            Some(carried) => is_public(carried.into()),
            None => is_in(address, &GLOBAL_UNICAST_V6) && !is_in(address, &REFUSED_V6),
        },
    }
}

fn is_in(address: IpAddr, networks: &[&str]) -> bool {
    networks.iter().any(|network| network.parse::<IpNet>().expect("a literal network").contains(&address))
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
    use proptest::prelude::*;

    /// Every row of the two registries, inner blocks included: the block, and IANA's "globally reachable".
    const REGISTRY: &[(&str, bool)] = &[
        ("0.0.0.0/8", false),
        ("0.0.0.0/32", false),
        ("10.0.0.0/8", false),
        ("100.64.0.0/10", false),
        ("127.0.0.0/8", false),
        ("169.254.0.0/16", false),
        ("172.16.0.0/12", false),
        ("192.0.0.0/24", false),
        ("192.0.0.0/29", false),
        ("192.0.0.8/32", false),
        ("192.0.0.9/32", true),
        ("192.0.0.10/32", true),
        ("192.0.0.170/32", false),
        ("192.0.0.171/32", false),
        ("192.0.2.0/24", false),
        ("192.31.196.0/24", true),
        ("192.52.193.0/24", true),
        ("192.88.99.0/24", false),
        ("192.88.99.2/32", false),
        ("192.168.0.0/16", false),
        ("192.175.48.0/24", true),
        ("198.18.0.0/15", false),
        ("198.51.100.0/24", false),
        ("203.0.113.0/24", false),
        ("240.0.0.0/4", false),
        ("255.255.255.255/32", false),
        ("::1/128", false),
        ("::/128", false),
        ("::ffff:0:0/96", false),
        ("64:ff9b:1::/48", false),
        ("100::/64", false),
        ("100:0:0:1::/64", false),
        ("2001::/23", false),
        ("2001::/32", false),
        ("2001:1::1/128", true),
        ("2001:1::2/128", true),
        ("2001:1::3/128", true),
        ("2001:2::/48", false),
        ("2001:3::/32", true),
        ("2001:4:112::/48", true),
        ("2001:10::/28", false),
        ("2001:20::/28", true),
        ("2001:30::/28", true),
        ("2001:db8::/32", false),
        ("2002::/16", false),
        ("2620:4f:8000::/48", true),
        ("3fff::/20", false),
        ("5f00::/16", false),
        ("fc00::/7", false),
        ("fe80::/10", false),
        // Not in the registries, and not public either: multicast, site-local, IPv4-compatible.
        ("224.0.0.0/4", false),
        ("ff00::/8", false),
        ("fec0::/10", false),
        ("::/96", false),
    ];

    #[test]
    fn every_registered_block_is_refused_from_its_first_to_its_last_address() {
        for (block, globally_reachable) in REGISTRY {
            let net: ipnet::IpNet = block.parse().unwrap();
            for address in [net.network(), net.broadcast()] {
                assert!(!is_public(address), "{address} of {block}, globally reachable: {globally_reachable}");
            }
        }
    }

    /// The same rule, by the standard library's predicates and by comparison of numbers.
    fn special_v4(address: Ipv4Addr) -> bool {
        let [a, b, c, d] = address.octets();
        address.is_unspecified()
            || address.is_private()
            || address.is_loopback()
            || address.is_link_local()
            || address.is_documentation()
            || address.is_multicast()
            || address.is_broadcast()
            || a == 0
            || a >= 240
            || (a == 100 && b & 0xc0 == 64)
            || (a == 198 && b & 0xfe == 18)
            || (a == 192 && matches!((b, c), (0, 0) | (31, 196) | (52, 193) | (88, 99) | (175, 48)))
            || (a, b, c, d) == (168, 63, 129, 16)
    }

    fn special_v6(address: Ipv6Addr) -> bool {
        let [a, b, c, d, e, f, g, h] = address.segments();
        if (a, b, c, d, e, f) == (0x64, 0xff9b, 0, 0, 0, 0) {
            let [g0, g1] = g.to_be_bytes();
            let [h0, h1] = h.to_be_bytes();
            return special_v4(Ipv4Addr::new(g0, g1, h0, h1));
        }
        match a {
            0x2001 => b < 0x200 || b == 0xdb8,
            0x2002 => true,
            0x2620 => (b, c) == (0x4f, 0x8000),
            0x3fff => b < 0x1000,
            _ => !(0x2000..0x4000).contains(&a),
        }
    }

    /// Generates an address inside a block, near a block, or anywhere.
    fn any_address() -> impl Strategy<Value = IpAddr> {
        let near = (0..REGISTRY.len(), any::<u128>(), 0..3u128, any::<bool>()).prop_map(|(row, host, off, up)| {
            let net: ipnet::IpNet = REGISTRY[row].0.parse().unwrap();
            let bits = u32::from(net.max_prefix_len() - net.prefix_len());
            let size = 1u128.checked_shl(bits).unwrap_or(0);
            let shift = if up { off.wrapping_mul(size) } else { (off.wrapping_mul(size)).wrapping_neg() };
            let inside = if size == 0 { host } else { host % size };
            match net.network() {
                IpAddr::V4(base) => {
                    let number = u128::from(u32::from(base)).wrapping_add(inside).wrapping_add(shift);
                    IpAddr::V4(Ipv4Addr::from((number & u128::from(u32::MAX)) as u32))
                }
                IpAddr::V6(base) => IpAddr::V6(u128::from(base).wrapping_add(inside).wrapping_add(shift).into()),
            }
        });
        let translated = any::<u32>().prop_map(|v4| IpAddr::V6(((0x64_ff9b_u128 << 96) | u128::from(v4)).into()));
        let v4 = any::<u32>().prop_map(|number| IpAddr::V4(number.into()));
        let v6 = any::<u128>().prop_map(|number| IpAddr::V6(number.into()));
        let global = any::<u128>().prop_map(|number| IpAddr::V6(((number >> 3) | (1 << 125)).into()));
        prop_oneof![4 => near, 1 => translated, 1 => v4, 1 => v6, 1 => global]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]

        #[test]
        fn two_implementations_of_the_public_address_rule_agree(address in any_address()) {
            let special = match address {
                IpAddr::V4(address) => special_v4(address),
                IpAddr::V6(address) => special_v6(address),
            };
            prop_assert_eq!(is_public(address), !special, "{}", address);
        }

        #[test]
        fn an_ipv6_form_never_reaches_an_ipv4_address_that_is_refused(number in any::<u32>()) {
            let v4 = Ipv4Addr::from(number);
            let low = u128::from(number);
            for carrying in [
                v4.to_ipv6_mapped().into(),
                low,
                (0x64_ff9b_u128 << 96) | low,
                (0x64_ff9b_0001_u128 << 80) | low,
                (0x2002_u128 << 112) | (low << 80),
                (0x2001_u128 << 112) | u128::from(!number),
            ] {
                let public = is_public(IpAddr::V6(carrying.into()));
                prop_assert!(!public || is_public(v4.into()), "{}", Ipv6Addr::from(carrying));
            }
        }
    }
}
