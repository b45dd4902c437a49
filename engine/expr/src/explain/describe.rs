//! What parts of an expression are called. What has no name that a reader would know has none here.

use super::{Explanation, Item, Meaning, Place, elements::KEY_OF, observe::READING};
use crate::{
    program::{Constant, Kind, Op, Predicate},
    value::Value,
};

/// The longest name. What is longer explains nothing.
const MAX_NAME: usize = 200;

impl<'a> Explanation<'a, '_> {
    /// What is behind a variable, what was read as something else, and what the compiler put around a value.
    pub(super) fn behind_names(&self, op: &'a Op) -> &'a Op {
        match &op.kind {
            Kind::Quantity(inner) | Kind::OrEmpty { operand: inner, .. } | Kind::Chain(inner) => {
                self.behind_names(inner)
            }
            Kind::Builtin { builtin, arguments } if let (true, [text]) = (builtin.reads_text(), &arguments[..]) => {
                self.behind_names(text)
            }
            Kind::Variable(variable) => match self.variables[usize::from(*variable)] {
                Meaning::Op(value) if self.step() => self.behind_names(value),
                _ => op,
            },
            _ => op,
        }
    }

    /// Whether an operation has the same value always, so that there is nothing to tell of it.
    pub(super) fn is_constant(&self, op: &'a Op, place: Place<'_, 'a>) -> bool {
        let op = self.behind_names(op);
        let is_constant = |op: &'a Op| self.is_constant(op, place);
        match &op.kind {
            _ if !self.step() => false,
            Kind::Constant(_) => true,
            Kind::Item => matches!(place.item, Some(Item::Written(_))),
            Kind::Array(elements) => elements.iter().all(is_constant),
            Kind::Map(entries) => entries.iter().all(|(key, value)| is_constant(key) && is_constant(value)),
            Kind::Builtin { arguments, .. } => arguments.iter().all(is_constant),
            Kind::Negate(operand) => is_constant(operand),
            Kind::Range { first, last } => is_constant(first) && is_constant(last),
            Kind::Arithmetic { first, rest } => {
                is_constant(first) && rest.iter().all(|(.., operand)| is_constant(operand))
            }
            _ => false,
        }
    }

    /// Whether an operation reads a value in another way, or a part of what does.
    pub(super) fn is_reading(&self, op: &'a Op) -> bool {
        match &self.behind_names(op).kind {
            Kind::Builtin { builtin, .. } => READING.contains(&builtin.name),
            Kind::Slice { .. } => true,
            _ => false,
        }
    }

    /// Whether an operation is what a lookup of the host found.
    pub(super) fn is_found(&self, op: &Op) -> bool {
        matches!(&op.kind, Kind::Call { site, .. } if self.is_lookup(*site))
    }

    pub(super) fn is_lookup(&self, site: u32) -> bool {
        self.program.calls.get(site as usize).is_some_and(|call| call.root.is_some())
    }

    /// Whether only the host knows which of several names was looked up.
    fn is_among(&self, site: u32) -> bool {
        self.program.calls.get(site as usize).is_some_and(|call| !call.among.is_empty())
    }

    /// Whether something is looked up in an operation.
    pub(super) fn looks_up(&self, op: &'a Op) -> bool {
        // Few expressions look anything up.
        if self.program.calls.iter().all(|call| call.root.is_none()) {
            return false;
        }
        let mut rest = vec![op];
        while let Some(op) = rest.pop() {
            if self.is_found(op) || !self.step() {
                return true;
            }
            op.each_child(|child| rest.push(child));
        }
        false
    }

    /// The lookup that found nothing, for a part of what it was to find, and what it was given.
    pub(super) fn absent(&self, op: &'a Op, place: Place<'_, 'a>) -> Option<(&'a Op, &'a [Op])> {
        let op = self.behind_names(op);
        match &op.kind {
            Kind::Call { arguments, .. } if self.is_found(op) && self.value(op, place)?.is_nil() => {
                Some((op, arguments))
            }
            Kind::Variable(variable) if matches!(self.variables[usize::from(*variable)], Meaning::Absent(_)) => {
                Some((op, &[]))
            }
            Kind::Path { base, .. }
            | Kind::Field { base, .. }
            | Kind::Computed { base, .. }
            | Kind::Fetch { base, .. } => self.absent(base, place),
            _ => None,
        }
    }

    /// What an operation is called.
    pub(super) fn describe(&self, op: &'a Op, place: Place<'_, 'a>) -> Option<String> {
        let op = self.behind_names(op);
        let text = if self.step() { self.name(op, place) } else { None };
        text.filter(|text| !text.is_empty() && text.len() <= MAX_NAME)
    }

    fn name(&self, op: &'a Op, place: Place<'_, 'a>) -> Option<String> {
        Some(match &op.kind {
            Kind::Root(slot) => self.root(*slot, true)?,
            Kind::Variable(variable) => match &self.variables[usize::from(*variable)] {
                Meaning::Named(name) | Meaning::Absent(name) => name.clone(),
                _ => self.program.variables[usize::from(*variable)].to_string(),
            },
            Kind::Item => match place.item? {
                Item::Written(text) => text.clone(),
                Item::Pair { map, .. } => format!("an entry of {map}"),
                item => item.name()?,
            },
            Kind::Path { base, keys, .. } => {
                let base = self.base(base, place)?;
                keys.iter().fold(base, |text, key| field_of(&text, key.text()))
            }
            Kind::Field { base, key, .. } => field_of(&self.base(base, place)?, key.text()),
            Kind::Computed { base, name, .. } => field_of(&self.base(base, place)?, name),
            Kind::Fetch { base, property, .. } => self.element_of(base, property, place)?,
            Kind::Coalesce { first, second, .. } => {
                let is_missing = self.value(first, place).is_some_and(Value::is_empty);
                let takes_second = is_missing && !self.is_constant(second, place);
                self.describe(if takes_second { second } else { first }, place)?
            }
            Kind::Constant(constant) => described(constant)?,
            Kind::Builtin { builtin, arguments } => match (builtin.name, &**arguments) {
                ("first" | "last", [list]) if let Some(name) = self.end_of(builtin.name, list, place) => name,
                (_, []) => return None,
                (name, arguments) => {
                    let described: Option<Vec<String>> =
                        arguments.iter().map(|argument| self.describe(argument, place)).collect();
                    format!("{name}({})", described?.join(", "))
                }
            },
            Kind::Call { site, arguments } => self.describe_call(op, *site, arguments, place)?,
            Kind::Predicate { predicate: Predicate::Find, collection, body: Some(body), .. } => {
                self.found_element(collection, body, place)?
            }
            Kind::Predicate { predicate, collection, body, .. } => {
                let rest = if body.is_some() { ", …" } else { "" };
                format!("{}({}{rest})", predicate.name(), self.describe(collection, place)?)
            }
            _ => return None,
        })
    }

    /// What a root is called. A root whose fields stand for themselves has no name before them.
    fn root(&self, slot: crate::schema::Slot, is_whole: bool) -> Option<String> {
        let written = || self.program.roots.iter().find(|(root, _)| *root == slot).map(|(_, name)| name.to_string());
        match self.evaluation.host.root_name(slot) {
            Some(name) if name.is_empty() && is_whole => written(),
            Some(name) => Some(name.into_owned()),
            None => written(),
        }
    }

    /// What stands before the name of a field.
    fn base(&self, op: &'a Op, place: Place<'_, 'a>) -> Option<String> {
        match &self.behind_names(op).kind {
            Kind::Root(slot) => self.root(*slot, false),
            _ => self.describe(op, place),
        }
    }

    fn element_of(&self, base: &'a Op, property: &'a Op, place: Place<'_, 'a>) -> Option<String> {
        let key = self.value(property, place)?;
        if let (Kind::Item, Some(Item::Pair { map, key: name }), Value::Int(part)) =
            (&self.behind_names(base).kind, place.item, key)
        {
            return Some(if part == 0 { format!("{KEY_OF}{map}") } else { field_of(map, name) });
        }
        let list = self.describe_list(base, place)?;
        match key {
            Value::Text(name) => Some(field_of(&list, name)),
            Value::Int(index) => {
                let elements = self.elements(base, place);
                let element = usize::try_from(index).ok().and_then(|index| elements.get(index));
                Some(element.and_then(|(_, item)| item.name()).unwrap_or_else(|| format!("{list}[{index}]")))
            }
            _ => None,
        }
    }

    /// The first or the last element of a list.
    fn end_of(&self, function: &str, list: &'a Op, place: Place<'_, 'a>) -> Option<String> {
        let elements = self.elements(list, place);
        let (_, item) = if function == "first" { elements.first()? } else { elements.last()? };
        item.name()
    }

    fn found_element(&self, collection: &'a Op, body: &'a Op, place: Place<'_, 'a>) -> Option<String> {
        let elements = (0..).zip(self.elements(collection, place));
        let mut found = elements.filter(|(index, (value, item))| {
            let frame = crate::evaluate::Frame::of(*value, *index);
            self.truth(body, Place { frame: &frame, item: Some(item) }) == Some(true)
        });
        match found.next() {
            Some((_, (_, item))) => item.name(),
            None => Some(format!("find({}, …)", self.describe(collection, place)?)),
        }
    }

    /// What a list is called whose elements are: what a call found is known by its kind alone.
    pub(super) fn describe_list(&self, op: &'a Op, place: Place<'_, 'a>) -> Option<String> {
        match &self.behind_names(op).kind {
            Kind::Call { site, .. } if self.is_lookup(*site) && !self.is_among(*site) => {
                self.program.calls.get(*site as usize)?.names.last().cloned()
            }
            _ => self.describe(op, place),
        }
    }

    /// What a call of the host asks for: `services["shop/web"]`, `pods in shop with app=web`.
    fn describe_call(&self, op: &'a Op, site: u32, arguments: &'a [Op], place: Place<'_, 'a>) -> Option<String> {
        let call = self.program.calls.get(site as usize)?;
        if self.is_among(site) {
            let values: Option<Vec<Value<'a>>> = arguments.iter().map(|argument| self.value(argument, place)).collect();
            return self.evaluation.host.call_name(site as usize, &values?);
        }
        let Some(name) = call.names.last() else {
            let arguments: Option<Vec<String>> =
                arguments.iter().map(|argument| self.describe(argument, place)).collect();
            return Some(format!("{}({})", call.name, arguments?.join(", ")));
        };
        let values: Vec<Value<'a>> = arguments.iter().filter_map(|argument| self.value(argument, place)).collect();
        let texts: Vec<&str> =
            values.iter().filter_map(|value| if let Value::Text(text) = value { Some(*text) } else { None }).collect();
        let is_list = self.value(op, place).is_some_and(|value| value.sequence().is_some());
        if !is_list {
            return Some(if texts.is_empty() { name.clone() } else { format!("{name}[{:?}]", texts.join("/")) });
        }
        let which = values.iter().find_map(|value| self.labels(*value)).map(|labels| format!(" with {labels}"));
        let place = match texts.first() {
            None => String::new(),
            Some(&"*") => " in all namespaces".to_owned(),
            Some(namespace) => format!(" in {namespace}"),
        };
        Some(format!("{name}{place}{}", which.unwrap_or_default()))
    }

    /// The labels that a selector asks for, if it is a map of them.
    fn labels(&self, selector: Value<'a>) -> Option<String> {
        let entries =
            self.entry(selector, "matchLabels").unwrap_or(selector).fields()?.sorted(self.evaluation.machine).ok()?;
        let labels: Option<Vec<String>> = entries
            .iter()
            .map(|(key, value)| if let Value::Text(text) = value { Some(format!("{key}={text}")) } else { None })
            .collect();
        labels.filter(|labels| !labels.is_empty()).map(|labels| labels.join(","))
    }
}

fn described(constant: &Constant) -> Option<String> {
    Some(match constant {
        Constant::Nil => "nil".to_owned(),
        Constant::Bool(value) => value.to_string(),
        Constant::Int(value) => value.to_string(),
        Constant::Float(value) => value.to_string(),
        Constant::Text(text) => format!("{text:?}"),
        Constant::Bytes(_) | Constant::Quantity(_) | Constant::Version(_) | Constant::Network(_) => return None,
    })
}

/// `base.name`, or `base["…"]` for names that are no words.
pub(crate) fn field_of(base: &str, name: &str) -> String {
    let is_word = !name.is_empty() && name.chars().all(|character| character.is_alphanumeric() || character == '_');
    match (is_word, base.is_empty()) {
        (true, true) => name.to_owned(),
        (true, false) => format!("{base}.{name}"),
        (false, _) => format!("{base}[{name:?}]"),
    }
}
