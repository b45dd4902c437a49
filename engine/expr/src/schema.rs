//! What an expression may name: the roots, what is known of their shape, and the functions of the host.
//!
//! A schema is data. Whoever embeds the language builds one once and compiles many expressions with it.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use foldhash::{HashMap, HashSet};

mod missing;

pub use self::missing::{Fallback, Filled, FilledList, Instead, Meant, Remainder, Siblings, Sorts, Spelling, Wildcard};

/// Everything that an expression may name beside the builtins. A clone shares all but the roots, which are the least of it.
#[derive(Clone, Debug, Default)]
pub struct Schema {
    /// By their names. They are few.
    roots: Vec<(Cow<'static, str>, Root)>,
    objects: Arc<Objects>,
    functions: Arc<HashMap<String, Function>>,
    hints: Arc<HashMap<String, Hint>>,
    /// Fields, and maps of texts, of which no text has a `*` or a `?` in it, by their names.
    unpatterned: Arc<HashSet<&'static str>>,
    /// What fields that are numbers count as where they are missing, by their names. Others count as 0.
    defaults: Arc<HashMap<&'static str, &'static str>>,
    implied: &'static [&'static str],
    fallbacks: &'static [Fallback],
    /// Fields that say which of several things their object is.
    sorts: &'static [Sorts],
    filled_lists: &'static [FilledList],
    text_defaults: &'static [(&'static str, &'static str, &'static str)],
    /// What fields are filled in with by a text that has computed fields: their names, that of the text, and the expression, with `{}` for
    /// what is before the names.
    worked_out: &'static [(&'static str, &'static str, &'static str)],
    /// Fields that read as something where they are missing, and that are not filled in everywhere.
    meant: &'static [Meant],
    /// Fields that stand for everything where they are missing: the names of their objects, their own, and whether that matters both ways.
    everything: &'static [(&'static str, &'static str, bool)],
    /// Lists that stand for everything where they are empty: the names of their objects, their own, and what they let through then.
    open_lists: &'static [(&'static str, &'static str, &'static str)],
    /// Numbers and amounts that have no bound where they are missing: the names of their objects, and their own.
    unbounded: &'static [(&'static str, &'static str)],
    /// Lists beside which there are others of the same.
    siblings: &'static [Siblings],
    /// Lists whose first element counts more than others, by their names.
    ranked: &'static [&'static str],
    /// Lists beside which there is something that is for whatever none of their elements is for.
    remainders: &'static [Remainder],
    /// Objects that are the same empty and missing: the names of the objects that they are fields of, and their own.
    empty_objects: Arc<HashSet<(&'static str, &'static str)>>,
    /// Objects that say the same by one of two fields: their names, and the fields.
    either_fields: &'static [(&'static str, [&'static str; 2])],
    /// What fields read as where they are missing, by their names: the names of their objects, and what it is.
    filled: Arc<HashMap<&'static str, Vec<(&'static str, Filled)>>>,
    word_defaults: &'static [(&'static str, Option<&'static str>)],
    wildcards: &'static [Wildcard],
    spellings: &'static [(&'static str, Spelling)],
    /// What fields that are true or false count as where they are missing. Those that are not named count as false.
    truth_defaults: Option<&'static [(&'static str, Option<bool>)]>,
    /// Fields of which more is known here than where their objects were added.
    narrowed: HashMap<(ObjectId, String), Field>,
    slots: u16,
    /// Whether programs note what texts with computed fields are compared with.
    notes_compared: bool,
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
    /// The names of fields that are maps of texts or of amounts, whose keys may be anything.
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
    pub fields: Fields,
    /// Whether an unknown field is anything rather than an error.
    pub open: bool,
}

/// Fields by their names: compiling a rule looks up each one that it reads.
pub type Fields = HashMap<String, Field>;

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
    pub results: Arc<std::collections::HashMap<String, Vec<Shape>>>,
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
    /// Whether the host is told of a text that does not fit, and refuses it: it knows what the whole call should be.
    pub takes_text: bool,
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
    pub fn add_root(&mut self, name: impl Into<Cow<'static, str>>, shape: Shape) -> Slot {
        self.add(name.into(), shape, false)
    }

    /// Adds a root that always has a value.
    pub fn add_required_root(&mut self, name: impl Into<Cow<'static, str>>, shape: Shape) -> Slot {
        self.add(name.into(), shape, true)
    }

    fn add(&mut self, name: Cow<'static, str>, shape: Shape, required: bool) -> Slot {
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
    pub fn set_fields(&mut self, id: ObjectId, fields: Fields) {
        let Objects { list, computed, maps } = Arc::make_mut(&mut self.objects);
        let object = &mut list[id.0 as usize];
        // An object without any other field is text.
        if fields.values().any(|field| field.computed.is_none()) {
            let names = fields.iter().filter(|(_, field)| field.computed.is_some()).map(|(name, _)| name);
            computed.extend(names.map(|name| (name.clone(), object.name.clone())));
        }
        let is_text_map = |field: &Field| matches!(&field.shape, Shape::Map { value, .. } if matches!(**value, Shape::Text | Shape::Quantity));
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

    /// What is meant by exactly this path.
    pub(crate) fn hint(&self, path: &str) -> Option<&Hint> {
        self.hints.get(path)
    }

    /// Whether fields of this name are maps of texts or of amounts.
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
        self.roots.iter().map(|(name, _)| &**name)
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
