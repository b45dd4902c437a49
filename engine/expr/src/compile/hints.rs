//! What people mean who write as in another language, or who name what they know from Kubernetes by a name of its own. Words come
//! from the tables of habits, paths from the schema.

use super::{
    Compiler, Typed,
    elsewhere::path_of,
    form::{Form, Member},
    known::Known,
    operators::name_of,
};
use crate::{
    ast::{Binary, Id, Kind as Syntax, Unary},
    builtins,
    error::Error,
    habits::{self, Receiver},
    parse::{element_meant, is_word},
    schema::Hint,
    suggest,
    types::Type,
};

impl<'s> Compiler<'s> {
    /// Whether a name is that of nothing, in rules.
    pub(super) fn is_unknown_name(&self, name: &str) -> bool {
        !self.strict && name != "$env" && self.variable(name).is_none() && self.schema.root(name).is_none()
    }

    /// A name that is that of nothing, with the fields that follow it.
    pub(super) fn unknown_name(&self, at: u32, name: &str, fields: &[&str]) -> Error {
        let error = |hint: String| self.error(at, format!("unknown name `{name}`{hint}"));
        if let Some(ours) = habits::value(name) {
            return error(format!(": write `{ours}`"));
        }
        if let Some(instead) = habits::nowhere(name, fields.first().copied()) {
            return error(format!(": {instead}"));
        }
        // A field of the element, and one of a variable that other languages have for the element.
        if let Some(field) = [Some(&name), fields.first()].into_iter().flatten().find(|field| self.is_of_element(field))
        {
            return error(format!(": the element is `#`, write `.{field}`"));
        }
        if let Some(hint) = self.hinted(name, fields).filter(|hint| self.may_be_read(&hint.instead)) {
            return error(hint.to_string());
        }
        let path = [&[name], fields].concat();
        if let Some(places) = [&path[..], &path[..1]].into_iter().find_map(|path| self.place_below_roots(path)) {
            return error(format!(": write {places}"));
        }
        let names = self.schema.root_names().chain(self.variables.iter().map(|variable| variable.name));
        if let Some(nearest) = suggest::nearest(name, names) {
            return error(format!(", did you mean `{nearest}`?"));
        }
        // It may be a name too many.
        if let Some(places) = self.place_below_roots(fields) {
            return error(format!(": write {places}"));
        }
        if matches!(name, "string" | "int" | "float" | "map") {
            return error(format!(": write `{name:?}` for the type that `type(…)` gives"));
        }
        if builtins::find(name).is_some() || builtins::find_ours(name).is_some() {
            return error(format!(": `{name}` is a function, write `{name}(…)`"));
        }
        if name == "_"
            && let Some(ours) = element_meant(self.source)
        {
            return error(format!(": write `{ours}`"));
        }
        if name == "_" {
            return error(": write `any(list, …)` to ask all elements of a list".to_owned());
        }
        error(String::new())
    }

    /// Whether the element that a predicate looks at is known to have a field.
    fn is_of_element(&self, field: &str) -> bool {
        let Some(scope) = self.scopes.last() else { return false };
        let has_field =
            |form: &Form<'s>| form.object().is_some() && !matches!(form.member(self.schema, field), Member::None);
        scope.item.form.alternatives().iter().any(has_field)
    }

    /// What is meant by a path that there is not: what the schema says of most of it.
    pub(super) fn hinted(&self, path: &str, fields: &[&str]) -> Option<Hint> {
        (0..=fields.len()).rev().find_map(|count| {
            let hint = self.schema.hint(&path_of(path, &fields[..count]))?;
            Some(Hint { instead: path_of(&hint.instead, &fields[count..]), because: hint.because.clone() })
        })
    }

    /// What is meant by a field that values of a type do not have. What begins with a dot is below the value itself.
    pub(super) fn hinted_of_type(&self, path: &str, types: &[String], fields: &[&str]) -> Option<Hint> {
        let (first, rest) = fields.split_first()?;
        let hint = types.iter().find_map(|name| self.hinted(&format!("{name}.{first}"), rest))?;
        if hint.instead.contains("{}") {
            let value = if path.is_empty() { "#" } else { path };
            return Some(Hint { instead: hint.instead.replace("{}", value), ..hint });
        }
        let is_below = hint.instead.starts_with('.');
        Some(if is_below { Hint { instead: format!("{path}{}", hint.instead), ..hint } } else { hint })
    }

