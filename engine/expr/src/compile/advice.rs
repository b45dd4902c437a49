//! What is meant where two sides do not fit each other, or where a list is asked as if it were one of its elements.

use super::{Compiler, form::Form, operators::name_of};
use crate::{
    ast::{Binary, Id, Kind as Syntax},
    error::Error,
    habits,
    print::written,
    schema::{ObjectId, Shape},
    types::Type,
    value::Network,
};

/// More fields than these are no help.
const MAX_FIELDS: usize = 3;

impl<'s> Compiler<'s> {
    /// What is meant by an operator whose sides do not fit, by what they are.
    pub(super) fn hint_of_sides(&self, operator: Binary, left: (Id, Type), right: (Id, Type)) -> Option<String> {
        match operator {
            Binary::Or { .. } if self.is_default(left, right) => {
                let (value, default) = (self.shown(left.0), self.shown(right.0));
                Some(format!(": write `({value} ?? {default})` to give it a value where it is missing"))
            }
            Binary::Or { .. } | Binary::And { .. } => self.alternative(left, right),
            Binary::Add if [left.1, right.1].into_iter().all(|side| side.is_array() || side.is_unknown()) => {
                Some(format!(": write `concat({}, {})`", self.shown(left.0), self.shown(right.0)))
            }
            Binary::Subtract if left.1.is_array() && right.1.is_array() => {
                Some(format!(": write `filter({}, # not in {})`", self.shown(left.0), self.shown(right.0)))
            }
            Binary::Equal | Binary::NotEqual => {
                let sides = [(left, right), (right, left)];
                sides.into_iter().find_map(|(one, other)| {
                    self.field_meant(operator, one, other).or_else(|| self.quoted_meant(operator, one, other))
                })
            }
            _ if operator.is_ordering() => self.number_meant(operator, left, right),
            _ => None,
        }
    }

    /// What is meant by a call whose arguments are those of another language, or too many, or lists where one thing belongs.
    pub(super) fn call_meant(&self, name: &str, arguments: &[Id], kinds: &[Type]) -> Option<String> {
        let ([one, other], [first, second]) = (arguments, kinds) else { return None };
        let (one, other) = (self.shown(*one), self.shown(*other));
        Some(match name {
            "semver" => format!("isSemver({one}) && semver({one}) in {other}"),
            "cidr" => format!("{other} in cidr({one})"),
            "glob" if second.is_array() => format!("any({other}, glob({one}, #))"),
            "glob" if first.is_array() => format!("any({one}, glob(#, {other}))"),
            "join" | "concat" if *first == Type::TEXT && second.is_array() => format!("join({other}, {one})"),
            _ => return None,
        })
    }

    /// What is asked of the elements of something that is one text, asked of the text.
    pub(super) fn asked_of_one(&self, text: Id, body: Id) -> Option<String> {
        let (text, body) = (self.shown(text), self.shown(body));
        let is_once = body.matches('#').count() == 1 && (body.starts_with("# ") || body.ends_with(" #"));
        is_once.then(|| body.replacen('#', &text, 1))
    }

    /// Whether `x || y` gives a value to what is missing.
    fn is_default(&self, left: (Id, Type), right: (Id, Type)) -> bool {
        let is_literal = matches!(
            self.tree.kind(right.0),
            Syntax::Text(_) | Syntax::Integer(_) | Syntax::Float(_) | Syntax::Array(_) | Syntax::Map(_)
        );
        is_literal && left.1 != Type::BOOL && right.1 != Type::BOOL
    }

    /// `x == "a" || "b"`
    fn alternative(&self, left: (Id, Type), right: (Id, Type)) -> Option<String> {
        let Syntax::Binary(operator @ (Binary::Equal | Binary::NotEqual), subject, first) = self.tree.kind(left.0)
        else {
            return None;
        };
        let is_literal = matches!(self.tree.kind(right.0), Syntax::Text(_) | Syntax::Integer(_));
        let not = if *operator == Binary::Equal { "" } else { "not " };
        is_literal.then(|| {
            let (subject, first, second) = (self.shown(*subject), self.shown(*first), self.shown(right.0));
            format!(": write `{subject} {not}in [{first}, {second}]`")
        })
    }

