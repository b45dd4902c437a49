//! Certificates that rules look into. Nothing is verified: whether a certificate can be trusted is up to whoever is shown it.

// Addresses alone: `std::net` has sockets beside them.
use core::net::{Ipv4Addr, Ipv6Addr};
use std::fmt::Write as _;

use portal_expr::{Failure, Machine, Moment, Shape, Value};
use rustls_pki_types::{
    CertificateDer,
    pem::{self, PemObject as _},
};
use x509_cert::{
    Certificate,
    der::{Decode as _, Error, ErrorKind, Tag},
    ext::pkix::{BasicConstraints, SubjectAltName, name::GeneralName},
    name::Name,
    time::Time,
};

/// The fields of a certificate, in the order in which both [`fields`] and [`value`] have them.
const NAMES: [&str; 7] = ["notBefore", "notAfter", "subject", "issuer", "names", "serialNumber", "isCA"];

/// The largest certificate that is read, in bytes of DER. The largest signatures that there are fit.
const MAX_BYTES: usize = 64 << 10;

/// Bytes that are read in one step.
const BYTES_PER_STEP: usize = 4;

/// What base64 of a PEM text begins with.
const ENCODED: &str = "LS0tLS1CRUdJTi";

/// What rules see of the values of a Secret.
const HIDDEN: &str = "***";

/// What is known of the fields.
pub(super) fn fields() -> impl Iterator<Item = (&'static str, Shape)> {
    let names = Shape::list(Shape::Text);
    NAMES.into_iter().zip([Shape::Time, Shape::Time, Shape::Text, Shape::Text, names, Shape::Text, Shape::Bool])
}

/// The first certificate of a PEM text.
pub(super) fn first<'a>(machine: &Machine<'a>, text: &str) -> Result<Value<'a>, Failure> {
    machine.step((text.len() / BYTES_PER_STEP) as u64)?;
    match CertificateDer::pem_slice_iter(text.as_bytes()).next() {
        Some(found) => value(machine, found.map_err(unreadable)?.as_ref()),
        None => Err(none(text)),
    }
}

/// All certificates of a PEM text. An empty text has none.
pub(super) fn all<'a>(machine: &Machine<'a>, text: &str) -> Result<Value<'a>, Failure> {
    machine.step((text.len() / BYTES_PER_STEP) as u64)?;
    let read = |found: Result<CertificateDer<'_>, _>| value(machine, found.map_err(unreadable)?.as_ref());
    let certificates = CertificateDer::pem_slice_iter(text.as_bytes()).map(read).collect::<Result<Vec<_>, _>>()?;
    if certificates.is_empty() && !text.is_empty() {
        return Err(none(text));
    }
    machine.list(&certificates)
}

fn unreadable(error: pem::Error) -> Failure {
    let problem = match error {
        pem::Error::MissingSectionEnd { .. } => "a `-----BEGIN` line has no `-----END` line",
        pem::Error::IllegalSectionStart { .. } => "a `-----BEGIN` line does not end with five dashes",
        pem::Error::Base64Decode(_) => "what is between its lines is no base64",
        _ => "it is broken",
    };
    Failure::new(format!("this PEM cannot be read: {problem}"))
}

/// Says that there is no certificate, and why that may be.
fn none(text: &str) -> Failure {
    let hint = if text == HIDDEN {
        ": the values of a Secret are hidden from rules"
    } else if text.trim_start().starts_with(ENCODED) {
        ": this is base64 of one, write `fromBase64(…)` around it"
    } else {
        ""
    };
    Failure::new(format!("this is no PEM, which has a line `-----BEGIN CERTIFICATE-----`{hint}"))
}

/// A certificate as rules see it.
fn value<'a>(machine: &Machine<'a>, der: &[u8]) -> Result<Value<'a>, Failure> {
    if der.len() > MAX_BYTES {
        return Err(Failure::new(format!("a certificate has at most {MAX_BYTES} bytes, and this has {}", der.len())));
    }
    let broken = |error: Error| Failure::new(format!("this certificate cannot be read: {error}"));
    let certificate = Certificate::from_der(der).map_err(broken)?;
    let certificate = certificate.tbs_certificate();
    let validity = certificate.validity();
    let names = certificate.get_extension::<SubjectAltName>().map_err(broken)?;
    let names = names.map(|(_, SubjectAltName(names))| names).unwrap_or_default();
    let names = names.iter().filter_map(|name| name_of(name).transpose());
    let names = names.map(|name| machine.text(&name.map_err(broken)?).map(Value::Text));
    let names = names.collect::<Result<Vec<_>, Failure>>()?;
    let constraints = certificate.get_extension::<BasicConstraints>().map_err(broken)?;
    let text = |text: &str| machine.text(text).map(Value::Text);
    let values = [
        machine.time(moment(validity.not_before))?,
        machine.time(moment(validity.not_after))?,
        text(&shown(certificate.subject()).map_err(broken)?)?,
        text(&shown(certificate.issuer()).map_err(broken)?)?,
        machine.list(&names)?,
        text(&hexadecimal(certificate.serial_number().as_bytes()))?,
        Value::Bool(constraints.is_some_and(|(_, constraints)| constraints.ca)),
    ];
    let entries: Vec<_> = NAMES.into_iter().map(Value::Text).zip(values).collect();
    machine.map(&entries)
}

