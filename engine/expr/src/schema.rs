//! What an expression may name: the roots, what is known of their shape, and the functions of the host.
//!
//! A schema is data. Whoever embeds the language builds one once and compiles many expressions with it.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

/// Everything that an expression may name beside the builtins. A clone shares all but the roots, which are the least of it.
#[derive(Clone, Debug, Default)]
pub struct Schema {
    /// By their names. They are few.
    roots: Vec<(String, Root)>,
    objects: Arc<Objects>,
    functions: Arc<HashMap<String, Function>>,
    hints: Arc<HashMap<String, Hint>>,
    /// Fields, and maps of texts, of which no text has a `*` or a `?` in it, by their names.
    unpatterned: Arc<HashSet<&'static str>>,
    /// What fields that are numbers count as where they are missing, by their names. Others count as 0.
    defaults: Arc<HashMap<&'static str, &'static str>>,
    implied: &'static [&'static str],
    fallbacks: &'static [Fallback],
    filled_lists: &'static [FilledList],
    text_defaults: &'static [(&'static str, &'static str, &'static str)],
    /// What fields are filled in with by a text that has computed fields: their names, that of the text, and the expression, with `{}` for
    /// what is before the names.
    worked_out: &'static [(&'static str, &'static str, &'static str)],
    /// Fields among these that nobody fills in, by their names.
    meant: &'static [&'static str],
    /// Fields that stand for everything where they are missing: the names of their objects, and their own.
    everything: &'static [(&'static str, &'static str)],
    /// Objects that are the same empty and missing: the names of the objects that they are fields of, and their own.
    empty_objects: Arc<HashSet<(&'static str, &'static str)>>,
    /// Objects that say the same by one of two fields: their names, and the fields.
    either_fields: &'static [(&'static str, [&'static str; 2])],
    /// What fields read as where they are missing, by their names: the names of their objects, and what it is.
    filled: Arc<HashMap<&'static str, Vec<(&'static str, Filled)>>>,
    word_defaults: &'static [(&'static str, Option<&'static str>)],
    wildcards: &'static [Wildcard],
    /// What fields that are true or false count as where they are missing. Those that are not named count as false.
    truth_defaults: Option<&'static [(&'static str, Option<bool>)]>,
    /// Fields of which more is known here than where their objects were added.
    narrowed: HashMap<(ObjectId, String), Field>,
    slots: u16,
    /// Whether programs note what texts with computed fields are compared with.
    notes_compared: bool,
}

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

/// What is meant by a path that people write, and that there is not.
#[derive(Clone, Debug)]
pub(crate) struct Hint {
    /// The path that is meant.
    pub(crate) instead: String,
    /// Why it is not what was written. May be empty.
    pub(crate) because: String,
}

impl fmt::Display for Hint {
    /// As it ends a message.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.because.as_str() {
            "" => write!(formatter, ": write `{}`", self.instead),
            because => write!(formatter, ": {because}, write `{}`", self.instead),
        }
    }
}

#[derive(Clone, Debug, Default)]
struct Objects {
    list: Vec<Object>,
    /// The fields that the host computes of objects, with the names of the objects.
    computed: HashMap<String, String>,
    /// The names of fields that are maps of text, whose keys may be anything.
    maps: HashSet<String>,
}

/// A name that an expression may begin a path with.
#[derive(Clone, Debug)]
pub struct Root {
    /// What the host is asked for.
    pub slot: Slot,
    /// What is known of its value.
    pub shape: Shape,
    /// Whether it always has a value.
    pub required: bool,
}

/// The number of a root, in the order in which roots were added.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Slot(pub u16);

