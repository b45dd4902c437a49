//! Sets of characters in a pattern.

use regex_syntax::hir::{Class, ClassUnicode, ClassUnicodeRange, Hir, HirKind};

/// What `\d`, `\s`, `\w` and `[:name:]` stand for. ASCII alone.
const NAMED: &[(&str, &[(u8, u8)])] = &[
    ("alnum", &[(b'0', b'9'), (b'A', b'Z'), (b'a', b'z')]),
    ("alpha", &[(b'A', b'Z'), (b'a', b'z')]),
    ("ascii", &[(0, 0x7f)]),
    ("blank", &[(b'\t', b'\t'), (b' ', b' ')]),
    ("cntrl", &[(0, 0x1f), (0x7f, 0x7f)]),
    ("digit", &[(b'0', b'9')]),
    ("graph", &[(b'!', b'~')]),
    ("lower", &[(b'a', b'z')]),
    ("print", &[(b' ', b'~')]),
    ("punct", &[(b'!', b'/'), (b':', b'@'), (b'[', b'`'), (b'{', b'~')]),
    ("space", &[(b'\t', b'\r'), (b' ', b' ')]),
    ("upper", &[(b'A', b'Z')]),
    ("word", WORD),
    ("xdigit", &[(b'0', b'9'), (b'A', b'F'), (b'a', b'f')]),
];

const WORD: &[(u8, u8)] = &[(b'0', b'9'), (b'A', b'Z'), (b'_', b'_'), (b'a', b'z')];

/// The scripts whose names have four letters, as their codes have.
const NAMES_LIKE_CODES: [&[u8]; 9] = [b"ahom", b"cham", b"kawi", b"lisu", b"miao", b"modi", b"newa", b"thai", b"toto"];

/// A set of characters that is being put together. Its ranges are put in order once, at the end.
#[derive(Default)]
pub(super) struct Set(Vec<ClassUnicodeRange>);

impl Set {
    /// The set of `\d`, `\s`, `\w` and their opposites.
    pub(super) fn perl(letter: char, fold: bool) -> Option<Set> {
        let ranges: &[(u8, u8)] = match letter.to_ascii_lowercase() {
            'd' => &[(b'0', b'9')],
            's' => &[(b'\t', b'\n'), (0x0c, b'\r'), (b' ', b' ')],
            'w' => WORD,
            _ => return None,
        };
        Some(Set::ascii(ranges).finish(fold, letter.is_ascii_uppercase()))
    }

    /// The set of `[:name:]` or `[:^name:]`.
    pub(super) fn posix(name: &str, fold: bool) -> Option<Set> {
        let plain = name.strip_prefix('^');
        let (_, ranges) = NAMED.iter().find(|(known, _)| *known == plain.unwrap_or(name))?;
        Some(Set::ascii(ranges).finish(fold, plain.is_some()))
    }

    /// The set of `\p{name}`, or all others: a general category or a script.
    pub(super) fn unicode(name: &str, fold: bool, negate: bool) -> Option<Set> {
        let is_plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b' ' | b'-'));
        let letters = name.bytes().filter(u8::is_ascii_alphanumeric).map(|byte| byte.to_ascii_lowercase());
        let letters: Vec<u8> = letters.collect();
        // Neither `IsGreek` nor the code `Grek` is a name to Go.
        if letters.is_empty() || !is_plain || letters.starts_with(b"is") {
            return None;
        }
        let is_code = letters.len() == 4 && !NAMES_LIKE_CODES.contains(&letters.as_slice());
        let properties: &[&str] = if is_code { &["gc"] } else { &["gc", "sc"] };
        properties.iter().find_map(|property| {
            match regex_syntax::parse(&format!(r"\p{{{property}={name}}}")).ok()?.into_kind() {
                HirKind::Class(Class::Unicode(class)) => Some(Set(class.ranges().to_vec()).finish(fold, negate)),
                _ => None,
            }
        })
    }

    fn ascii(ranges: &[(u8, u8)]) -> Set {
        Set(ranges.iter().map(|(first, last)| ClassUnicodeRange::new((*first).into(), (*last).into())).collect())
    }

    /// Adds the characters of a range. Half of a surrogate pair is no character of any text.
    pub(super) fn add(&mut self, first: u32, last: u32) {
        let halves = [(first, last.min(0xd7ff)), (first.max(0xe000), last)];
        for (first, last) in halves {
            if let (true, Some(first), Some(last)) = (first <= last, char::from_u32(first), char::from_u32(last)) {
                self.0.push(ClassUnicodeRange::new(first, last));
            }
        }
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn union(&mut self, other: Set) {
        self.0.extend(other.0);
    }

    /// The set with what differs in case alone, or everything else than that.
    pub(super) fn finish(self, fold: bool, negate: bool) -> Set {
        Set(self.class(fold, negate).ranges().to_vec())
    }

    pub(super) fn into_tree(self, fold: bool, negate: bool) -> Hir {
        Hir::class(Class::Unicode(self.class(fold, negate)))
    }

    fn class(self, fold: bool, negate: bool) -> ClassUnicode {
        let mut class = ClassUnicode::new(self.0);
        if fold {
            // It can only fail without the tables, which we build with.
            let _ = class.try_case_fold_simple();
        }
        if negate {
            class.negate();
        }
        class
    }
}
