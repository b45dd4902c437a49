//! JSON bodies, whole and damaged.

use expect_test::expect;

use super::compare_json;
use crate::chance::Random;

const NUMBERS: [&str; 34] = [
    "0",
    "-0",
    "1",
    "-1",
    "134217727",
    "134217728",
    "-134217728",
    "-134217729",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775808",
    "-9223372036854775809",
    "18446744073709551616",
    "1.0",
    "-0.0",
    "1e5",
    "1E+5",
    "1e-5",
    "0.1",
    "1e400",
    "-1e400",
    "1e-400",
    "123456789012345678901234567890",
    "2.2250738585072014e-308",
    "5e-324",
    "01",
    "1.",
    "-",
    "+1",
    ".5",
    "0e",
    "1e+",
    "0x1",
    "NaN",
];

const PIECES: [&[u8]; 21] = [
    b"a",
    b"name",
    b"\\n",
    b"\\u0041",
    b"\\ud83d\\ude00",
    b"\\ud83d",
    b"\\ude00",
    b"\\ud83d\\u0041",
    b"\\u0000",
    b"\xc3\xa4",
    b"\xff",
    b"\xe2\x82",
    b"\xed\xa0\x80",
    b"\\\"",
    b"\\\\",
    b"\\/",
    b"\\'",
    b"\\x",
    b"\x7f",
    b"\x01",
    b"long text that is more than sixteen bytes",
];

fn value(random: &mut Random, depth: usize, body: &mut Vec<u8>) {
    match random.below(if depth < 4 { 9 } else { 6 }) {
        0 => body.extend(b"null"),
        1 => body.extend(random.pick(&["true", "false"]).bytes()),
        2 => body.extend(random.pick(&NUMBERS).bytes()),
        3..=5 => string(random, body),
        6 => {
            body.push(b'[');
            for number in 0..random.below(4) {
                body.extend((number > 0).then_some(b','));
                body.extend((random.below(10) == 0).then_some(b' '));
                value(random, depth + 1, body);
            }
            body.push(b']');
        }
        _ => {
            body.push(b'{');
            for number in 0..random.below(5) {
                body.extend((number > 0).then_some(b','));
                string(random, body);
                body.push(b':');
                value(random, depth + 1, body);
            }
            body.push(b'}');
        }
    }
}

fn string(random: &mut Random, body: &mut Vec<u8>) {
    body.push(b'"');
    for _ in 0..random.below(4) {
        // Mostly something harmless.
        let piece = if random.below(3) > 0 { random.below(6) } else { random.below(PIECES.len()) };
        body.extend(PIECES[piece]);
    }
    body.push(b'"');
}

fn damage(random: &mut Random, body: &mut Vec<u8>) {
    const BYTES: &[u8] = b"\"\\{}[],:0123456789.eE+-tfn \n\t\x01\x80\xff\xc3u";
    for _ in 0..[0, 0, 1, 2, 4][random.below(5)] {
        if body.is_empty() {
            return;
        }
        let (at, other) = (random.below(body.len()), random.below(body.len()));
        match random.below(3) {
            0 => drop(body.remove(at)),
            1 => body.insert(at, BYTES[random.below(BYTES.len())]),
            _ => body.swap(at, other),
        }
    }
}

#[test]
fn bodies_are_read_alike() {
    let mut random = Random::new(1);
    let mut bodies: Vec<Vec<u8>> = NUMBERS.iter().map(|number| number.as_bytes().to_vec()).collect();
    bodies.extend(PIECES.map(|piece| [b"\"", piece, b"\""].concat()));
    bodies.extend((0..30_000).map(|_| {
        let mut body = Vec::new();
        value(&mut random, 0, &mut body);
        damage(&mut random, &mut body);
        body
    }));
    expect![[r#"
        both take 13103, both refuse 16952
    "#]]
    .assert_eq(&compare_json(&bodies).table());
}