/// What is known of a value before there is one.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Shape {
    /// Anything. Fields of it are anything too.
    Any,
    /// True or false.
    Bool,
    /// A whole number.
    Int,
    /// Any number.
    Float,
    /// Text.
    Text,
    /// One of these texts.
    Word(Arc<Words>),
    /// Text that the host does not show: whether it is there can be asked, and nothing else. With the reason.
    Hidden(Arc<str>),
    /// An amount, written as text or as a number: `100m`, `1Gi`, `2`.
    Quantity,
    /// A moment. None is in documents: it comes from a function of the host.
    Time,
    /// Text that also has fields, which the host computes from it: an image reference is text and has a tag.
    TextWith(ObjectId),
    /// A list. With `never_nil` a missing one is an empty one.
    List {
        /// What is known of each element.
        element: Box<Shape>,
        /// Whether it is empty when it is missing.
        never_nil: bool,
    },
    /// A map from text. With `never_nil` a missing one is an empty one.
    Map {
        /// What is known of each value.
        value: Box<Shape>,
        /// Whether it is empty when it is missing.
        never_nil: bool,
    },
    /// An object with fields that are known.
    Object(ObjectId),
    /// One of these: a field that is read must be one of theirs.
    OneOf(Vec<Shape>),
    /// No value: a root that may only be called through, as in `root.name.function(…)`.
    Calls(Calls),
}

/// Texts of which a value is one.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Words {
    /// The texts.
    pub listed: Vec<String>,
    /// What says that there are no others. Empty if it is so everywhere.
    pub said_by: String,
    /// Texts that it leaves out, and what to do about each.
    pub left_out: Vec<(String, String)>,
}

/// The number of an object in its schema.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct ObjectId(pub u16);

/// Fields that belong together.
#[derive(Clone, Debug)]
pub struct Object {
    /// What it is called in messages.
    pub name: String,
    /// The fields by name.
    pub fields: HashMap<String, Field>,
    /// Whether an unknown field is anything rather than an error.
    pub open: bool,
}

/// One field of an object.
#[derive(Clone, Debug)]
pub struct Field {
    /// What is known of its value.
    pub shape: Shape,
    /// Set for a field that is in no document: the host computes it from the value that it is a field of.
    pub computed: Option<ComputedId>,
    /// Whether every object has it.
    pub required: bool,
    /// Whether an empty text in it is the same as none.
    pub empty_is_none: bool,
}

/// The number by which the host knows a computed field.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ComputedId(pub u16);

/// What may be called through a root that has no value.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Calls {
    /// How many names may stand between the root and the function.
    pub names: std::ops::RangeInclusive<usize>,
    /// The functions.
    pub functions: Arc<[Function]>,
    /// What they give behind a name of which more is known, in the order of the functions, and of those of `among` behind them.
    pub results: Arc<HashMap<String, Vec<Shape>>>,
    /// What may be called of several names at once.
    pub among: Option<Among>,
}

/// Functions of several names, of which only an evaluation knows which one is meant: `root.any("a", "b").function(…)`. The names are
/// texts of the expression, so that all of them are known before it runs. They stand where one name would.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Among {
    /// The word before the names.
    pub word: &'static str,
    /// The functions.
    pub functions: Arc<[Function]>,
}

/// A function of the host.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// What it takes, in order.
    pub parameters: Vec<Parameter>,
    /// What is known of its result.
    pub result: Shape,
    /// Whether it always gives something.
    pub always: bool,
    /// The number by which the host knows it.
    pub id: FunctionId,
}

/// The number by which the host knows a function.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct FunctionId(pub u16);

/// What a function takes.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Parameter {
    /// The name, by which an argument may be given: `list(ns, selector={…})`.
    pub name: String,
    /// What fits.
    pub shape: Shape,
    /// Whether it must be given. Optional ones come last, and are nil when they are left out.
    pub required: bool,
    /// What becomes of an argument that may be nil.
    pub nil: Nil,
    /// Fields without which an argument says nothing. What can never have them is refused.
    pub fields: &'static [&'static str],
}

/// What becomes of an argument that may be nil, although it is given.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Nil {
    /// The host is given it, and knows what to do.
    Passed,
    /// The expression is refused. With what an error suggests in its place, if there is anything that the function could take.
    Refused(Option<&'static str>),
}

impl Schema {
    /// A schema without any name.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a root that may be nil, and returns the number by which the host will be asked for it.
    pub fn add_root(&mut self, name: impl Into<String>, shape: Shape) -> Slot {
        self.add(name.into(), shape, false)
    }

