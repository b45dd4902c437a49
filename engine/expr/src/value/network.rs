//! Networks of IPv4 and IPv6 as Kubernetes writes them: `10.0.0.0/8`, `fd00::/8`. An address is a network of one.
//!
//! Everything is kept in the form of IPv6, in which IPv4 is the part behind `::ffff:0:0/96`: an address is in the same networks
//! however it is written.

// Addresses alone: `std::net` has sockets beside them.
use core::net::{Ipv4Addr, Ipv6Addr};
use std::{cmp::Ordering, fmt};

/// A network, or an address.
#[derive(Clone, Copy, Debug)]
pub struct Network<'a> {
    /// The bits up to the prefix. Those behind it are zero.
    bits: u128,
    /// How many bits all addresses in it have in common.
    prefix: u32,
    /// Whether it is written as IPv4.
    is_v4: bool,
    /// As it was written. Without it, it was a constant of the rule.
    text: Option<&'a str>,
}

/// The bits of an address.
const BITS: u32 = 128;

/// The bits before an address of IPv4.
const BEFORE_V4: u32 = 96;

impl<'a> Network<'a> {
    /// The network that a text says. Nothing if it says none.
    pub fn parse(text: &'a str) -> Option<Network<'a>> {
        let (address, prefix) = text.split_once('/')?;
        let address = Network::parse_address(address)?;
        // No sign and no zero in front, as Kubernetes wants it.
        let is_plain = prefix == "0" || !prefix.starts_with(['0', '+']);
        let prefix: u32 = prefix.parse().ok().filter(|_| is_plain)?;
        let prefix = if address.is_v4 { prefix.checked_add(BEFORE_V4)? } else { prefix };
        let bits = masked(address.bits, prefix);
        (prefix <= BITS).then_some(Network { bits, prefix, is_v4: address.is_v4, text: Some(text) })
    }

    /// The address that a text says. Nothing if it says none.
    pub fn parse_address(text: &'a str) -> Option<Network<'a>> {
        let (bits, is_v4) = match text.parse::<Ipv4Addr>() {
            Ok(address) => (address.to_ipv6_mapped().to_bits(), true),
            Err(_) => (text.parse::<Ipv6Addr>().ok()?.to_bits(), false),
        };
        Some(Network { bits, prefix: BITS, is_v4, text: Some(text) })
    }

    /// The same as a constant.
    pub(crate) fn constant(self) -> Network<'static> {
        Network { text: None, ..self }
    }

    /// Whether the text says more of an address than belongs to the network: `10.0.0.1/8`.
    pub(crate) fn says_more(&self) -> bool {
        let address = self.text.and_then(|text| text.split('/').next()).and_then(Network::parse_address);
        address.is_some_and(|address| address.bits != self.bits)
    }

    /// Whether all addresses of the other one are in this one. IPv4 is in no network of IPv6 but in those that are written for
    /// it, such as `::ffff:0:0/96`: whoever says `::/0` means all of IPv6.
    pub fn contains(&self, other: &Network<'_>) -> bool {
        let is_apart = other.is_v4 && self.prefix < BEFORE_V4;
        !is_apart && other.prefix >= self.prefix && masked(other.bits, self.prefix) == self.bits
    }

    /// Any order, in which the same networks are equal.
    pub(crate) fn order(&self, other: &Network<'_>) -> Ordering {
        (self.bits, self.prefix).cmp(&(other.bits, other.prefix))
    }
}

/// The bits up to a prefix.
fn masked(bits: u128, prefix: u32) -> u128 {
    match BITS.checked_sub(prefix) {
        Some(BITS) => 0,
        Some(rest) => bits >> rest << rest,
        None => bits,
    }
}

impl fmt::Display for Network<'_> {
    /// As it was written.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.text {
            Some(text) => formatter.write_str(text),
            None if self.is_v4 => {
                write!(formatter, "{}/{}", Ipv4Addr::from_bits(self.bits as u32), self.prefix - BEFORE_V4)
            }
            None => write!(formatter, "{}/{}", Ipv6Addr::from_bits(self.bits), self.prefix),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each line is a network, what is in it, and what is not.
    #[track_caller]
    fn check(lines: &str) {
        for line in lines.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let (text, others) = line.split_once(" has ").expect("a line has a network");
            let (inside, outside) = others.split_once(" and not ").expect("a line has two sides");
            let network = Network::parse(text).unwrap();
            for (others, expected) in [(inside, true), (outside, false)] {
                for other in others.split(' ') {
                    let read = Network::parse_address(other).or_else(|| Network::parse(other)).unwrap();
                    assert_eq!(network.contains(&read), expected, "{other} in {text}");
                }
            }
        }
    }

    #[test]
    fn a_network_has_addresses_and_networks() {
        check(
            "
            10.0.0.0/8 has 10.0.0.0 10.255.255.255 10.1.0.0/16 10.0.0.0/8 and not 11.0.0.0 9.255.255.255 0.0.0.0/0 10.0.0.0/7
            192.168.1.128/25 has 192.168.1.128 192.168.1.255 and not 192.168.1.127
            10.0.0.1/32 has 10.0.0.1 10.0.0.1/32 and not 10.0.0.2 10.0.0.0/31
            0.0.0.0/0 has 1.2.3.4 0.0.0.0/0 10.0.0.0/8 and not :: 2001:db8::1 ::/0
            2001:db8::/32 has 2001:db8::1 2001:db8:ffff::/48 and not 2001:db9::1 10.0.0.1
            fe80::/10 has fe80::1 febf::1 and not fec0::1
            ::/0 has ::1 2001:db8::1 ::/0 and not 10.0.0.1 10.0.0.0/8 0.0.0.0/0
            ::1/128 has ::1 0:0:0:0:0:0:0:1 and not ::2
            ",
        );
    }

    #[test]
    fn an_address_of_ipv4_is_the_same_in_ipv6() {
        check(
            "
            10.0.0.0/8 has ::ffff:10.0.0.1 ::ffff:a00:1 ::FFFF:10.1.2.3 ::ffff:10.0.0.0/104 and not ::ffff:11.0.0.1 ::10.0.0.1
            ::ffff:10.0.0.0/104 has 10.0.0.1 10.0.0.0/8 ::ffff:10.0.0.1 and not 11.0.0.1
            ::ffff:0:0/96 has 10.0.0.1 0.0.0.0/0 and not ::1
            ::/0 has ::ffff:10.0.0.1 and not 10.0.0.1
            ",
        );
    }

    #[test]
    fn bits_behind_the_prefix_count_for_nothing() {
        check("10.1.2.3/8 has 10.9.9.9 and not 11.0.0.0");
        let is_more = |text| Network::parse(text).unwrap().says_more();
        assert!(is_more("10.0.0.1/8") && is_more("fe80::1/64"));
        assert!(!is_more("10.0.0.0/8") && !is_more("10.0.0.1/32") && !is_more("::ffff:10.0.0.0/104"));
    }

    #[test]
    fn what_is_no_network_is_none() {
        for text in [
            "",
            "/",
            "10.0.0.0",
            "10.0.0.0/",
            "10.0.0.0/33",
            "10.0.0.0/08",
            "10.0.0.0/+8",
            "10.0.0.0/-1",
            "10.0.0.0/8 ",
            "10.0.0/8",
            "010.0.0.0/8",
            "::/129",
            "::/0/0",
            "fe80::1%eth0/64",
            "10.0.0.0/255.0.0.0",
            "10.0.0.0/4294967295",
        ] {
            assert!(Network::parse(text).is_none(), "{text}");
        }
        for text in
            ["", "10.0.0.1/32", "010.0.0.1", "10.0.0.256", "1.2.3", " 10.0.0.1", "::g", "fe80::1%eth0", "0x0a.0.0.1"]
        {
            assert!(Network::parse_address(text).is_none(), "{text}");
        }
    }

    #[test]
    fn a_network_is_shown_as_it_was_written() {
        let network = |text| Network::parse(text).unwrap();
        assert_eq!(network("10.1.0.0/8").to_string(), "10.1.0.0/8");
        assert_eq!(network("10.1.0.0/8").constant().to_string(), "10.0.0.0/8");
        assert_eq!(network("FD00::/8").constant().to_string(), "fd00::/8");
    }
}