    /// `# == 80`, where `#` is an object: the fields of it that are such.
    fn field_meant(&self, operator: Binary, object: (Id, Type), other: (Id, Type)) -> Option<String> {
        let path = match self.shown(object.0) {
            element if element == "#" => String::new(),
            path => path,
        };
        let fields = self.fields_of(object.1, other.1)?;
        let sign = name_of(operator);
        let written: Vec<String> =
            fields.iter().map(|field| format!("`{path}.{field} {sign} {}`", self.shown(other.0))).collect();
        Some(format!(": write {}", written.join(" or ")))
    }

    /// The fields of an object that are of a type. Those that it always has come before others, and alone.
    fn fields_of(&self, object: Type, kind: Type) -> Option<Vec<String>> {
        let id = ObjectId(u16::try_from(object.as_object()?).ok()?);
        let is_such = |shape: &Shape| match shape {
            Shape::Int => kind == Type::INT,
            Shape::Text | Shape::TextWith(_) => kind == Type::TEXT,
            _ => false,
        };
        let fields = &self.schema.object(id).fields;
        let all = |required: bool| {
            let mut names: Vec<String> = fields
                .iter()
                .filter(|(_, field)| is_such(&field.shape) && (field.required || !required))
                .map(|(name, _)| name.clone())
                .collect();
            names.sort_unstable();
            names
        };
        let required = all(true);
        let names = if required.is_empty() { all(false) } else { required };
        let names =
            if kind == Type::TEXT && names.iter().any(|name| name == "name") { vec!["name".to_owned()] } else { names };
        (!names.is_empty() && names.len() <= MAX_FIELDS).then_some(names)
    }

    /// A text beside `true` or a number is compared with a text.
    fn quoted_meant(&self, operator: Binary, text: (Id, Type), other: (Id, Type)) -> Option<String> {
        let is_literal = matches!(self.tree.kind(other.0), Syntax::Bool(_) | Syntax::Integer(_) | Syntax::Float(_));
        let is_value = !matches!(self.tree.kind(text.0), Syntax::Text(_));
        (is_literal && is_value && text.1 == Type::TEXT).then(|| {
            let (sign, other) = (name_of(operator), self.shown(other.0));
            let word = self.word_like(text.0, &other).unwrap_or(&other);
            format!(": this is text, write `{} {sign} \"{word}\"`", self.shown(text.0))
        })
    }

    /// A text in an order with a number: the number that it says, or the version.
    fn number_meant(&self, operator: Binary, left: (Id, Type), right: (Id, Type)) -> Option<String> {
        let (text, other) = match (left.1, right.1) {
            (Type::TEXT, kind) if kind.is_number() => (left.0, right.0),
            (kind, Type::TEXT) if kind.is_number() => (right.0, left.0),
            _ => return None,
        };
        if matches!(self.tree.kind(text), Syntax::Text(_)) {
            return None;
        }
        let (shown, sign) = (self.shown(text), name_of(operator));
        let between = |one: String, other: String| match text == left.0 {
            true => format!("{one} {sign} {other}"),
            false => format!("{other} {sign} {one}"),
        };
        let is_version = shown.ends_with("tag") || shown.ends_with("ersion");
        Some(if is_version {
            let number = self.shown(other);
            let compared = between(format!("semver({shown})"), format!("semver(\"{number}\")"));
            format!(": write `isSemver({shown}) && {compared}`")
        } else {
            let compared = between(format!("int({shown})"), self.shown(other));
            format!(": write `{shown} matches \"^[0-9]+$\" && {compared}`")
        })
    }

    /// How to ask whether what a function gives is there, or is more than nothing.
    pub(super) fn truth_of_call(&self, id: Id, kind: Type, is_there: bool) -> Option<String> {
        let text = self.shown(id);
        let equal = if is_there { "!=" } else { "==" };
        match self.tree.kind(id) {
            Syntax::Builtin { name: "len" | "count", .. } => Some(format!(": write `{text} {equal} 0`")),
            Syntax::Builtin { name: "filter", arguments } if arguments.len() == 2 => {
                let arguments: Vec<String> = arguments.iter().map(|argument| self.shown(*argument)).collect();
                let predicate = if is_there { "any" } else { "none" };
                Some(format!(": write `{predicate}({})`", arguments.join(", ")))
            }
            // What is looked for may not be there.
            Syntax::Builtin { name: "get" | "find" | "findLast" | "first" | "last", .. } => {
                self.truth_of_value(id, kind, is_there)
            }
            Syntax::Call { .. } | Syntax::Builtin { .. } if kind.is_array() => {
                Some(format!(": write `len({text}) {equal} 0`"))
            }
            Syntax::Call { .. } if kind.is_map() => Some(format!(": write `{text} {equal} nil`")),
            _ => None,
        }
    }