    /// What is meant where an operator does not work with its operands.
    pub(super) fn hint_of_operands(&self, operator: Binary, left: (Id, Type), right: (Id, Type)) -> String {
        if let Some(hint) = self.hint_of_sides(operator, left, right) {
            return hint;
        }
        if let Some(hint) = self.asked_of_texts(operator, left, right) {
            return hint;
        }
        if operator.is_boolean() {
            let other = if left.1 == Type::BOOL { right } else { left };
            return self.truth_of(other.0, other.1, true).unwrap_or_default();
        }
        if operator == Binary::Contains && (left.1.is_array() || left.1.is_map()) {
            return format!(": write `{} in {}`", self.shown(right.0), self.shown(left.0));
        }
        let read = match (left, right) {
            ((id, Type::TEXT), (_, Type::TIME)) | ((_, Type::TIME), (id, Type::TEXT)) => Some(("date", id)),
            ((id, Type::TEXT), (_, Type::DURATION)) | ((_, Type::DURATION), (id, Type::TEXT)) => {
                let is_time =
                    self.last_name(id).is_some_and(|name| name.ends_with("Timestamp") || name.ends_with("Time"));
                Some((if is_time { "date" } else { "duration" }, id))
            }
            _ => None,
        };
        let is_element = |list: Type, other: Type| list.is_array() && list.element() == other;
        if matches!(operator, Binary::Equal | Binary::NotEqual) {
            let asked = [(left, right), (right, left)].into_iter().find(|(list, other)| is_element(list.1, other.1));
            if let Some((list, other)) = asked {
                let not = if operator == Binary::Equal { "" } else { "not " };
                return format!(": write `{} {not}in {}`", self.shown(other.0), self.shown(list.0));
            }
        }
        if let Some((function, id)) = read {
            return format!(": write `{function}({})`", self.shown(id));
        }
        let unquoted = self.unquoted_constant(right.0, left.1).or_else(|| self.unquoted_constant(left.0, right.1));
        unquoted.unwrap_or_default()
    }

    /// How to ask whether something that is neither true nor false is there.
    pub(super) fn truth_of(&self, id: Id, kind: Type, is_there: bool) -> Option<String> {
        // Of what is put together nobody asks whether it is there.
        if !matches!(
            self.tree.kind(id),
            Syntax::Member { .. }
                | Syntax::Identifier(_)
                | Syntax::Pointer(_)
                | Syntax::Chain(_)
                | Syntax::Predicate(_)
        ) {
            return self.truth_of_call(id, kind, is_there);
        }
        self.truth_of_value(id, kind, is_there)
    }

    /// How to ask whether a value is there, by what it is.
    pub(super) fn truth_of_value(&self, id: Id, kind: Type, is_there: bool) -> Option<String> {
        let text = self.shown(id);
        let equal = if is_there { "!=" } else { "==" };
        match kind {
            Type::BOOL => None,
            _ if kind.is_unknown() => None,
            Type::TEXT => Some(format!(
                ": write `({text} ?? \"\") {equal} \"\"`, or `{text} {equal} nil` to ask only whether it is there"
            )),
            Type::QUANTITY | Type::VERSION | Type::NETWORK | Type::TIME => {
                Some(format!(": write `{text} {equal} nil`"))
            }
            _ if kind.is_number() => {
                let default = self.default_of(id).unwrap_or("0");
                let value = format!("({text} ?? {default})");
                Some(match is_there {
                    true => format!(": write `{value} != 0`, or `{text} != nil` to ask only whether it is there"),
                    false => format!(
                        ": write `{text} == nil` to ask whether it is missing, or `{value} == 0` to let 0 count as missing too"
                    ),
                })
            }
            _ if kind.is_array() || kind.is_map() => Some(format!(": write `{text} {equal} nil`")),
            _ => None,
        }
    }

