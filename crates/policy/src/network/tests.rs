use std::net::IpAddr;

use proptest::prelude::*;

use super::*;

fn hosts(patterns: &[(&str, HostAccess)]) -> Hosts {
    patterns.iter().map(|(text, access)| (text.parse().unwrap(), *access)).collect()
}

fn allowing(patterns: &[&str]) -> Hosts {
    patterns.iter().map(|text| (text.parse().unwrap(), HostAccess::Allow)).collect()
}

fn host(text: &str) -> Host {
    Host::parse(text).unwrap_or_else(|error| panic!("{text:?}: {error}"))
}

fn reaches(hosts: &Hosts, name: &str, port: u16) -> bool {
    Host::parse(name).is_ok_and(|host| hosts.route(&host, port).is_ok())
}

#[test]
fn every_spelling_of_a_name_is_one_name() {
    for (written, canonical) in [
        ("Example.ORG", "example.org"),
        ("example.org.", "example.org"),
        ("_dmarc.example.org", "_dmarc.example.org"),
        ("bücher.example", "xn--bcher-kva.example"),
        ("BÜCHER.example", "xn--bcher-kva.example"),
        ("XN--BCHER-KVA.example", "xn--bcher-kva.example"),
        ("example\u{3002}org", "example.org"),
        ("ｅｘａｍｐｌｅ.org", "example.org"),
        ("ok.com.evil", "ok.com.evil"),
        ("127.0.0.1.nip.io", "127.0.0.1.nip.io"),
    ] {
        assert_eq!(host(written), Host::Name(canonical.to_owned()), "{written}");
    }
}

#[test]
fn every_spelling_of_an_address_is_one_address() {
    for (written, canonical) in [
        ("127.0.0.1", "127.0.0.1"),
        ("127.0.0.1.", "127.0.0.1"),
        ("127.1", "127.0.0.1"),
        ("127.0.1", "127.0.0.1"),
        ("2130706433", "127.0.0.1"),
        ("0x7f000001", "127.0.0.1"),
        ("0X7F.1", "127.0.0.1"),
        ("0177.0.0.01", "127.0.0.1"),
        ("017700000001", "127.0.0.1"),
        ("１２７.０.０.１", "127.0.0.1"),
        ("127。0。0。1", "127.0.0.1"),
        ("0", "0.0.0.0"),
        ("[::1]", "::1"),
        ("::1", "::1"),
        ("[0:0:0:0:0:0:0:1]", "::1"),
        ("::ffff:127.0.0.1", "127.0.0.1"),
        ("[::ffff:7f00:1]", "127.0.0.1"),
        ("[2001:DB8::A]", "2001:db8::a"),
    ] {
        assert_eq!(host(written), Host::Address(canonical.parse().unwrap()), "{written}");
    }
}

#[test]
fn what_is_no_host_is_refused() {
    for (written, why) in [
        ("", HostError::Empty),
        (".", HostError::Empty),
        ("a..b", HostError::Empty),
        ("example.org..", HostError::Empty),
        (".example.org", HostError::Empty),
        ("a\0.ok.com", HostError::Character),
        ("a b.com", HostError::Character),
        ("a\n.com", HostError::Character),
        ("user@ok.com", HostError::Character),
        ("ok.com%2eevil", HostError::Character),
        ("ok.com/evil", HostError::Character),
        ("ok.com\\evil", HostError::Character),
        ("*.ok.com", HostError::Character),
        ("-ok.com", HostError::Character),
        ("ok-.com", HostError::Character),
        ("a:b", HostError::Character),
        ("[::1", HostError::Character),
        ("[::1%lo]", HostError::Address),
        ("[127.0.0.1]", HostError::Address),
        ("fe80::1%lo", HostError::Character),
        ("256.1.1.1", HostError::Address),
        ("1.2.3.4.5", HostError::Address),
        ("4294967296", HostError::Address),
        ("0x100000000", HostError::Address),
        ("08.1.1.1", HostError::Address),
        ("example.1", HostError::Address),
        ("example.0x1", HostError::Address),
        ("xn--a", HostError::International),
        ("bü cher.example", HostError::International),
    ] {
        assert_eq!(Host::parse(written), Err(why), "{written:?}");
    }
    assert_eq!(Host::parse(&"a".repeat(64)), Err(HostError::TooLong));
    assert_eq!(Host::parse(&["a"; 128].join(".")), Err(HostError::TooLong));
    assert_eq!(Host::parse(&"a".repeat(2000)), Err(HostError::TooLong));
    assert!(Host::parse(&"a".repeat(63)).is_ok());
}