    /// How a list of objects is asked for one, where something is said to be in it that is none.
    pub(super) fn asked_of_list(&self, needle: Id, needle_kind: Type, list: Id, element: &Form<'s>) -> Option<String> {
        let object = element.kind();
        let list = self.shown(list);
        if let Syntax::Text(text) = self.tree.kind(needle)
            && let Some(id) = element.object()
            && self.schema.object(id).fields.contains_key(text.as_ref())
        {
            return Some(format!(": write `any({list}, .{text} != nil)`"));
        }
        if object.is_array() && needle_kind.is_comparable(object.element()) {
            return Some(format!(": write `flatten({list})` to have the elements of all of them"));
        }
        let fields = self.fields_of(object, needle_kind)?;
        let needle = self.shown(needle);
        let written: Vec<String> = fields.iter().map(|field| format!("`any({list}, .{field} == {needle})`")).collect();
        Some(format!(": write {}", written.join(" or ")))
    }

    /// How each element of a list is asked for, where the list as a whole is said to be in another one.
    pub(super) fn asked_of_each_in(
        &self,
        at: u32,
        (needle, kind): (Id, Type),
        (list, other): (Id, Type),
    ) -> Option<String> {
        if !kind.is_array() || !kind.element().is_comparable(other.element()) || self.has_item(list) {
            return None;
        }
        // The elements of `map(xs, .name)` are the names of those of `xs`.
        let (elements, element) = match self.tree.kind(needle) {
            Syntax::Builtin { name: "map", arguments } => match (arguments.first(), self.body_of(arguments)) {
                (Some(list), Some(body)) => (self.shown(*list), self.shown(body)),
                _ => return None,
            },
            _ => (self.shown(needle), "#".to_owned()),
        };
        let list = self.shown(list);
        Some(match self.is_negated(at) {
            true => format!(
                ": write `any({elements}, {element} not in {list})` if one of them is not, or `none({elements}, {element} in {list})` \
                 if none of them is"
            ),
            false => format!(
                ": write `any({elements}, {element} in {list})` if one of them is, or `all({elements}, {element} in {list})` if all \
                 of them are"
            ),
        })
    }

    /// What a predicate asks of each element.
    fn body_of(&self, arguments: &[Id]) -> Option<Id> {
        match self.tree.kind(*arguments.get(1)?) {
            Syntax::Predicate(body) => Some(*body),
            _ => None,
        }
    }

    /// How a text is asked for several others that stand in a list: `image startsWith ["a", "b"]`.
    pub(super) fn asked_of_texts(&self, operator: Binary, text: (Id, Type), list: (Id, Type)) -> Option<String> {
        let is_text_operator =
            matches!(operator, Binary::StartsWith | Binary::EndsWith | Binary::Contains | Binary::Matches);
        let is_meant = is_text_operator && text.1 == Type::TEXT && list.1.is_array() && list.1.element() == Type::TEXT;
        (is_meant && !self.has_item(text.0))
            .then(|| format!(": write `any({}, {} {} #)`", self.shown(list.0), self.shown(text.0), name_of(operator)))
    }

    /// What `in` is written with where a text stands behind it.
    pub(super) fn list_meant(&self, needle: &str, haystack: Id) -> Option<String> {
        let Syntax::Text(text) = self.tree.kind(haystack) else { return None };
        let shown = self.shown(haystack);
        let is_network = text.contains('/') && Network::parse(text).is_some();
        Some(if is_network {
            format!("write `{needle} in cidr({shown})`")
        } else {
            format!("write `{needle} in [{shown}]`")
        })
    }