    /// Refuses `not x in y`, which is `(not x) in y`.
    pub(super) fn refuse_early_not(&self, left: Id, operator: Binary, at: u32, right: Id) -> Result<(), Error> {
        let Syntax::Unary(Unary::Not { word }, operand) = self.tree.kind(left) else { return Ok(()) };
        if self.strict {
            return Ok(());
        }
        let is_word =
            matches!(operator, Binary::In | Binary::Matches | Binary::Contains | Binary::StartsWith | Binary::EndsWith);
        let is_constant = matches!(
            self.tree.kind(right),
            Syntax::Text(_) | Syntax::Integer(_) | Syntax::Float(_) | Syntax::Array(_) | Syntax::Nil
        );
        let is_equality = matches!(operator, Binary::Equal | Binary::NotEqual);
        if !(is_word || operator.is_ordering() || is_equality && is_constant) {
            return Ok(());
        }
        let (operand, right, sign) = (self.shown(*operand), self.shown(right), name_of(operator));
        let not = if *word { "not " } else { "!" };
        let ours =
            if is_word { format!("{operand} not {sign} {right}") } else { format!("not ({operand} {sign} {right})") };
        let message = format!("this is `({not}{operand}) {sign} {right}`: write `{ours}`");
        Err(self.error(at, message))
    }

    /// Refuses `!has(x)` as a whole, because what is meant is shorter than its parts.
    pub(super) fn refuse_negated_habit(&self, id: Id, operator: Unary, operand: Id) -> Result<(), Error> {
        let (Unary::Not { .. }, Syntax::Call { callee, .. }, false) = (operator, self.tree.kind(operand), self.strict)
        else {
            return Ok(());
        };
        match self.tree.kind(*callee) {
            Syntax::Identifier(name) if self.schema.function(name).is_none() && self.variable(name).is_none() => {
                match habits::rewritten(self.tree, id, Receiver::Unknown) {
                    Some(ours) => {
                        Err(self.error(self.at(operand), format!("unknown function `{name}`: write `{ours}`")))
                    }
                    None => Ok(()),
                }
            }
            _ => Ok(()),
        }
    }

    /// Refuses `x.compareTo(y) < 0` as a whole, because the number says what is meant.
    pub(super) fn refuse_compared_habit(&self, id: Id) -> Result<(), Error> {
        let Syntax::Binary(_, left, _) = self.tree.kind(id) else { return Ok(()) };
        let Syntax::Call { callee, .. } = self.tree.kind(*left) else { return Ok(()) };
        let Syntax::Member { property, .. } = self.tree.kind(*callee) else { return Ok(()) };
        let name = match self.tree.kind(*property) {
            Syntax::Text(name) if matches!(name.as_ref(), "compareTo" | "compare") && !self.strict => name,
            _ => return Ok(()),
        };
        match habits::rewritten(self.tree, id, Receiver::Unknown) {
            Some(ours) => Err(self.error(self.at(*left), format!("there is no method `{name}`: write `{ours}`"))),
            None => Ok(()),
        }
    }

    /// A function of another language.
    pub(super) fn habitual_call(&self, id: Id, name: &str) -> Option<Error> {
        habits::function(name)?;
        let ours = habits::rewritten(self.tree, id, self.receiver_of_call(id))?;
        Some(self.error(self.at(id), format!("unknown function `{name}`: write `{ours}`")))
    }

    /// `contains(list, x)` is about a list only if that is written out; what a path is, is not known yet.
    fn receiver_of_call(&self, id: Id) -> Receiver {
        let Syntax::Call { arguments, .. } = self.tree.kind(id) else { return Receiver::Unknown };
        match arguments.first().map(|argument| self.tree.kind(argument.value)) {
            Some(Syntax::Array(_) | Syntax::Map(_)) => Receiver::Collection,
            _ => Receiver::Unknown,
        }
    }

    /// A function of another language that belongs to a name: `Object.keys(x)`.
    pub(super) fn habitual_namespace(&self, id: Id, base: Id, name: &str) -> Option<Error> {
        let Syntax::Identifier(owner) = self.tree.kind(base) else { return None };
        let Syntax::Call { arguments, .. } = self.tree.kind(id) else { return None };
        habits::function_of(owner, name, arguments.len())?;
        // Rego's `object` is a library, and ours is what is judged.
        let is_library = self.is_unknown_name(owner) || matches!((*owner, name), ("object", "get" | "keys"));
        if self.strict || !is_library || self.variable(owner).is_some() {
            return None;
        }
        let ours = habits::rewritten(self.tree, id, Receiver::Unknown)?;
        Some(self.error(self.at(id), format!("unknown function `{owner}.{name}`: write `{ours}`")))
    }

