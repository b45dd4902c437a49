//! Where the text of a document under construction goes: a symbol, text that the document has already, or its own bytes.

use crate::{
    intern::{Interner, Use},
    options::Interning,
    tape::{self, tag},
};

/// How texts are placed, for one document.
pub(crate) struct Texts {
    pub(crate) interner: &'static Interner,
    pub(crate) interning: Interning,
    /// Where the document comes from. A value gets a symbol when documents of two origins have it.
    pub(crate) origin: u32,
}

/// Texts that lie in a document, by hash: an address or a time is there several times in most. A place may be
/// left from an earlier document, which does no harm, because the text at the place is compared.
pub(crate) struct Recent([Place; RECENT]);

#[derive(Clone, Copy, Default)]
pub(crate) struct Place {
    pub(crate) offset: usize,
    pub(crate) length: usize,
}

/// Where a text is.
pub(crate) enum Placed {
    Symbol(u32),
    Text(Place),
}

/// Longer keys are somebody's data, not anybody's field: the longest legal label fits.
const MAX_KEY: usize = 317;

/// Longer values are seldom the same in two objects. Image names with a digest still fit.
const MAX_VALUE: usize = 128;

const RECENT: usize = 128;

impl Texts {
    #[inline]
    pub(crate) fn key(&self, key: &str, text: &mut String, recent: &mut Recent) -> Placed {
        if key.len() > MAX_KEY {
            return append(key, text);
        }
        let hash = self.interner.hash(key);
        let symbol = match self.interning {
            Interning::Add => self.interner.find_or_add(hash, key, Use::Key),
            Interning::LookUpOnly => self.interner.find(hash, key),
        };
        match symbol {
            Some(symbol) => Placed::Symbol(tape::word(tag::SYMBOL, symbol.0)),
            None => match recent.find(hash, key, text) {
                Some(place) => Placed::Text(place),
                None => recent.append(hash, key, text),
            },
        }
    }

    #[inline]
    pub(crate) fn value(&self, value: &str, text: &mut String, recent: &mut Recent) -> Placed {
        if value.len() > MAX_VALUE {
            return append(value, text);
        }
        let hash = self.interner.hash(value);
        // What has no symbol is often there several times, and this is near where the interner is far.
        if let Some(place) = recent.find(hash, value, text) {
            return Placed::Text(place);
        }
        let symbol = self.interner.find(hash, value).or_else(|| match self.interning {
            Interning::Add => self.interner.add_second_sight(hash, value, self.origin),
            Interning::LookUpOnly => None,
        });
        match symbol {
            Some(symbol) => Placed::Symbol(tape::word(tag::SYMBOL, symbol.0)),
            None => recent.append(hash, value, text),
        }
    }
}

impl Recent {
    /// The place of a text that the document has already.
    #[inline]
    fn find(&self, hash: u32, wanted: &str, text: &str) -> Option<Place> {
        let place = self.0[hash as usize % RECENT];
        // A place that is left from another document may begin within a character of this one, where an empty text would be found.
        let is_it = place.length == wanted.len() && text.get(place.offset..place.offset + place.length) == Some(wanted);
        is_it.then_some(place)
    }

    /// Puts a new text behind the others, and remembers where.
    fn append(&mut self, hash: u32, new: &str, text: &mut String) -> Placed {
        self.0[hash as usize % RECENT] = Place { offset: text.len(), length: new.len() };
        append(new, text)
    }
}

fn append(new: &str, text: &mut String) -> Placed {
    let place = Place { offset: text.len(), length: new.len() };
    text.push_str(new);
    Placed::Text(place)
}

impl Default for Recent {
    fn default() -> Recent {
        Recent([Place::default(); RECENT])
    }
}

#[cfg(test)]
mod tests {
    use crate::{Document, Interning, Options};

    /// The bytes of text that a document keeps for itself.
    fn kept(body: &str, interning: Interning, origin: Option<u64>) -> usize {
        let options = Options { interning, origin, ..Options::default() };
        Document::parse(body.as_bytes(), &options).unwrap().text().len()
    }

    #[test]
    fn keys_are_shared_at_once() {
        assert_eq!(kept(r#"{"texts-key":1}"#, Interning::LookUpOnly, None), 9);
        assert_eq!(kept(r#"{"texts-key":1}"#, Interning::Add, None), 0);
        assert_eq!(kept(r#"{"texts-key":1}"#, Interning::LookUpOnly, None), 0);
    }

    #[test]
    fn values_are_shared_from_the_second_document_on() {
        assert_eq!(kept(r#"["texts-value"]"#, Interning::Add, None), 11);
        assert_eq!(kept(r#"["texts-value"]"#, Interning::Add, None), 0);
        assert_eq!(kept(r#"["texts-value"]"#, Interning::LookUpOnly, None), 0);
    }

    #[test]
    fn values_of_one_origin_are_not_shared() {
        for _ in 0..3 {
            assert_eq!(kept(r#"["texts-own"]"#, Interning::Add, Some(7)), 9);
        }
        assert_eq!(kept(r#"["texts-own"]"#, Interning::Add, Some(8)), 0);
    }

    #[test]
    fn looking_up_does_not_count_as_seen() {
        for _ in 0..3 {
            assert_eq!(kept(r#"["texts-seen"]"#, Interning::LookUpOnly, None), 10);
        }
        assert_eq!(kept(r#"["texts-seen"]"#, Interning::Add, None), 10);
    }

    #[test]
    fn a_document_keeps_repeated_text_once() {
        assert_eq!(kept(r#"["texts-again","texts-again",["texts-again"]]"#, Interning::LookUpOnly, None), 11);
    }

    #[test]
    fn an_empty_text_is_never_within_a_character() {
        for body in [r#"["x",""]"#, r#"["é",""]"#] {
            let options = Options { interning: Interning::LookUpOnly, ..Options::default() };
            assert_eq!(Document::parse(body.as_bytes(), &options).unwrap().to_json(), body);
        }
    }

    #[test]
    fn long_values_are_not_shared() {
        let long = format!(r#"["{}"]"#, "x".repeat(200));
        assert_eq!(kept(&long, Interning::Add, None), 200);
        assert_eq!(kept(&long, Interning::Add, None), 200);
    }
}
