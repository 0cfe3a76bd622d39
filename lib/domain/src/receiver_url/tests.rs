//! Valid receiver URLs, and the check against every spelling of an address.

use std::net::Ipv4Addr;

use proptest::prelude::*;

use super::*;

fn refusal(text: &str) -> &'static str {
    ReceiverUrl::parse(text, Reach::Public).err().unwrap_or("accepted")
}

#[rstest::rstest]
#[case("https://hooks.example.com/a?b=c", "accepted")]
#[case("https://hooks.example.com:8443", "accepted")]
#[case("HTTPS://HOOKS.EXAMPLE.COM/", "accepted")]
#[case("https://hooks.example.com./", "accepted")]
#[case("https://bücher.example/", "accepted")]
#[case("https://xn--bcher-kva.example/", "accepted")]
#[case("https://my_hook.example.com/", "accepted")]
#[case("https://notlocal.example/", "accepted")]
#[case("https://internal.example.com/", "accepted")]
#[case("https://8.8.8.8/", "accepted")]
#[case("https://[2606:4700::1111]/", NO_IPV6)]
#[case("https://[2606:4700::1111]:8443/hook", NO_IPV6)]
#[case("https://[64:ff9b::8.8.8.8]/", NO_IPV6)]
#[case("http://hooks.example.com/", "must begin with https://")]
#[case("ftp://hooks.example.com/", "must begin with https://")]
#[case("file:///etc/passwd", "must begin with https://")]
#[case("gopher://hooks.example.com/", "must begin with https://")]
#[case("data:text/plain,x", "must begin with https://")]
#[case("wss://hooks.example.com/", "must begin with https://")]
#[case("hooks.example.com", "must be an absolute https URL such as https://hooks.example.com/coaching")]
#[case("//hooks.example.com/", "must be an absolute https URL such as https://hooks.example.com/coaching")]
#[case("https://", "must be an absolute https URL such as https://hooks.example.com/coaching")]
#[case("https://[fe80::1%25eth0]/", "must be an absolute https URL such as https://hooks.example.com/coaching")]
#[case("https://[::1/", "must be an absolute https URL such as https://hooks.example.com/coaching")]
#[case("https://@hooks.example.com/", CREDENTIALS)]
#[case("https://:@hooks.example.com/", CREDENTIALS)]
#[case("https://hooks.example.com/a@b", "accepted")]
#[case("https:///hooks.example.com/", "must name a host after ://")]
#[case("https:hooks.example.com", "must name a host after ://")]
#[case("https://hooks.example.com:0/", "must not name port 0: nothing can listen there")]
#[case("https://hooks.example.com/\r\nX: y", "must not contain spaces or control characters")]
#[case(" https://hooks.example.com/", "must not contain spaces or control characters")]
#[case("https://user:pw@hooks.example.com/", CREDENTIALS)]
#[case("https://user@hooks.example.com/", CREDENTIALS)]
#[case("https://:pw@hooks.example.com/", CREDENTIALS)]
#[case("https://hooks.example.com%40user:pw@evil.example/", CREDENTIALS)]
#[case("https://hooks.example.com/#x", "must not contain a fragment (#...): it would not be sent")]
#[case("https://hooks.example.com/#", "must not contain a fragment (#...): it would not be sent")]
#[case("https://a{b}.example.com/", MALFORMED_NAME)]
#[case("https://a..example.com/", MALFORMED_NAME)]
#[case("https://hooks.example.com../", MALFORMED_NAME)]
#[case("https://localhost/", REFUSED_NAME)]
#[case("https://ⓛⓞcalhost/", REFUSED_NAME)]
#[case("https://loc%61lhost/", REFUSED_NAME)]
#[case("https://lo\tcalhost/", "must not contain spaces or control characters")]
#[case("https:\\\\localhost/", "must name a host after ://")]
#[case("https://metadata.google.internal/computeMetadata/v1/", REFUSED_NAME)]
#[case("https://instance-data/latest/", REFUSED_NAME)]
#[case("https://127.0.0.1/", REFUSED_ADDRESS)]
#[case("https://0/", REFUSED_ADDRESS)]
#[case("https://[::1]/", REFUSED_ADDRESS)]
#[case("https://[2001:0:4136:e378::1]/", REFUSED_ADDRESS)]
#[case("https://[fd00:ec2::254]/", REFUSED_ADDRESS)]
#[case("https://169.254.169.254/latest/meta-data", REFUSED_ADDRESS)]
fn a_receiver_url_is_https_to_a_public_host(#[case] text: &str, #[case] rule: &str) {
    assert_eq!(refusal(text), rule, "{text}");
}

#[test]
fn names_have_the_lengths_that_dns_has() {
    let label = "a".repeat(63);
    assert_eq!(refusal(&format!("https://{label}.example/")), "accepted");
    assert_eq!(refusal(&format!("https://{label}a.example/")), MALFORMED_NAME);
    assert_eq!(refusal(&format!("https://{}example/", format!("{label}.").repeat(4))), MALFORMED_NAME);
}

#[test]
fn a_local_run_also_reaches_loopback_and_nothing_else() {
    let parse = |text| ReceiverUrl::parse(text, Reach::PublicAndLoopback).is_ok();
    assert!(parse("http://127.0.0.1:9000/hook") && parse("http://localhost:9000/") && parse("http://[::1]/"));
    assert!(
        !parse("https://[2606:4700::1111]/")
            && !parse("https://10.0.0.1/")
            && !parse("http://169.254.169.254/")
            && !parse("https://db.internal/")
    );
    assert!(parse("https://hooks.example.com/") && !parse("http://hooks.example.com/") && !parse("http://8.8.8.8/"));
}

