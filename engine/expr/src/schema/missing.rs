//! What is known of fields that are left out, and of what stands for more than it says. The host has said so.

use std::fmt;
use std::sync::Arc;

use foldhash::HashMap;

use super::Schema;

/// Fields that something else counts for where they are missing.
#[derive(Clone, Copy, Debug)]
pub struct Fallback {
    /// The name of the object that they are fields of.
    pub object: &'static str,
    /// Their names.
    pub fields: &'static [&'static str],
    /// What counts then.
    pub instead: Instead,
}

/// What counts where a field is missing.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Instead {
    /// Another field of the same object.
    Field(&'static str),
    /// For a key of a map, the same key of another map of the same object.
    Key(&'static str),
    /// The same field of an object of the same name further out: beside the list of which the objects are elements.
    Around {
        /// The lists.
        lists: &'static [&'static str],
        /// The root that is an element of them.
        element: &'static str,
        /// Fields whose own fields are taken one by one.
        merged: &'static [&'static str],
    },
}

/// A list of texts in which one stands for everything.
#[derive(Clone, Copy, Debug)]
pub struct Wildcard {
    /// The name of the list.
    pub list: &'static str,
    /// The text that stands for everything.
    pub all: &'static str,
    /// Whether it also stands for what is before a `/`: `*/exec` for `pods/exec`.
    pub has_parts: bool,
    /// Whether the list says what is taken away, so that who has everything in it has less.
    pub takes_away: bool,
    /// What is wrong with a text that nobody has in such a list, and what is meant by it.
    pub meant: fn(&str) -> Option<(&'static str, String)>,
}

/// What is meant by a text that is spelled as nobody spells it.
pub type Spelling = fn(&str) -> Option<String>;

/// A list beside which there is a field that is for whatever none of its elements is for.
#[derive(Clone, Copy, Debug)]
pub struct Remainder {
    /// The name of the object that both are fields of, and that of the list.
    pub list: (&'static str, &'static str),
    /// The name of the field.
    pub field: &'static str,
    /// The field by which an element is chosen: the name of its object, and its own.
    pub chosen_by: (&'static str, &'static str),
    /// The field that says where an element leads to: the name of its object, and its own. The field for the rest is such a one too.
    pub leads: (&'static str, &'static str),
    /// What the field for the rest is, to whoever asks what elements are chosen by.
    pub what_for: &'static str,
    /// What it is, to whoever asks where they lead to.
    pub what: &'static str,
    /// What objects that have such a list are looked up as. Who compares what elements are chosen by with others' means no other field.
    pub looked_up: &'static str,
}

/// A list beside which there are others of the same.
#[derive(Clone, Copy, Debug)]
pub struct Siblings {
    /// The name of the object that it is a field of.
    pub object: &'static str,
    /// Its name.
    pub list: &'static str,
    /// The names of the others.
    pub others: &'static [&'static str],
    /// The root that is each element of all of them.
    pub element: &'static str,
    /// The fields of elements that matter in all of them.
    pub fields: &'static [&'static str],
    /// What the list leaves out, as it ends a sentence about it.
    pub what: &'static str,
}

/// What a field reads as where it is missing.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Filled {
    /// True or false.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// Text.
    Text(&'static str),
}

impl fmt::Display for Filled {
    /// As it is written in an expression.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Filled::Bool(value) => write!(formatter, "{value}"),
            Filled::Int(value) => write!(formatter, "{value}"),
            Filled::Text(value) => write!(formatter, "{value:?}"),
        }
    }
}

/// An object that is one of several things, and says which by the field that it has.
#[derive(Clone, Copy, Debug)]
pub struct Sorts {
    /// Its name.
    pub object: &'static str,
    /// The fields.
    pub fields: &'static [&'static str],
}

