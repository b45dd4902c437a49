//! Documents made by hand: of tests, of answers, of parts of other documents.

use crate::{
    assemble::{Assembler, Kind, Progress},
    copy,
    document::Document,
    filter::Filter,
    node::Node,
    options::Options,
};

/// Builds a document value by value, in the order in which JSON would write it.
///
/// A call in the wrong place does not show until [`Builder::finish`], so that calls can be chained.
#[must_use = "a builder does nothing until it is finished"]
pub struct Builder {
    assembler: Assembler,
    depth_limit: usize,
    /// Whether a key waits for its value.
    has_key: bool,
    /// Whether there is an outermost value.
    has_root: bool,
    /// The first call that was wrong.
    error: Option<BuildError>,
}

/// What is wrong with the calls to a [`Builder`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BuildError {
    /// A value in an object came without a key.
    #[error("a value in an object has no key")]
    MissingKey,
    /// A key came outside of an object or after another key.
    #[error("a key is not where an entry of an object begins")]
    MisplacedKey,
    /// A key came without a value.
    #[error("a key has no value")]
    MissingValue,
    /// A second value came after the outermost one.
    #[error("there is more than one outermost value")]
    SecondValue,
    /// There is no value, or one that did not end.
    #[error("the document is not complete")]
    Incomplete,
    /// An end came without a beginning.
    #[error("nothing is open that could end")]
    NothingOpen,
    /// A float is not a number or infinite, which JSON cannot say.
    #[error("a number is not finite")]
    NotFinite,
    /// There are more arrays and objects within each other than the limit.
    #[error("nesting is over the limit of {limit} levels")]
    TooDeep {
        /// The limit in force.
        limit: usize,
    },
    /// The document is larger than documents can be.
    #[error("the document is too large")]
    TooLarge,
}

impl Builder {
    /// A builder for a document that stays: its keys are added to the interner.
    pub fn new() -> Builder {
        Builder::with_options(&Options::default())
    }

    /// A builder that interns and limits depth as the options say. The rest of the options is for input.
    pub fn with_options(options: &Options) -> Builder {
        let depth_limit = options.limits.depth;
        Builder { assembler: Assembler::new(options), depth_limit, has_key: false, has_root: false, error: None }
    }

    /// Adds `null`.
    pub fn null(&mut self) -> &mut Builder {
        self.add(Assembler::null)
    }

    /// Adds `true` or `false`.
    pub fn bool(&mut self, value: bool) -> &mut Builder {
        self.add(|assembler| assembler.bool(value))
    }

    /// Adds an integer.
    pub fn int(&mut self, value: i64) -> &mut Builder {
        self.add(|assembler| assembler.int(value))
    }

    /// Adds a number that is no integer, or one that should stay a float.
    pub fn float(&mut self, value: f64) -> &mut Builder {
        if !value.is_finite() {
            self.fail(BuildError::NotFinite);
        }
        self.add(|assembler| assembler.float(value))
    }

    /// Adds a string.
    pub fn string(&mut self, value: &str) -> &mut Builder {
        self.check_length(value);
        self.add(|assembler| {
            assembler.string(value);
        })
    }

    /// Adds a copy of a value with all that is in it.
    pub fn node(&mut self, value: Node) -> &mut Builder {
        let mut deepest = 0;
        self.add(|assembler| deepest = copy::copy(value, &mut Filter::none(), assembler));
        self.check_depth(deepest)
    }

    /// Begins an object. Its entries follow, then [`Builder::end`].
    pub fn begin_object(&mut self) -> &mut Builder {
        self.begin(true)
    }

    /// Begins an array. Its elements follow, then [`Builder::end`].
    pub fn begin_array(&mut self) -> &mut Builder {
        self.begin(false)
    }

    /// Ends the innermost object or array.
    pub fn end(&mut self) -> &mut Builder {
        if self.has_key {
            self.fail(BuildError::MissingValue);
        } else if self.assembler.kind() == Kind::Outside {
            self.fail(BuildError::NothingOpen);
        } else if self.error.is_none() {
            self.assembler.end(Progress::UNKNOWN);
        }
        self
    }

    /// Adds a key. Its value follows.
    pub fn key(&mut self, key: &str) -> &mut Builder {
        self.check_length(key);
        if self.assembler.kind() != Kind::Object || self.has_key {
            self.fail(BuildError::MisplacedKey);
        } else if self.error.is_none() {
            let word = self.assembler.key_word(key);
            self.assembler.push_key(word);
            self.has_key = true;
        }
        self
    }

    /// The document, or the first thing that was wrong with it.
    pub fn finish(mut self) -> Result<Document, BuildError> {
        if self.assembler.kind() != Kind::Outside || !self.has_root {
            self.fail(BuildError::Incomplete);
        }
        match self.error {
            None => Ok(self.assembler.finish()),
            Some(error) => Err(error),
        }
    }