#[test]
fn a_wildcard_stands_for_whole_labels() {
    let below = allowing(&["*.example.org"]);
    for name in ["a.example.org", "a.b.example.org", "A.EXAMPLE.org."] {
        assert!(reaches(&below, name, 443), "{name}");
    }
    for name in ["example.org", "evil-example.org", "evilexample.org", "a.example.org.evil", "org"]
    {
        assert!(!reaches(&below, name, 443), "{name}");
    }
    let with_itself = allowing(&["**.example.org"]);
    assert!(
        reaches(&with_itself, "example.org", 443) && reaches(&with_itself, "a.example.org", 80)
    );
    assert!(!reaches(&with_itself, "evilexample.org", 443));
}

#[test]
fn an_empty_list_reaches_nothing() {
    let none = Hosts::default();
    assert!(none.is_empty());
    for name in ["example.org", "localhost", "127.0.0.1", "8.8.8.8"] {
        assert_eq!(none.route(&host(name), 443), Err(Denial::NotListed), "{name}");
    }
    assert!(hosts(&[("example.org", HostAccess::Deny)]).is_empty());
}

#[test]
fn a_deny_wins_whatever_is_more_specific() {
    let hosts = hosts(&[
        ("*.example.org", HostAccess::Allow),
        ("*.internal.example.org", HostAccess::Deny),
        ("deep.internal.example.org", HostAccess::Allow),
        ("ads.example.org:443", HostAccess::Deny),
    ]);
    let denied =
        |name: &str, port| matches!(hosts.route(&host(name), port), Err(Denial::Denied(_)));
    assert!(reaches(&hosts, "www.example.org", 443));
    assert!(denied("a.internal.example.org", 443) && denied("deep.internal.example.org", 80));
    assert!(denied("ads.example.org", 443) && reaches(&hosts, "ads.example.org", 80));
    assert!(denied("a.internal.example.org", 22), "a deny without a port is for every port");
}

#[test]
fn ports_are_80_and_443_unless_one_is_written() {
    let hosts = allowing(&["example.org", "git.example.org:22", "git.example.org:9418"]);
    for (name, port, expected) in [
        ("example.org", 80, Ok(Route::Resolve)),
        ("example.org", 443, Ok(Route::Resolve)),
        ("example.org", 22, Err(Denial::Port)),
        ("example.org", 8443, Err(Denial::Port)),
        ("git.example.org", 22, Ok(Route::Resolve)),
        ("git.example.org", 9418, Ok(Route::Resolve)),
        ("git.example.org", 443, Err(Denial::Port)),
    ] {
        assert_eq!(hosts.route(&host(name), port), expected, "{name}:{port}");
    }
}