    /// Adds a root that always has a value.
    pub fn add_required_root(&mut self, name: impl Into<String>, shape: Shape) -> Slot {
        self.add(name.into(), shape, true)
    }

    fn add(&mut self, name: String, shape: Shape, required: bool) -> Slot {
        let slot = Slot(self.slots);
        self.slots += 1;
        self.roots.retain(|(known, _)| *known != name);
        self.roots.push((name, Root { slot, shape, required }));
        slot
    }

    /// The same schema, with something else known of a root. A root that is not there is not added.
    pub fn with_root(&self, name: &str, shape: Shape) -> Self {
        let mut schema = self.clone();
        if let Some((_, root)) = schema.roots.iter_mut().find(|(known, _)| known == name) {
            root.shape = shape;
        }
        schema
    }

    /// Adds an object that shapes can refer to.
    pub fn add_object(&mut self, object: Object) -> ObjectId {
        let objects = Arc::make_mut(&mut self.objects);
        let id = ObjectId(objects.list.len() as u16);
        let fields = object.fields.clone();
        objects.list.push(object);
        self.set_fields(id, fields);
        id
    }

    /// Gives an object that was added before its fields, for objects that refer to each other.
    pub fn set_fields(&mut self, id: ObjectId, fields: HashMap<String, Field>) {
        let Objects { list, computed, maps } = Arc::make_mut(&mut self.objects);
        let object = &mut list[id.0 as usize];
        // An object without any other field is text.
        if fields.values().any(|field| field.computed.is_none()) {
            let names = fields.iter().filter(|(_, field)| field.computed.is_some()).map(|(name, _)| name);
            computed.extend(names.map(|name| (name.clone(), object.name.clone())));
        }
        let is_text_map = |field: &Field| matches!(&field.shape, Shape::Map { value, .. } if **value == Shape::Text);
        maps.extend(fields.iter().filter(|(_, field)| is_text_map(field)).map(|(name, _)| name.clone()));
        object.fields = fields;
    }

    /// Says more of a field than its object does, in this schema alone.
    pub fn narrow(&mut self, id: ObjectId, name: impl Into<String>, field: Field) {
        self.narrowed.insert((id, name.into()), field);
    }

    /// A field of an object.
    pub(crate) fn field(&self, id: ObjectId, name: &str) -> Option<&Field> {
        // Few schemas narrow anything, and those few fields.
        let narrowed = self.narrowed.iter().find(|((narrowed, field), _)| *narrowed == id && field == name);
        narrowed.map(|(_, field)| field).or_else(|| self.object(id).fields.get(name))
    }

    /// Adds a function.
    pub fn add_function(&mut self, function: Function) {
        Arc::make_mut(&mut self.functions).insert(function.name.clone(), function);
    }

    /// Says what is meant by a path that begins with no root, or that leads to no field: `old` is `request.oldObject`. A path that
    /// ends with `.*` stands for every field that there is not. A path that begins with the name of an object, or of another type, is
    /// below any value of it, and so is what is meant if it begins with a dot; `{}` in what is meant stands for the value. `because` says
    /// why, and may be empty.
    pub fn add_hint(&mut self, path: impl Into<String>, instead: impl Into<String>, because: impl Into<String>) {
        let hint = Hint { instead: instead.into(), because: because.into() };
        Arc::make_mut(&mut self.hints).insert(path.into(), hint);
    }

    /// Says that no text of fields with these names has a `*` or a `?` in it, and none in maps with these names. Whoever compares one
    /// with such a text means a pattern.
    pub fn set_unpatterned(&mut self, fields: impl IntoIterator<Item = &'static str>) {
        self.unpatterned = Arc::new(fields.into_iter().collect());
    }

    /// Whether no text of a field with this name, or in a map with this name, has a `*` or a `?` in it.
    pub(crate) fn is_unpatterned(&self, field: &str) -> bool {
        self.unpatterned.contains(field)
    }

    /// Says whether programs note what texts with computed fields, and those fields, are compared with.
    pub fn note_compared(&mut self, notes: bool) {
        self.notes_compared = notes;
    }