fn moment(time: Time) -> Moment {
    let since_1970 = time.to_unix_duration();
    Moment::new(i64::try_from(since_1970.as_secs()).unwrap_or(i64::MAX), 0)
}

/// A name in the form of RFC 4514: `CN=web,O=shop`.
fn shown(name: &Name) -> Result<String, Error> {
    let mut text = String::new();
    // A value that cannot be written is an error here, and would be a panic of `to_string`.
    write!(text, "{name}").map_err(|_| Error::from(ErrorKind::Failed))?;
    Ok(text)
}

/// A further name of the subject as text. Nothing for kinds of names that nobody connects to.
fn name_of(name: &GeneralName) -> Result<Option<String>, Error> {
    Ok(Some(match name {
        GeneralName::DnsName(text) | GeneralName::Rfc822Name(text) | GeneralName::UniformResourceIdentifier(text) => {
            text.to_string()
        }
        GeneralName::IpAddress(bytes) => {
            let bytes = bytes.as_bytes();
            match (<[u8; 4]>::try_from(bytes), <[u8; 16]>::try_from(bytes)) {
                (Ok(bytes), _) => Ipv4Addr::from(bytes).to_string(),
                (_, Ok(bytes)) => Ipv6Addr::from(bytes).to_string(),
                _ => return Err(Tag::OctetString.value_error().into()),
            }
        }
        _ => return Ok(None),
    }))
}