#[test]
fn a_name_that_resolves_to_a_special_address_is_refused_unless_that_is_listed() {
    let named = allowing(&["inside.example.org:80", "inside.example.org:443"]);
    let special = [
        "0.0.0.0",
        "10.1.2.3",
        "100.64.0.1",
        "100.100.100.200",
        "127.0.0.1",
        "127.9.9.9",
        "169.254.169.254",
        "169.254.1.1",
        "168.63.129.16",
        "172.16.0.1",
        "172.31.255.255",
        "192.0.0.192",
        "192.168.1.1",
        "198.18.0.1",
        "224.0.0.1",
        "240.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "::7f00:1",
        "::ffff:10.0.0.1",
        "::ffff:169.254.169.254",
        "64:ff9b::a00:1",
        "64:ff9b::7f00:1",
        "64:ff9b:1::1",
        "fc00::1",
        "fd00:ec2::254",
        "fe80::1",
        "fec0::1",
        "ff02::1",
        "2001::1",
        "2001:db8::1",
        "2002:7f00:1::",
        "3fff::1",
        "4000::1",
    ];
    for text in special {
        let address: IpAddr = text.parse().unwrap();
        let refused = named.check_address(address, 443);
        assert!(matches!(refused, Err(Denial::Special { .. })), "{text}: {refused:?}");
        let listed = allowing(&[&Host::from(address).to_string()]);
        assert_eq!(listed.check_address(address, 443), Ok(()), "{text}");
        assert!(listed.check_address(address, 22).is_err(), "{text}");
    }
    for text in [
        "1.1.1.1",
        "8.8.8.8",
        "172.15.0.1",
        "172.32.0.1",
        "100.128.0.1",
        "192.0.1.1",
        "2606:4700::1",
        "2a00::1",
        "64:ff9b::808:808",
        "::ffff:8.8.8.8",
        "2001:4860::8888",
    ] {
        assert_eq!(named.check_address(text.parse().unwrap(), 443), Ok(()), "{text}");
    }
    let range = allowing(&["10.0.0.0/8", "[fd00::/8]:8080"]);
    assert!(range.check_address("10.9.9.9".parse().unwrap(), 443).is_ok());
    assert!(range.check_address("11.9.9.9".parse().unwrap(), 443).is_ok(), "public");
    assert!(range.check_address("192.168.0.1".parse().unwrap(), 443).is_err());
    assert!(range.check_address("fd12::1".parse().unwrap(), 8080).is_ok());
    assert!(range.check_address("fd12::1".parse().unwrap(), 443).is_err());
}

#[test]
fn a_denied_address_is_denied_behind_a_name_too() {
    let hosts = hosts(&[("*.example.org", HostAccess::Allow), ("8.8.0.0/16", HostAccess::Deny)]);
    let denied = |text: &str| {
        matches!(hosts.check_address(text.parse().unwrap(), 443), Err(Denial::Denied(_)))
    };
    assert!(denied("8.8.8.8") && denied("::ffff:8.8.8.8") && denied("64:ff9b::808:808"));
    assert!(!denied("8.9.8.8"));
    let translated =
        self::hosts(&[("[64:ff9b::/96]", HostAccess::Allow), ("8.8.0.0/16", HostAccess::Deny)]);
    assert!(reaches(&translated, "[64:ff9b::909:909]", 443));
    assert!(!reaches(&translated, "[64:ff9b::808:808]", 443));
}

#[test]
fn localhost_means_the_loopback_addresses_and_no_resolver_is_asked() {
    let listed = allowing(&["localhost:8000", "*.localhost:8000"]);
    for name in ["localhost", "LOCALHOST.", "a.localhost"] {
        assert_eq!(
            listed.route(&host(name), 8000),
            Ok(Route::Addresses(LOOPBACK.to_vec())),
            "{name}"
        );
    }
    assert_eq!(listed.route(&host("127.0.0.1"), 8000), Err(Denial::NotListed));
    let without_6 = hosts(&[("localhost:1", HostAccess::Allow), ("[::1]", HostAccess::Deny)]);
    let only_4 = Route::Addresses(vec!["127.0.0.1".parse().unwrap()]);
    assert_eq!(without_6.route(&host("localhost"), 1), Ok(only_4));
    let without = hosts(&[
        ("localhost:1", HostAccess::Allow),
        ("[::1]", HostAccess::Deny),
        ("127.0.0.0/8", HostAccess::Deny),
    ]);
    assert!(matches!(without.route(&host("localhost"), 1), Err(Denial::Denied(_))));
}

#[test]
fn an_address_is_reached_only_where_it_is_listed() {
    let hosts = allowing(&["example.org", "127.0.0.1:8000", "[::1]:8000"]);
    for spelling in ["127.0.0.1", "127.1", "0x7f000001", "::ffff:127.0.0.1"] {
        assert!(reaches(&hosts, spelling, 8000), "{spelling}");
        assert!(!reaches(&hosts, spelling, 8001), "{spelling}");
    }
    assert!(reaches(&hosts, "[::1]", 8000) && !reaches(&hosts, "127.0.0.2", 8000));
    assert!(!reaches(&hosts, "93.184.216.34", 443), "a public address is not listed by a name");
}