    /// The map that a text such as `app=web` stands for.
    pub(super) fn hint_of_map(&self, wanted: Type, id: Id) -> Option<String> {
        let Syntax::Text(text) = self.tree.kind(id) else { return None };
        map_meant(text).filter(|_| wanted.is_map()).map(|map| format!(": write `{map}`"))
    }

    /// What is wrong with a predicate over a map, and how it goes through the keys.
    pub(super) fn predicate_over_map(&self, at: u32, name: &'s str, map: Id, body: Option<Id>) -> Error {
        let is_entry = |part: &str| matches!(part, "key" | "value");
        let names_entry = |id: Id| match self.tree.kind(id) {
            Syntax::Pointer(part) => is_entry(part),
            Syntax::Member { property, .. } => {
                matches!(self.tree.kind(*property), Syntax::Text(part) if is_entry(part))
            }
            _ => false,
        };
        // Whoever names neither may mean either.
        if let Some(body) = body.filter(|body| !self.has(*body, names_entry)) {
            let body = Some(written(self.tree, body)).filter(|body| body.len() <= habits::MAX_SHOWN);
            let (map, body) = (self.brief(map), body.unwrap_or_else(|| "…".to_owned()));
            let message = format!(
                "`{name}` goes through a list, and this is map: write `{name}(values({map}), {body})` for its values, or \
                 `{name}(keys({map}), {body})` for its keys"
            );
            return self.error(at, message);
        }
        let ours = body.and_then(|body| habits::over_keys(self.tree, name, map, body));
        let map = self.brief(map);
        let ours = ours.unwrap_or_else(|| format!("{name}(keys({map}), …)"));
        let message = format!(
            "`{name}` goes through a list, and this is map: write `{ours}`, where `#` is the key and `{map}[#]` its value"
        );
        self.error(at, message)
    }

    /// A part of the expression, if it is not too long for a message.
    fn brief(&self, id: Id) -> String {
        Some(self.shown(id)).filter(|text| text.len() <= habits::MAX_SHOWN).unwrap_or_else(|| "…".to_owned())
    }

    /// Refuses `any(c in list, c.name == …)`: the element has no name of its own.
    pub(super) fn refuse_named_element(&self, at: u32, name: &'s str, arguments: &[Id]) -> Result<(), Error> {
        let [collection, body, ..] = arguments else { return Ok(()) };
        let Syntax::Binary(Binary::In, variable, list) = self.tree.kind(*collection) else { return Ok(()) };
        let Syntax::Identifier(element) = self.tree.kind(*variable) else { return Ok(()) };
        if self.strict || !self.is_unknown_name(element) {
            return Ok(());
        }
        let ours = habits::without_variable(self.tree, name, [*list, *variable, *body]);
        let ours = ours.map(|ours| format!(": write `{ours}`")).unwrap_or_default();
        Err(self.error(at, format!("the element of `{name}` is `#`, and its field `.name`{ours}")))
    }

    /// Refuses `tag == latest`, where a name of nothing stands beside a text.
    pub(super) fn refuse_unquoted_text(&self, operator: Binary, beside: Type, id: Id) -> Result<(), Error> {
        let Syntax::Identifier(name) = self.tree.kind(id) else { return Ok(()) };
        let is_equality = matches!(operator, Binary::Equal | Binary::NotEqual);
        let is_type = matches!(*name, "string" | "int" | "float" | "map" | "bool" | "array");
        let is_other = is_type || habits::value(name).is_some() || self.hinted(name, &[]).is_some();
        if !is_equality || beside != Type::TEXT || !self.is_unknown_name(name) || is_other {
            return Ok(());
        }
        Err(self.error(self.at(id), format!("unknown name `{name}`: text is put in quotes, write `{name:?}`")))
    }
}

/// The map that a text such as `app=web,tier=front` stands for, as it is written in an expression.
pub fn map_meant(text: &str) -> Option<String> {
    let pairs = text.split(',').map(|pair| {
        let (key, value) = pair.split_once('=')?;
        // `app!=web` is no pair.
        let pair = (key.trim(), value.trim_start_matches('=').trim());
        (!key.ends_with('!')).then(|| format!("{:?}: {:?}", pair.0, pair.1))
    });
    Some(format!("{{{}}}", pairs.collect::<Option<Vec<String>>>()?.join(", ")))
}