    /// Whether programs note what texts with computed fields are compared with.
    pub(crate) fn notes_compared(&self) -> bool {
        self.notes_compared
    }

    /// Says what counts where fields are missing that something else stands in for.
    pub fn set_fallbacks(&mut self, fallbacks: &'static [Fallback]) {
        self.fallbacks = fallbacks;
    }

    /// What counts where a field of an object of this name is missing.
    pub(crate) fn fallback_of(&self, object: &str, field: &str) -> Option<Instead> {
        let is_meant = |fallback: &&Fallback| fallback.object == object && fallback.fields.contains(&field);
        self.fallbacks.iter().find(is_meant).map(|fallback| fallback.instead)
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
        let mut by_name: HashMap<&'static str, Vec<(&'static str, Filled)>> = HashMap::new();
        for (object, field, value) in filled {
            by_name.entry(field).or_default().push((object, value));
        }
        self.filled = Arc::new(by_name);
    }

    /// Says which of these fields nobody fills in: they only mean that, and may be missing from what is stored.
    pub fn set_meant(&mut self, fields: &'static [&'static str]) {
        self.meant = fields;
    }

    /// Whether fields of this name are only taken for what they read as.
    pub(crate) fn is_meant(&self, field: &str) -> bool {
        self.meant.contains(&field)
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

    /// Says which fields stand for everything where they are missing: the name of their object, and their own.
    pub fn set_everything(&mut self, fields: &'static [(&'static str, &'static str)]) {
        self.everything = fields;
    }

    /// Whether a field of this name stands for everything where it is missing, in an object of this name or in any.
    pub(crate) fn is_all_without(&self, object: Option<&str>, field: &str) -> bool {
        self.everything.iter().any(|(of, name)| *name == field && object.is_none_or(|object| object == *of))
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

    /// What is meant by exactly this path.
    pub(crate) fn hint(&self, path: &str) -> Option<&Hint> {
        self.hints.get(path)
    }

    /// Whether fields of this name are maps of text.
    pub(crate) fn is_text_map(&self, field: &str) -> bool {
        self.objects.maps.contains(field)
    }

    /// The root of this name.
    pub fn root(&self, name: &str) -> Option<&Root> {
        self.roots.iter().find(|(known, _)| known == name).map(|(_, root)| root)
    }

    /// An object.
    pub fn object(&self, id: ObjectId) -> &Object {
        &self.objects.list[id.0 as usize]
    }

    /// An object of which the host computes a field of this name.
    pub(crate) fn computes(&self, field: &str) -> Option<&str> {
        self.objects.computed.get(field).map(String::as_str)
    }

    /// The function of this name.
    pub fn function(&self, name: &str) -> Option<&Function> {
        self.functions.get(name)
    }

    /// The names of all roots.
    pub fn root_names(&self) -> impl Iterator<Item = &str> {
        self.roots.iter().map(|(name, _)| name.as_str())
    }

    /// The names of all functions.
    pub fn function_names(&self) -> impl Iterator<Item = &str> {
        self.functions.keys().map(String::as_str)
    }
}

impl Field {
    /// A field that may be missing.
    pub fn optional(shape: Shape) -> Self {
        Self { shape, computed: None, required: false, empty_is_none: false }
    }

    /// A field that every object has.
    pub fn required(shape: Shape) -> Self {
        Self { shape, computed: None, required: true, empty_is_none: false }
    }

    /// A field that the host computes.
    pub fn computed(shape: Shape, field: ComputedId) -> Self {
        Self { shape, computed: Some(field), required: false, empty_is_none: false }
    }
}

impl Shape {
    /// A list that is empty when it is missing.
    pub fn list(element: Shape) -> Self {
        Self::List { element: Box::new(element), never_nil: true }
    }

    /// One of these texts, wherever it stands.
    pub fn word<'a>(listed: impl IntoIterator<Item = &'a str>) -> Self {
        Self::Word(Arc::new(Words { listed: listed.into_iter().map(str::to_owned).collect(), ..Words::default() }))
    }

    /// A map that is empty when it is missing.
    pub fn map(value: Shape) -> Self {
        Self::Map { value: Box::new(value), never_nil: true }
    }
}