    fn begin(&mut self, is_object: bool) -> &mut Builder {
        self.check_depth(self.assembler.depth() + 1);
        self.add(|assembler| assembler.begin(is_object))
    }

    fn check_depth(&mut self, depth: usize) -> &mut Builder {
        if depth > self.depth_limit {
            self.fail(BuildError::TooDeep { limit: self.depth_limit });
        }
        self
    }

    fn check_length(&mut self, text: &str) {
        if !self.assembler.has_room_for(text) {
            self.fail(BuildError::TooLarge);
        }
    }

    fn add(&mut self, add: impl FnOnce(&mut Assembler)) -> &mut Builder {
        match self.assembler.kind() {
            Kind::Object if !self.has_key => self.fail(BuildError::MissingKey),
            Kind::Outside if self.has_root => self.fail(BuildError::SecondValue),
            _ => self.check_length(""),
        }
        if self.error.is_none() {
            add(&mut self.assembler);
            self.has_key = false;
            self.has_root = true;
        }
        self
    }

    fn fail(&mut self, error: BuildError) {
        self.error.get_or_insert(error);
    }
}

impl Default for Builder {
    fn default() -> Builder {
        Builder::new()
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    #[track_caller]
    fn check(build: impl FnOnce(&mut Builder) -> &mut Builder, expected: Expect) {
        let mut builder = Builder::new();
        build(&mut builder);
        expected.assert_eq(&match builder.finish() {
            Ok(document) => document.to_json(),
            Err(error) => error.to_string(),
        });
    }

    #[test]
    fn a_document_has_what_was_added() {
        check(
            |builder| {
                builder.begin_object();
                builder.key("null").null().key("true").bool(true).key("false").bool(false);
                builder.key("int").int(-7).key("large").int(i64::MIN).key("float").float(2.0).key("text").string("ä\n");
                builder.key("list").begin_array().int(1).begin_object().end().begin_array().end().end();
                builder.end()
            },
            expect![[
                r#"{"null":null,"true":true,"false":false,"int":-7,"large":-9223372036854775808,"float":2.0,"text":"ä\n","list":[1,{},[]]}"#
            ]],
        );
    }

    #[test]
    fn the_outermost_value_may_be_a_scalar() {
        check(|builder| builder.string("text"), expect![[r#""text""#]]);
    }

    #[test]
    fn the_last_one_of_a_repeated_key_wins() {
        check(
            |builder| builder.begin_object().key("a").int(1).key("b").int(2).key("a").int(3).end(),
            expect![[r#"{"b":2,"a":3}"#]],
        );
    }

    #[test]
    fn values_of_other_documents_are_copied_whole() {
        let other = Document::parse(br#"{"spec":{"list":[1,2.5,{"deep":"text"}],"null":null}}"#, &Options::default());
        check(
            |builder| builder.begin_array().node(other.unwrap().root().get_str("spec").unwrap()).int(1).end(),
            expect![[r#"[{"list":[1,2.5,{"deep":"text"}],"null":null},1]"#]],
        );
    }

    #[test]
    fn calls_in_the_wrong_place_are_reported_at_the_end() {
        check(|builder| builder, expect!["the document is not complete"]);
        check(|builder| builder.begin_array(), expect!["the document is not complete"]);
        check(|builder| builder.int(1).int(2), expect!["there is more than one outermost value"]);
        check(|builder| builder.end(), expect!["nothing is open that could end"]);
        check(|builder| builder.key("a"), expect!["a key is not where an entry of an object begins"]);
        check(|builder| builder.begin_object().int(1).end(), expect!["a value in an object has no key"]);
        check(|builder| builder.begin_object().key("a").end(), expect!["a key has no value"]);
        check(
            |builder| builder.begin_object().key("a").key("b").int(1).end(),
            expect!["a key is not where an entry of an object begins"],
        );
        check(|builder| builder.float(f64::NAN), expect!["a number is not finite"]);
    }

    #[test]
    fn nesting_is_limited() {
        let nested = |depth: usize| {
            let mut builder = Builder::new();
            for _ in 0..depth {
                builder.begin_array();
            }
            for _ in 0..depth {
                builder.end();
            }
            builder.finish()
        };
        assert!(nested(10_000).is_ok());
        assert_eq!(nested(10_001), Err(BuildError::TooDeep { limit: 10_000 }));

        let deepest = nested(10_000).unwrap();
        let mut builder = Builder::new();
        builder.begin_array().node(deepest.root()).end();
        assert_eq!(builder.finish(), Err(BuildError::TooDeep { limit: 10_000 }));
    }
}
