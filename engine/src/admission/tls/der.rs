//! The two things in a certificate that the TLS library does not tell: the common name of a subject, and the last moment. No other
//! part of a certificate is read here, and none is checked: what is read was signed by an authority that we trust, or is our own.

use jiff::{Timestamp, civil::DateTime, tz::TimeZone};

const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const OBJECT_IDENTIFIER: u8 = 0x06;
const VERSION: u8 = 0xa0;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;

/// 2.5.4.3
const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];

/// The common name of a subject, which is given without its outermost tag. Of several the last, as in Go.
pub(super) fn common_name(subject: &[u8]) -> Option<&str> {
    let mut rest = subject;
    let mut found = None;
    while let Some((SET, mut attributes, behind)) = element(rest) {
        rest = behind;
        while let Some((SEQUENCE, attribute, behind)) = element(attributes) {
            attributes = behind;
            if let Some((OBJECT_IDENTIFIER, COMMON_NAME, value)) = element(attribute)
                && let Some((_, name, _)) = element(value)
            {
                found = std::str::from_utf8(name).ok();
            }
        }
    }
    found
}

/// Until when a certificate is valid.
pub(super) fn not_after(certificate: &[u8]) -> Option<Timestamp> {
    let (SEQUENCE, signed, _) = element(certificate)? else { return None };
    let (SEQUENCE, mut rest, _) = element(signed)? else { return None };
    if let (VERSION, _, behind) = element(rest)? {
        rest = behind;
    }
    // The serial number, the algorithm of the signature and the issuer.
    for _ in 0..3 {
        (_, _, rest) = element(rest)?;
    }
    let (SEQUENCE, validity, _) = element(rest)? else { return None };
    let (_, _, behind_not_before) = element(validity)?;
    let (tag, text, _) = element(behind_not_before)?;
    time(tag, std::str::from_utf8(text).ok()?)
}

fn time(tag: u8, text: &str) -> Option<Timestamp> {
    let digits = text.strip_suffix('Z')?;
    let digits = match tag {
        GENERALIZED_TIME => digits.to_owned(),
        // Two digits of the year: by RFC 5280 from 1950 to 2049.
        UTC_TIME => format!("{}{digits}", if digits < "50" { "20" } else { "19" }),
        _ => return None,
    };
    let time = DateTime::strptime("%Y%m%d%H%M%S", digits).ok()?;
    Some(time.to_zoned(TimeZone::UTC).ok()?.timestamp())
}

/// The first element of some bytes, as its tag and its content, and what is behind it.
fn element(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, rest) = bytes.split_first()?;
    let (&length, rest) = rest.split_first()?;
    let (length, rest) = match length {
        0..=0x7f => (usize::from(length), rest),
        // As many bytes of length follow. A certificate is not as long as five could say.
        0x81..=0x84 => {
            let (digits, rest) = rest.split_at_checked(usize::from(length - 0x80))?;
            (digits.iter().fold(0, |length, digit| (length << 8) | usize::from(*digit)), rest)
        }
        _ => return None,
    };
    let (content, rest) = rest.split_at_checked(length)?;
    Some((tag, content, rest))
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair, date_time_ymd};
    use rustls::pki_types::CertificateDer;
    use webpki::EndEntityCert;

    use super::*;

    fn certificate(year: i32, names: &[(DnType, &str)]) -> CertificateDer<'static> {
        let mut parameters = CertificateParams::default();
        parameters.distinguished_name = DistinguishedName::new();
        for (attribute, name) in names {
            parameters.distinguished_name.push(attribute.clone(), *name);
        }
        parameters.not_after = date_time_ymd(year, 6, 30);
        parameters.self_signed(&KeyPair::generate().unwrap()).unwrap().der().clone()
    }

    #[test]
    fn the_last_moment_is_read_in_both_of_its_forms() {
        // RFC 5280 changes the form with the year 2050.
        for year in [2025, 2049, 2050, 2100] {
            let expected: Timestamp = format!("{year}-06-30T00:00:00Z").parse().unwrap();
            assert_eq!(not_after(&certificate(year, &[])), Some(expected));
        }
    }

    #[test]
    fn the_common_name_is_found_among_others() {
        let names = [(DnType::OrganizationName, "system:masters"), (DnType::CommonName, "kube-apiserver")];
        let certificate = certificate(2050, &names);
        let subject = EndEntityCert::try_from(&certificate).unwrap().subject().to_owned();
        assert_eq!(common_name(&subject), Some("kube-apiserver"));
        assert_eq!(common_name(&[]), None);
    }

    #[test]
    fn no_bytes_are_too_strange() {
        let whole = certificate(2050, &[(DnType::CommonName, "kube-apiserver")]);
        for length in 0..whole.len() {
            let (cut, mut changed) = (&whole[..length], whole.to_vec());
            changed[length] ^= 0xff;
            for bytes in [cut, &changed] {
                let _ = (not_after(bytes), common_name(bytes));
            }
        }
        assert_eq!(not_after(&[0x30, 0x84, 0xff, 0xff, 0xff, 0xff]), None);
        assert_eq!(not_after(&[0x30, 0x80, 0x00, 0x00]), None);
    }
}