    /// A method that is called on what another method gives. It is told as a whole, and not method by method.
    pub(super) fn habitual_chain(&self, id: Id, base: Id, name: &str) -> Option<Error> {
        if self.strict || !matches!(self.tree.kind(base), Syntax::Call { .. }) {
            return None;
        }
        habits::rewritten(self.tree, base, Receiver::Unknown)?;
        let ours = habits::rewritten(self.tree, id, Receiver::Unknown)?;
        Some(self.error(self.at(id), format!("there is no method `{name}`: write `{ours}`")))
    }

    /// A function or an operator that is called as a method, as in most languages.
    pub(super) fn habitual_method(&self, id: Id, base: &Known<'s>, name: &str, arguments: usize) -> Option<Error> {
        let has_methods = [Type::TIME, Type::DURATION, Type::ZONE].contains(&base.kind);
        if self.strict || has_methods && builtins::signature(base.kind, name).is_some() {
            return None;
        }
        let receiver = match base.kind {
            Type::TEXT => Receiver::Text,
            Type::NETWORK => Receiver::Network,
            kind if kind.is_map() => Receiver::Map,
            kind if kind.is_array() => Receiver::Collection,
            _ => Receiver::Unknown,
        };
        if let Some(ours) = habits::method(name, arguments)
            && ours == habits::Ours::Holds
            && receiver == Receiver::Unknown
            && let Some(either) = self.held_by_either(id)
        {
            return Some(self.error(self.at(id), format!("there is no method `{name}`: write {either}")));
        }
        if habits::method(name, arguments).is_some()
            && let Some(ours) = habits::rewritten(self.tree, id, receiver)
        {
            return Some(self.error(self.at(id), format!("there is no method `{name}`: write `{ours}`")));
        }
        let mut names = builtins::METHODS.iter().filter(|method| !has_methods || method.base == base.kind);
        if (base.kind.is_unknown() || has_methods) && names.clone().all(|method| method.name != name) {
            let bare = name.strip_prefix("get").filter(|bare| !bare.is_empty()).unwrap_or(name);
            let hint = suggest::hint(bare, names.by_ref().map(|method| method.name));
            let what = if has_methods { format!("a {} has", base.kind) } else { "there is".to_owned() };
            return Some(self.error(self.at(id), format!("{what} no method `{name}`{hint}")));
        }
        None
    }

    /// How to ask whether something holds something else, where nobody knows whether it is a list or a text.
    fn held_by_either(&self, id: Id) -> Option<String> {
        let [unknown, list, text] = [Receiver::Unknown, Receiver::Collection, Receiver::Text]
            .map(|receiver| habits::rewritten(self.tree, id, receiver));
        let is_open = unknown == text && list != text;
        is_open.then_some(())?;
        Some(format!("`{}` if it is a list or a map, or `{}` if it is text", list?, text?))
    }

    /// Refuses a field that is no field: the length of something, a part of a key with dots and dashes, a field of a whole list.
    pub(super) fn refuse_habitual_field(
        &self,
        link: Id,
        base: &Typed<'s>,
        name: &str,
        following: &[&str],
    ) -> Result<(), Error> {
        let Syntax::Member { base: base_id, .. } = self.tree.kind(link) else { return Ok(()) };
        let is_list = base.known.kind.is_array() && base.known.kind != Type::BYTES;
        if self.strict || self.is_indexed(link) && !is_list {
            return Ok(());
        }
        let (at, kind) = (self.at(link), base.known.kind);
        let has_length = kind.is_array() || kind == Type::TEXT;
        let is_text_map = kind == Type::MAP && base.known.form.element().kind() == Type::TEXT;
        if habits::LENGTHS.contains(&name) && has_length || name == "length" && (kind.is_unknown() || is_text_map) {
            let base = self.shown(*base_id);
            let field =
                if has_length { String::new() } else { format!(", or `{base}[\"{name}\"]` for a field of that name") };
            return Err(self.error(at, format!("`{name}` is no field of this: write `len({base})`{field}")));
        }
        if kind.is_array() && kind != Type::BYTES {
            let text = self.shown(*base_id);
            let instead = self
                .asked_of_filtered(*base_id, following)
                .or_else(|| self.asked_of_elements(&text, &base.known.form, following));
            let instead = instead.unwrap_or_else(|| format!("`any({text}, .{name} …)`, or `{text}[0].{name}`"));
            return Err(self.error(at, format!("a list has no field `{name}`: write {instead}")));
        }
        if is_text_map {
            let key = self.key_at(at);
            if key != name {
                return Err(self.unquoted(at, &self.shown(*base_id), key));
            }
        }
        Ok(())
    }