/// A number in hex, without the zero that only says that it is not negative.
fn hexadecimal(bytes: &[u8]) -> String {
    let bytes = match bytes {
        [0, rest @ ..] if !rest.is_empty() => rest,
        bytes => bytes,
    };
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use portal_expr::{Arena, Limits};

    use super::*;

    const LEAF: &str = include_str!("certificate/leaf.pem");
    const CA: &str = include_str!("certificate/ca.pem");

    fn with_machine<R>(then: impl FnOnce(&Machine<'_>) -> R) -> R {
        let arena = Arena::new();
        then(&Machine::new(&arena, &Limits::default(), Moment::default(), false))
    }

    /// Every field of a certificate, or the error.
    #[track_caller]
    fn check(pem: &str, expected: Expect) {
        let text = with_machine(|machine| match first(machine, pem) {
            Ok(certificate) => {
                let entries = certificate.entries().unwrap();
                entries.iter().map(|(name, value)| format!("{name}: {value}\n")).collect()
            }
            Err(failure) => failure.to_string(),
        });
        expected.assert_eq(&text);
    }

    #[test]
    fn a_certificate_has_its_fields() {
        check(
            LEAF,
            expect![[r#"
            isCA: false
            issuer: CN=Acme Root,O=Acme\, Inc.,C=DE
            names: [web.shop.svc *.example.com 10.0.0.1 fd00::1 ops@example.com spiffe://example.com/web]
            notAfter: 2028-01-01 12:00:00 +0000 UTC
            notBefore: 2026-01-01 00:00:00 +0000 UTC
            serialNumber: 0fa1b2c3d4e5f60718293a4b5c6d7e90
            subject: CN=web,O=shop
        "#]],
        );
        check(
            CA,
            expect![[r#"
            isCA: true
            issuer: CN=Acme Root,O=Acme\, Inc.,C=DE
            names: []
            notAfter: 2056-01-01 00:00:00 +0000 UTC
            notBefore: 2026-01-01 00:00:00 +0000 UTC
            serialNumber: 0fa1b2c3d4e5f60718293a4b5c6d7e8f
            subject: CN=Acme Root,O=Acme\, Inc.,C=DE
        "#]],
        );
    }

    #[test]
    fn a_certificate_is_found_among_comments_and_keys() {
        let key = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n";
        let pem = format!("# the chain\n{key}{LEAF}\nsubject=Acme\n{CA}").replace('\n', "\r\n");
        let names = with_machine(|machine| {
            let subject = |found: Value<'_>| found.entries().unwrap()[6].1.to_string();
            all(machine, &pem).unwrap().elements().unwrap().map(subject).collect::<Vec<_>>()
        });
        assert_eq!(names, ["CN=web,O=shop", "CN=Acme Root,O=Acme\\, Inc.,C=DE"]);
        assert_eq!(with_machine(|machine| all(machine, "").map(|found| found.to_string())).unwrap(), "[]");
    }

    #[test]
    fn what_is_no_certificate_is_told() {
        const NO_PEM: &str = "this is no PEM, which has a line `-----BEGIN CERTIFICATE-----`";
        let section = |body: &str| format!("-----BEGIN CERTIFICATE-----\n{body}\n-----END CERTIFICATE-----\n");
        for (text, expected) in [
            ("web", NO_PEM.to_owned()),
            ("***", format!("{NO_PEM}: the values of a Secret are hidden from rules")),
            (
                "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCg==",
                format!("{NO_PEM}: this is base64 of one, write `fromBase64(…)` around it"),
            ),
            (
                &section("AAAA"),
                "this certificate cannot be read: unknown/unsupported ASN.1 DER tag: 0x00 at DER byte 1".to_owned(),
            ),
            (&section("?"), "this PEM cannot be read: what is between its lines is no base64".to_owned()),
            (
                "-----BEGIN CERTIFICATE-----\nAAAA\n",
                "this PEM cannot be read: a `-----BEGIN` line has no `-----END` line".to_owned(),
            ),
            (
                "-----BEGIN CERTIFICATE\nAAAA\n",
                "this PEM cannot be read: a `-----BEGIN` line does not end with five dashes".to_owned(),
            ),
            (&section(&"A".repeat(4 * 30_000)), "a certificate has at most 65536 bytes, and this has 90000".to_owned()),
        ] {
            for read in [first, all] {
                let failure = with_machine(|machine| read(machine, text).unwrap_err().to_string());
                assert_eq!(failure, expected, "{text}");
            }
        }
        assert_eq!(with_machine(|machine| first(machine, "").unwrap_err().to_string()), NO_PEM);
    }

    #[test]
    fn a_certificate_that_is_cut_or_changed_is_read_or_refused() {
        for pem in [LEAF, CA] {
            let der = CertificateDer::from_pem_slice(pem.as_bytes()).unwrap();
            let read = |der: &[u8]| with_machine(|machine| value(machine, der).map(|found| found.to_string()));
            let whole = read(&der).unwrap();
            for length in 0..der.len() {
                assert!(read(&der[..length]).is_err(), "{length} bytes");
            }
            let mut is_other = false;
            for bit in 0..der.len() * 8 {
                let mut changed = der.to_vec();
                changed[bit / 8] ^= 1 << (bit % 8);
                is_other |= read(&changed).is_ok_and(|found| found != whole);
            }
            assert!(is_other, "a changed name is another name");
        }
    }

    #[test]
    fn a_certificate_that_means_harm_ends() {
        // A subject of so many attributes as fit, in the order that could take longest to sort.
        let letter = |number: u16| b'a' + (number % 26) as u8;
        let attribute = |number: u16| {
            let letters = [letter(number / 676), letter(number / 26), letter(number)];
            [&[0x30, 0x0a, 0x06, 0x03, 0x55, 0x04, 0x03, 0x0c, 0x03], &letters[..]].concat()
        };
        let set: Vec<u8> = (0..5_000).rev().flat_map(attribute).collect();
        let wrap = |tag: u8, content: &[u8]| {
            let length = u16::try_from(content.len()).unwrap().to_be_bytes();
            [&[tag, 0x82, length[0], length[1]], content].concat()
        };
        let name = wrap(0x30, &wrap(0x31, &set));
        let der = CertificateDer::from_pem_slice(LEAF.as_bytes()).unwrap();
        let subject = der.windows(4).position(|bytes| bytes == [0x30, 0x1d, 0x31, 0x0d]).unwrap();
        let signed_length = 4 + usize::from(u16::from_be_bytes([der[6], der[7]]));
        let signed = wrap(0x30, &[&der[8..subject], &name, &der[subject + 0x1f..4 + signed_length]].concat());
        let harmful = wrap(0x30, &[&signed, &der[4 + signed_length..]].concat());
        let subject = with_machine(|machine| value(machine, &harmful).unwrap().entries().unwrap()[6].1.to_string());
        assert_eq!(subject.matches("CN=").count(), 5_000);
    }
}