/// A field that reads as something where it is missing, and that is not filled in wherever its object is.
#[derive(Clone, Copy, Debug)]
pub struct Meant {
    /// The name of the object that it is a field of.
    pub object: &'static str,
    /// Its name.
    pub field: &'static str,
    /// What it reads as.
    pub value: Filled,
    /// What its object must be a field of for it to be filled in. Nothing if nobody does.
    pub filled_in: Option<&'static str>,
}

/// A list that is filled in where it is empty.
#[derive(Clone, Copy, Debug)]
pub struct FilledList {
    /// The name of the object that it is a field of.
    pub object: &'static str,
    /// Its name.
    pub list: &'static str,
    /// The texts that come into it, each with the field of the object that must not be empty for it, if there is one.
    pub texts: &'static [(&'static str, Option<&'static str>)],
}

impl Schema {
    /// Says what counts where fields are missing that something else stands in for.
    pub fn set_fallbacks(&mut self, fallbacks: &'static [Fallback]) {
        self.fallbacks = fallbacks;
    }

    /// What counts where a field of an object of this name is missing.
    pub(crate) fn fallback_of(&self, object: &str, field: &str) -> Option<Instead> {
        let is_meant = |fallback: &&Fallback| fallback.object == object && fallback.fields.contains(&field);
        self.fallbacks.iter().find(is_meant).map(|fallback| fallback.instead)
    }