    /// Refuses `labels.cost-center`, which is the difference of a label and of a name that there is not.
    pub(super) fn refuse_unquoted_key(&self, left: Id, operator: Binary, at: u32, right: Id) -> Result<(), Error> {
        let is_part_of_key = matches!(operator, Binary::Subtract | Binary::Divide);
        let Some((link, base_id, _)) = self.named_member(left).filter(|_| is_part_of_key && !self.strict) else {
            return Ok(());
        };
        let beside = |place: usize| self.source.as_bytes().get(place).is_some_and(u8::is_ascii_alphanumeric);
        if !beside(at as usize + 1) || !beside((at as usize).wrapping_sub(1)) || !self.begins_unknown(right) {
            return Ok(());
        }
        // The key begins after the last field that is known to be a map of text, or else it is one name.
        let (mut start, mut map, mut member) = (link, base_id, link);
        while let Some((link, base, _)) = self.named_member(member) {
            let is_map = match self.tree.kind(base) {
                Syntax::Identifier(name) => self.schema.is_text_map(name),
                _ => self.named_member(base).is_some_and(|(.., name)| self.schema.is_text_map(name)),
            };
            if is_map {
                (start, map) = (link, base);
                break;
            }
            member = base;
        }
        let key = self.key_at(self.at(start));
        let map = self.path_meant(map).unwrap_or_else(|| self.shown(map));
        Err(self.unquoted(self.at(start), &map, key))
    }

    /// A path that the schema has for the one that is written.
    fn path_meant(&self, id: Id) -> Option<String> {
        let (mut fields, mut node) = (Vec::new(), id);
        while let Some((_, base, name)) = self.named_member(node) {
            fields.push(name);
            node = base;
        }
        fields.reverse();
        match self.tree.kind(node) {
            Syntax::Identifier(root) if self.is_unknown_name(root) => Some(self.hinted(root, &fields)?.instead),
            _ => None,
        }
    }

    fn unquoted(&self, at: u32, map: &str, key: &str) -> Error {
        self.error(
            at,
            format!("a key with other signs than letters and digits is put in quotes: write `{map}[{key:?}]`"),
        )
    }

    /// A member that is written with a dot: itself, what it is a field of, and the name.
    fn named_member(&self, id: Id) -> Option<(Id, Id, &'s str)> {
        let Syntax::Member { base, property, method: false, .. } = self.tree.kind(id) else { return None };
        let Syntax::Text(name) = self.tree.kind(*property) else { return None };
        (!self.is_indexed(id)).then_some((id, *base, name.as_ref()))
    }

    /// Whether a member is written with brackets.
    fn is_indexed(&self, id: Id) -> bool {
        self.source[self.at(id) as usize..].starts_with('[')
    }

    /// Whether what stands first in an operand is a name of nothing.
    fn begins_unknown(&self, mut id: Id) -> bool {
        loop {
            match self.tree.kind(id) {
                Syntax::Identifier(name) => return self.is_unknown_name(name),
                Syntax::Member { base: first, .. } | Syntax::Binary(_, first, _) => id = *first,
                _ => return false,
            }
        }
    }

    /// What looks like one key at a place of the source.
    fn key_at(&self, at: u32) -> &'s str {
        let rest = &self.source[at as usize..];
        let is_part = |character: char| is_word(character) || "._-/".contains(character);
        let end = rest.find(|character| !is_part(character)).unwrap_or(rest.len());
        // What begins with two slashes is a comment.
        let end = rest[..end].find("//").unwrap_or(end);
        let key = &rest[..end];
        let (before, last) = key.rsplit_once('.').unwrap_or(("", key));
        // What comes last may be a method, or the length.
        let is_other = rest[end..].starts_with('(') || habits::LENGTHS.contains(&last);
        let key = if is_other && !before.is_empty() { before } else { key };
        key.trim_end_matches(['.', '-', '/', '_'])
    }
}