#[test]
fn patterns_say_what_is_wrong_with_them() {
    let wrong = |text: &str| match text.parse::<HostPattern>() {
        Ok(pattern) => format!("{text}: taken as {pattern}"),
        Err(error) => format!("{text}: {error}"),
    };
    let patterns = [
        "*",
        "**",
        "*.",
        "*.*.org",
        "a.*.org",
        "ex*mple.org",
        "*.127.0.0.1",
        "https://example.org",
        "example.org/",
        "example.org:",
        "example.org:0",
        "example.org:65536",
        "example.org:http",
        "example.org:+80",
        "10.0.0.1/8",
        "10.0.0.0/33",
        "0.0.0.0/0",
        "10.0.0.0/x",
        "::1",
        "fd00::/8",
        "[10.0.0.0/8]",
        "[::1]443",
        "[::ffff:10.0.0.0/104]",
        "[::1",
        "",
        " example.org",
        "a..b",
    ];
    insta::assert_snapshot!(patterns.map(wrong).join("\n"));
}

#[test]
fn what_is_allowed_is_a_choice_and_not_half_the_world() {
    let wide = |text: &str| text.parse::<HostPattern>().unwrap().check_allowed().err();
    for text in ["**.org", "*.com:443", "*.co"] {
        assert_eq!(wide(text), Some(PatternError::TopLevel), "{text}");
    }
    for text in ["0.0.0.0/1", "128.0.0.0/1", "8.0.0.0/7", "[2000::/3]", "[8000::/1]", "[2600::/12]"]
    {
        assert_eq!(wide(text), Some(PatternError::WideRange), "{text}");
    }
    for text in [
        "*.example.org",
        "**.co.uk",
        "org",
        "*.internal",
        "**.localhost",
        "*.test:8080",
        "10.0.0.0/8",
        "8.0.0.0/8",
        "240.0.0.0/4",
        "[fc00::/7]",
        "[fe80::/10]",
        "[2001:db8::/32]",
        "[2600::/16]",
        "1.1.1.1",
    ] {
        assert_eq!(wide(text), None, "{text}");
    }
}

#[test]
fn what_a_profile_may_narrow_to() {
    use HostAccess::{Allow, Deny};
    let limit = hosts(&[
        ("*.example.org", Allow),
        ("git.example.net:22", Allow),
        ("10.0.0.0/8", Allow),
        ("ads.example.org", Deny),
    ]);
    let keeps = ("ads.example.org", Deny);
    for (patterns, beyond) in [
        (vec![], Some("ads.example.org")),
        (vec![keeps], None),
        (vec![("*.example.org", Allow), keeps], None),
        (vec![("a.example.org", Allow), ("**.b.example.org:443", Allow), keeps], None),
        (vec![("10.1.0.0/16", Allow), ("10.2.3.4:80", Allow), keeps], None),
        (vec![("*.example.org", Allow), ("**.example.org", Deny)], None),
        (vec![("example.org", Allow), keeps], Some("example.org")),
        (vec![("**.example.org", Allow), keeps], Some("**.example.org")),
        (vec![("a.example.org:8443", Allow), keeps], Some("a.example.org:8443")),
        (vec![("git.example.net", Allow), keeps], Some("git.example.net")),
        (vec![("0.0.0.0/5", Allow), keeps], Some("0.0.0.0/5")),
        (vec![("a.example.org", Allow), ("ads.example.org:443", Deny)], Some("ads.example.org")),
    ] {
        let found = hosts(&patterns).beyond(&limit).map(|(pattern, _)| pattern.to_string());
        assert_eq!(found.as_deref(), beyond, "{patterns:?}");
    }
}

fn names() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(vec!["a", "b", "ab", "a-b"]), 1..4)
        .prop_map(|labels| labels.join("."))
}