    /// Says of which fields the texts are spelled in one way, by the names of the fields.
    pub fn set_spellings(&mut self, spellings: &'static [(&'static str, Spelling)]) {
        self.spellings = spellings;
    }

    /// How the texts of fields of this name are spelled.
    pub(crate) fn spelling(&self, field: &str) -> Option<Spelling> {
        self.spellings.iter().find(|(name, _)| *name == field).map(|(_, spelling)| *spelling)
    }

    /// Says which objects are one of several things.
    pub fn set_sorts(&mut self, sorts: &'static [Sorts]) {
        self.sorts = sorts;
    }

    /// Whether a field of an object of this name says which of several things it is.
    pub(crate) fn is_sort(&self, object: &str, field: &str) -> bool {
        self.sorts.iter().any(|sorts| sorts.object == object && sorts.fields.contains(&field))
    }

    /// Says which lists are filled in where they are empty.
    pub fn set_filled_lists(&mut self, lists: &'static [FilledList]) {
        self.filled_lists = lists;
    }

    /// What an empty list of this name is filled with in an object of this name.
    pub(crate) fn filled_list(&self, object: &str, list: &str) -> Option<&'static FilledList> {
        self.filled_lists.iter().find(|filled| filled.object == object && filled.list == list)
    }

    /// Says what fields read as where they are missing: the name of their object, their own, and what it is. Whoever asks whether one is
    /// missing is told so all the same.
    pub fn set_filled(&mut self, filled: impl IntoIterator<Item = (&'static str, &'static str, Filled)>) {
        let mut by_name: HashMap<&'static str, Vec<(&'static str, Filled)>> = HashMap::default();
        for (object, field, value) in filled {
            by_name.entry(field).or_default().push((object, value));
        }
        self.filled = Arc::new(by_name);
    }

    /// Says which other fields read as something where they are missing. They only mean that, and may be missing from what is stored.
    pub fn set_meant(&mut self, meant: &'static [Meant]) {
        let mut by_name = (*self.filled).clone();
        for Meant { object, field, value, .. } in meant {
            by_name.entry(field).or_default().push((object, *value));
        }
        self.filled = Arc::new(by_name);
        self.meant = meant;
    }

    /// What is known of a field that is not filled in everywhere, in an object of this name.
    pub(crate) fn meant(&self, object: &str, field: &str) -> Option<&'static Meant> {
        self.meant.iter().find(|meant| meant.object == object && meant.field == field)
    }

    /// What fields of this name read as where they are missing, by the names of their objects.
    pub(crate) fn filled_of(&self, field: &str) -> &[(&'static str, Filled)] {
        self.filled.get(field).map(Vec::as_slice).unwrap_or_default()
    }

    /// Says what fields are filled in with by a text that has computed fields: their names, that of the text, and the expression, with `{}` for
    /// what is before the names.
    pub fn set_worked_out(&mut self, fields: &'static [(&'static str, &'static str, &'static str)]) {
        self.worked_out = fields;
    }

    /// The text by which a field of this name is filled in, and the expression.
    pub(crate) fn worked_out(&self, field: &str) -> Option<(&'static str, &'static str)> {
        self.worked_out.iter().find(|(name, ..)| *name == field).map(|(_, text, expression)| (*text, *expression))
    }

    /// Says which fields stand for everything where they are missing: the name of their object, their own, and whether that matters also to
    /// whoever wants a value not to be there.
    pub fn set_everything(&mut self, fields: &'static [(&'static str, &'static str, bool)]) {
        self.everything = fields;
    }

    /// Whether it matters both ways that a field of this name stands for everything where it is missing, in an object of this name or in
    /// any. Nothing if it does not.
    pub(crate) fn all_without(&self, object: Option<&str>, field: &str) -> Option<bool> {
        let mut fields = self.everything.iter();
        let found = fields.find(|(of, name, _)| *name == field && object.is_none_or(|object| object == *of));
        found.map(|(.., is_both_ways)| *is_both_ways)
    }

    /// Says which lists stand for everything where they are empty: the name of their object, their own, and what they let through then.
    pub fn set_open_lists(&mut self, lists: &'static [(&'static str, &'static str, &'static str)]) {
        self.open_lists = lists;
    }

    /// What a list of this name lets through where it is empty, in an object of this name or in any.
    pub(crate) fn open_list(&self, object: Option<&str>, list: &str) -> Option<&'static str> {
        let mut lists = self.open_lists.iter();
        let found = lists.find(|(of, name, _)| *name == list && object.is_none_or(|object| object == *of));
        found.map(|(.., all)| *all)
    }

    /// Says which numbers and amounts have no bound where they are missing: the names of their objects, and their own.
    pub fn set_unbounded(&mut self, fields: &'static [(&'static str, &'static str)]) {
        self.unbounded = fields;
    }

    /// Whether a field of this name has no bound where it is missing, in an object of this name or in any.
    pub(crate) fn is_unbounded(&self, object: Option<&str>, field: &str) -> bool {
        self.unbounded.iter().any(|(of, name)| *name == field && object.is_none_or(|object| object == *of))
    }

    /// Says beside which lists there are others of the same.
    pub fn set_siblings(&mut self, siblings: &'static [Siblings]) {
        self.siblings = siblings;
    }

    /// The lists beside which there are others of the same.
    pub(crate) fn siblings(&self) -> &'static [Siblings] {
        self.siblings
    }

    /// Says of which lists the first element counts more than others.
    pub fn set_ranked(&mut self, lists: &'static [&'static str]) {
        self.ranked = lists;
    }

    /// Whether the first element of a list of this name counts more than others.
    pub(crate) fn is_ranked(&self, list: &str) -> bool {
        self.ranked.contains(&list)
    }

    /// Says beside which lists there is something that is for whatever none of their elements is for.
    pub fn set_remainders(&mut self, remainders: &'static [Remainder]) {
        self.remainders = remainders;
    }

    /// The lists beside which there is something for the rest.
    pub(crate) fn remainders(&self) -> &'static [Remainder] {
        self.remainders
    }

    /// Says which objects are the same empty and missing: the name of the object that they are a field of, and their own.
    pub fn set_empty_objects(&mut self, fields: impl IntoIterator<Item = (&'static str, &'static str)>) {
        self.empty_objects = Arc::new(fields.into_iter().collect());
    }

    /// Whether a field is an object that is the same empty and missing.
    pub(crate) fn is_empty_object(&self, object: &str, field: &str) -> bool {
        self.empty_objects.contains(&(object, field))
    }

    /// Says which objects say the same by one of two fields, such as a port by its number or by its name.
    pub fn set_either_fields(&mut self, fields: &'static [(&'static str, [&'static str; 2])]) {
        self.either_fields = fields;
    }

    /// Whether some object may have another field in the place of one of this name.
    pub(crate) fn is_either_field(&self, field: &str) -> bool {
        self.either_fields.iter().any(|(_, fields)| fields.contains(&field))
    }

    /// The field that an object of this name may have in the place of another one.
    pub(crate) fn other_field(&self, object: &str, field: &str) -> Option<&'static str> {
        let (_, [one, other]) = self.either_fields.iter().find(|(of, _)| *of == object)?;
        match field {
            _ if field == *one => Some(other),
            _ if field == *other => Some(one),
            _ => None,
        }
    }

    /// Says what fields that are any text count as where they are missing: the name of their object, their own, and the text.
    pub fn set_text_defaults(&mut self, defaults: &'static [(&'static str, &'static str, &'static str)]) {
        self.text_defaults = defaults;
    }

    /// What a field of an object of this name that is any text counts as where it is missing.
    pub(crate) fn text_default_of(&self, object: &str, field: &str) -> Option<&'static str> {
        let is_meant = |(of, name, _): &&(&str, &str, &str)| (*of, *name) == (object, field);
        self.text_defaults.iter().find(is_meant).map(|(.., text)| *text)
    }

    /// Says what fields that are numbers count as where they are missing, by their names. With the name of the object's own field
    /// before it, such as `scaleDown.seconds`, it is of that object alone.
    pub fn set_defaults(&mut self, defaults: impl IntoIterator<Item = (&'static str, &'static str)>) {
        self.defaults = Arc::new(defaults.into_iter().collect());
    }

    /// What a field that is a number counts as where it is missing.
    pub(crate) fn default_of(&self, field: &str) -> Option<&'static str> {
        self.defaults.get(field).copied()
    }

    /// Says which objects count as there where they are left out, by the names of their fields: what is asked of them is asked of everything.
    pub fn set_implied(&mut self, fields: &'static [&'static str]) {
        self.implied = fields;
    }

    /// Whether an object counts as there where it is left out.
    pub(crate) fn is_implied(&self, field: &str) -> bool {
        self.implied.contains(&field)
    }

    /// Says what fields that are one of a few texts count as where they are missing, by their names. None: it depends on other fields.
    /// Of fields that share a name each has the one that it can be.
    pub fn set_word_defaults(&mut self, defaults: &'static [(&'static str, Option<&'static str>)]) {
        self.word_defaults = defaults;
    }

    /// What a field that is one of these texts counts as where it is missing. `Some(None)`: it depends on other fields.
    pub(crate) fn word_default_of(&self, field: &str, words: &[&str]) -> Option<Option<&'static str>> {
        let is_meant =
            |(name, word): &&(&str, Option<&str>)| *name == field && word.is_none_or(|word| words.contains(&word));
        self.word_defaults.iter().find(is_meant).map(|(_, word)| *word)
    }

    /// Says what fields that are true or false count as where they are missing, by their names: all others count as false. None: it depends
    /// on other fields.
    pub fn set_truth_defaults(&mut self, defaults: &'static [(&'static str, Option<bool>)]) {
        self.truth_defaults = Some(defaults);
    }

    /// What a field that is true or false counts as where it is missing, if the host has said so. `Some(None)`: it depends on other fields.
    pub(crate) fn truth_default_of(&self, field: &str) -> Option<Option<bool>> {
        let named = self.truth_defaults?.iter().find(|(name, _)| *name == field);
        Some(named.map_or(Some(false), |(_, default)| *default))
    }

    /// Says in which lists a text stands for everything.
    pub fn set_wildcards(&mut self, lists: &'static [Wildcard]) {
        self.wildcards = lists;
    }

    /// What stands for everything in a list of this name.
    pub(crate) fn wildcard(&self, list: &str) -> Option<&'static Wildcard> {
        self.wildcards.iter().find(|wildcard| wildcard.list == list)
    }
}
