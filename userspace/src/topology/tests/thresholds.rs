use std::{net::IpAddr, sync::Arc, time::Duration};

use crate::topology::{AgeThreshold, Prefix};

fn seconds(option: &str, address: &str) -> Option<u64> {
    let option: Arc<str> = option.into();
    let address: IpAddr = address.parse().unwrap();
    let threshold = AgeThreshold::from_option(Some(&option));
    assert_eq!(threshold.text(), Some(&*option));
    threshold.of(address).map(|it: Duration| it.as_secs())
}

#[test]
fn one_number_is_for_every_address() {
    assert_eq!(seconds("300", "172.18.0.1"), Some(300));
    assert_eq!(seconds("300", "fd00::1"), Some(300));
    assert_eq!(seconds("0", "172.18.0.1"), None);
}

#[test]
fn the_longest_prefix_wins_and_others_have_the_default() {
    let option = "192.168.0.0/16:300;192.168.10.0/24:0;fe80::/10:600;1200";
    assert_eq!(seconds(option, "192.168.1.1"), Some(300));
    assert_eq!(seconds(option, "192.168.10.1"), None);
    assert_eq!(seconds(option, "fe80::1"), Some(600));
    assert_eq!(seconds(option, "fd00::1"), Some(1200));
    assert_eq!(seconds("10.0.0.1:5", "10.0.0.1"), Some(5));
    assert_eq!(seconds("10.0.0.1:5", "10.0.0.2"), None);
    assert_eq!(seconds("::/0:7", "fd00::1"), Some(7));
}

#[test]
fn without_an_option_or_with_an_unreadable_one_bindings_do_not_expire() {
    let any: IpAddr = [172, 18, 0, 1].into();
    assert_eq!(AgeThreshold::from_option(None).of(any), None);
    for option in [
        "",
        "abc",
        "300;abc",
        "10.0.0.0/33:5;300",
        "-1",
        "4294967296",
    ] {
        assert_eq!(seconds(option, "172.18.0.1"), None, "{option}");
    }
}

#[test]
fn a_prefix_covers_its_own_family_only() {
    let prefix = |text: &str| text.parse::<Prefix>().unwrap();
    let address = |text: &str| text.parse::<IpAddr>().unwrap();
    assert!(prefix("172.18.0.3/16").contains(address("172.18.255.255")));
    assert!(!prefix("172.18.0.3/16").contains(address("172.19.0.0")));
    assert!(prefix("0.0.0.0/0").contains(address("255.255.255.255")));
    assert!(!prefix("0.0.0.0/0").contains(address("::")));
    assert!(prefix("::/0").contains(address("ffff::")));
    assert!(prefix("fd00::3/128").is_host() && !prefix("fd00::3/64").is_host());
    for text in [
        "",
        "172.18.0.3/33",
        "fd00::/129",
        "172.18.0.3/",
        "x/8",
        "1.2.3.4/-1",
    ] {
        assert!(text.parse::<Prefix>().is_err(), "{text}");
    }
}