fn patterns() -> impl Strategy<Value = (String, HostAccess)> {
    let star = prop::sample::select(vec!["", "*.", "**."]);
    let port = prop::sample::select(vec!["", ":443", ":22"]);
    let access = prop::sample::select(vec![HostAccess::Allow, HostAccess::Deny]);
    (star, names(), port, access)
        .prop_map(|(star, name, port, access)| (format!("{star}{name}{port}"), access))
}

/// Written without the code under test.
fn model(patterns: &[(String, HostAccess)], name: &str, port: u16) -> bool {
    let hit = |pattern: &str, deny: bool| {
        let (place, own) = pattern.split_once(':').unwrap_or((pattern, ""));
        let port_hits = match own {
            "" => deny || port == 80 || port == 443,
            own => own == port.to_string(),
        };
        let labels: Vec<&str> = name.split('.').collect();
        let stars = place.chars().filter(|c| *c == '*').count();
        let base: Vec<&str> =
            place.trim_start_matches("*").trim_start_matches('.').split('.').collect();
        let more = labels.len().checked_sub(base.len());
        let tail = labels.ends_with(&base);
        port_hits
            && tail
            && match (stars, more) {
                (0, Some(0)) | (2, Some(_)) => true,
                (1, Some(more)) => more > 0,
                _ => false,
            }
    };
    let any = |access| {
        patterns
            .iter()
            .any(|(pattern, found)| *found == access && hit(pattern, access == HostAccess::Deny))
    };
    any(HostAccess::Allow) && !any(HostAccess::Deny)
}

proptest! {
    #[test]
    fn decisions_are_those_of_a_plain_model(
        list in prop::collection::vec(patterns(), 0..6), name in names(),
        port in prop::sample::select(vec![22_u16, 80, 443, 8080]),
    ) {
        let hosts: Hosts = list.iter().map(|(text, access)| (text.parse().unwrap(), *access)).collect();
        prop_assert_eq!(reaches(&hosts, &name, port), model(&list, &name, port));
        let shouted = format!("{}.", name.to_uppercase());
        prop_assert_eq!(reaches(&hosts, &shouted, port), model(&list, &name, port));
    }

    #[test]
    fn what_is_within_a_limit_reaches_nothing_more(
        own in prop::collection::vec(patterns(), 0..4), limit in prop::collection::vec(patterns(), 0..4),
        name in names(), port in prop::sample::select(vec![22_u16, 80, 443, 8080]),
    ) {
        let parse = |list: &[(String, HostAccess)]| -> Hosts {
            list.iter().map(|(text, access)| (text.parse().unwrap(), *access)).collect()
        };
        let (own, limit) = (parse(&own), parse(&limit));
        if own.beyond(&limit).is_none() && reaches(&own, &name, port) {
            prop_assert!(reaches(&limit, &name, port));
        }
    }

    #[test]
    fn a_canonical_host_is_canonical(text in "\\PC{0,20}") {
        if let Ok(host) = Host::parse(&text) {
            prop_assert_eq!(Host::parse(&host.to_string()), Ok(host.clone()));
            if let Host::Name(name) = host {
                prop_assert!(name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-_.".contains(&b)));
            }
        }
    }

    #[test]
    fn a_pattern_is_read_as_it_is_written((text, _) in patterns()) {
        let pattern: HostPattern = text.parse().unwrap();
        prop_assert_eq!(pattern.to_string(), text);
    }

    #[test]
    fn any_number_is_the_address_that_the_c_library_takes_it_for(bits in any::<u32>()) {
        let address = IpAddr::V4(bits.into());
        let [a, b, c, d] = bits.to_be_bytes();
        for text in [
            format!("{bits}"), format!("{bits:#x}"), format!("0{bits:o}"),
            format!("{a}.{}", bits & 0xff_ffff), format!("{a}.{b}.{:#x}", bits & 0xffff),
            format!("0{a:o}.{b:#x}.{c}.{d}."),
        ] {
            prop_assert_eq!(Host::parse(&text), Ok(Host::Address(address)), "{}", text);
        }
    }
}