#[rstest::rstest]
#[case("https://hooks.example.com/", true)]
#[case("https://8.8.8.8/", true)]
#[case("https://127.0.0.1/", false)]
#[case("https://[::1]/", false)]
#[case("https://localhost/", false)]
#[case("http://127.0.0.1:9000/hook", false)]
fn a_url_of_a_local_run_is_checked_again_before_sending(#[case] text: &str, #[case] is_public: bool) {
    let url = ReceiverUrl::parse(text, Reach::PublicAndLoopback).unwrap();
    assert!(url.is_within(Reach::PublicAndLoopback));
    assert_eq!(url.is_within(Reach::Public), is_public);
}

#[test]
fn debug_shows_the_host_alone() {
    let url = ReceiverUrl::parse("https://hooks.example.com/secret-path", Reach::Public).unwrap();
    assert_eq!(format!("{url:?}"), "ReceiverUrl(hooks.example.com)");
}

/// Returns every spelling of an IPv4 address that browsers and resolvers have ever read.
fn spellings(address: Ipv4Addr) -> Vec<String> {
    let [a, b, c, d] = address.octets();
    let number = u32::from(address);
    let (low24, low16) = (number & 0x00ff_ffff, number & 0xffff);
    vec![
        format!("{address}"),
        format!("{address}."),
        format!("{number}"),
        format!("{number}."),
        format!("0x{number:x}"),
        format!("0X{number:08X}"),
        format!("0{number:o}"),
        format!("{a}.{low24}"),
        format!("{a}.{b}.{low16}"),
        format!("0x{a:x}.0x{b:x}.0x{c:x}.0x{d:x}"),
        format!("0{a:o}.0{b:o}.0{c:o}.0{d:o}"),
        format!("000{a:o}.0x{b:02x}.{c}.{d}"),
        format!("0x{a:x}.0{low24:o}"),
        format!("{a}%2E{b}%2E{c}%2E{d}"),
        format!("{a}。{b}。{c}。{d}"),
        address.to_string().chars().map(|digit| if digit == '.' { '.' } else { fullwidth(digit) }).collect(),
    ]
}

fn fullwidth(digit: char) -> char {
    char::from_u32(u32::from(digit) - u32::from('0') + 0xff10).unwrap()
}

/// Returns IPv6 forms that carry the address and are never a valid target.
fn carriers(address: Ipv4Addr) -> Vec<String> {
    let [a, b, c, d] = address.octets();
    let (high, low) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
    vec![
        format!("[::ffff:{address}]"),
        format!("[::FFFF:{high:x}:{low:x}]"),
        format!("[0:0:0:0:0:ffff:{high:04x}:{low:04x}]"),
        format!("[::{address}]"),
        format!("[64:ff9b:1::{address}]"),
        format!("[2002:{high:x}:{low:x}::1]"),
    ]
}

/// Generates public and refused addresses about equally often.
fn any_v4() -> impl Strategy<Value = Ipv4Addr> {
    let first = prop_oneof![Just(0u8), Just(10), Just(127), Just(169), Just(172), Just(192), Just(224), any::<u8>()];
    (first, prop_oneof![Just(254u8), Just(168), Just(16), any::<u8>()], any::<u16>()).prop_map(|(a, b, rest)| {
        let [c, d] = rest.to_be_bytes();
        Ipv4Addr::new(a, b, c, d)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn no_spelling_of_an_address_gets_past_the_check(address in any_v4()) {
        let public = is_public(address.into());
        for host in spellings(address) {
            match ReceiverUrl::parse(&format!("https://{host}/"), Reach::Public) {
                Ok(url) => {
                    prop_assert!(public, "{}", host);
                    prop_assert_eq!(url.host(), address.to_string(), "what is sent to is the checked address");
                }
                Err(rule) => {
                    prop_assert_eq!(rule, REFUSED_ADDRESS, "{}", host);
                    prop_assert!(!public, "{}", host);
                }
            }
        }
        for host in carriers(address) {
            prop_assert_eq!(refusal(&format!("https://{host}/")), REFUSED_ADDRESS, "{}", host);
        }
        let translated = format!("https://[64:ff9b::{address}]/");
        prop_assert_eq!(refusal(&translated), if public { NO_IPV6 } else { REFUSED_ADDRESS });
    }

    #[test]
    fn a_refused_name_is_refused_in_any_case_at_any_depth(
        name in proptest::sample::select(&REFUSED_NAMES[..]),
        below in "([a-z0-9]{1,8}\\.){0,3}",
        cases in any::<u64>(),
        dot in prop_oneof![Just(""), Just("."), Just("。")],
    ) {
        let cased: String = format!("{below}{name}")
            .chars()
            .enumerate()
            .map(|(place, c)| if cases >> (place % 64) & 1 == 1 { c.to_ascii_uppercase() } else { c })
            .collect();
        prop_assert_eq!(refusal(&format!("https://{cased}{dot}/")), REFUSED_NAME);
        prop_assert_eq!(refusal(&format!("https://x{cased}x.example{dot}/")), "accepted");
    }

    #[test]
    fn parsing_never_panics_and_an_accepted_url_parses_again(text in "\\PC{0,40}", scheme in "(https?:/?/?)?") {
        if let Ok(url) = ReceiverUrl::parse(&format!("{scheme}{text}"), Reach::Public) {
            prop_assert!(url.expose().starts_with("https://"));
            prop_assert_eq!(ReceiverUrl::parse(url.expose(), Reach::Public), Ok(url));
        }
    }
}
