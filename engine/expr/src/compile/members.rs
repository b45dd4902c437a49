//! Fields, elements and slices.

use portal_document::Key;

use super::{
    Compiler, MAX_HEIGHT, Typed,
    calls::part_of_version,
    form::{Form, Member},
    known::Known,
};
use crate::{
    ast::{Id, Kind as Syntax},
    error::Error,
    facts::Segment,
    program::{Kind, Missing, Op},
    schema::{Among, Calls, ComputedId, Shape},
    suggest,
    types::Type,
};

impl<'s> Compiler<'s> {
    pub(super) fn chain(&mut self, at: u32, inner: Id) -> Result<Typed<'s>, Error> {
        let inner = self.node(inner)?;
        if !self.strict {
            // In rules every `.` is a `?.`.
            return Ok(inner);
        }
        Ok(Typed { op: Op { kind: Kind::Chain(inner.op.into()), at }, known: inner.known })
    }

    /// A chain of names is compiled without recursion, however long it is.
    pub(super) fn member(&mut self, id: Id) -> Result<Typed<'s>, Error> {
        let tree = self.tree;
        let mut links = Vec::new();
        let mut base = id;
        while let Syntax::Member { base: next, property, optional, method } = tree.kind(base) {
            let Syntax::Text(name) = tree.kind(*property) else { break };
            links.push((base, name.as_ref(), *optional, *method));
            base = *next;
        }
        if let (Syntax::Member { base, property, optional, .. }, true) = (tree.kind(id), links.is_empty()) {
            let base_id = *base;
            let base = self.node(base_id)?;
            self.note_index(id, (base_id, &base), *property);
            return self.element(self.at(id), (base_id, base), *property, *optional);
        }
        if self.strict && links.len() > MAX_HEIGHT {
            return Err(self
                .error(self.at(id), format!("nested too deeply: at most {MAX_HEIGHT} fields can follow each other")));
        }
        let mut typed = match (tree.kind(base), links.last()) {
            (Syntax::Identifier("$env"), Some((link, name, optional, _))) if self.strict => {
                let typed = self.environment_field(self.at(*link), name, *optional);
                links.pop();
                typed
            }
            (Syntax::Identifier(root), _) if self.is_unknown_name(root) => {
                let fields: Vec<&str> = links.iter().rev().map(|(_, name, ..)| *name).collect();
                return Err(self.unknown_name(self.at(base), root, &fields));
            }
            _ => self.node(base)?,
        };
        let names: Vec<&str> =
            links.iter().rev().take_while(|(.., method)| !method).map(|(_, name, ..)| *name).collect();
        let mut owner = None;
        for (index, (link, name, optional, method)) in links.into_iter().rev().enumerate() {
            let object = typed.known.form.object();
            let following = names.get(index..).unwrap_or_default();
            self.refuse_habitual_field(link, &typed, name, following)?;
            typed = if self.strict {
                self.strict_field(self.at(link), typed, name, optional, method)?
            } else {
                self.member_field(link, typed, name, following)?
            };
            self.settle(link, &mut typed);
            self.note_fallback(link, object, owner);
            self.note_filled(link, object);
            self.note_open_list(link, name, object);
            self.note_remainder(link, name, object);
            self.note_siblings(link, name, object);
            owner = object;
        }
        Ok(self.with_default(id, typed))
    }

    /// `$env.name` and `$env["name"]`.
    fn environment_field(&self, at: u32, name: &str, optional: bool) -> Typed<'s> {
        let base = Op { kind: Kind::Environment, at };
        let kind = Kind::Field { base: base.into(), key: Key::new(name), optional };
        Typed { op: Op { kind, at }, known: Known::unknown() }
    }

    fn strict_field(
        &mut self,
        at: u32,
        base: Typed<'s>,
        name: &str,
        optional: bool,
        method: bool,
    ) -> Result<Typed<'s>, Error> {
        let known = self.strict_member(at, &base.known, name, method)?;
        if let Some(origin) = base.known.origin {
            self.facts.read(origin);
        }
        let kind = Kind::Field { base: base.op.into(), key: Key::new(name), optional };
        Ok(Typed { op: Op { kind, at }, known })
    }

    /// A field in rules. One of the forms that the value may have must have it; that a value has another form shows when it runs.
    /// `following` are the names that are read one after another, and this one is the first of them.
    pub(super) fn member_field(
        &mut self,
        link: Id,
        base: Typed<'s>,
        name: &str,
        following: &[&str],
    ) -> Result<Typed<'s>, Error> {
        let at = self.at(link);
        let mut read = None;
        let mut missing = None;
        let mut is_required = true;
        let mut empty_is_none = true;
        let mut computed: Option<(ComputedId, &Shape, bool)> = None;
        for form in base.known.form.alternatives() {
            match form.member(self.schema, name) {
                Member::None => {}
                Member::Read { form, required, empty_is_none: is_none } => {
                    is_required &= required;
                    empty_is_none &= is_none;
                    missing = missing.or(empty(&form));
                    read = Some(match read {
                        Some(known) => Form::or(known, form),
                        None => form,
                    });
                }
                Member::Computed { field, shape, of_text, required } => match computed {
                    Some((known, ..)) if known != field => {
                        return Err(self.error(at, format!("`{name}` is not the same for all that this may be")));
                    }
                    _ => {
                        is_required &= required;
                        computed = Some((field, shape, of_text));
                    }
                },
            }
        }
        let base_may_be_nil = base.known.may_be_nil;
        match (read, computed) {
            (read, Some((field, shape, of_text))) => {
                // What it is computed from is read, whatever the host looks at.
                if let Some(origin) = base.known.origin {
                    self.facts.read(origin);
                }
                let missing = empty(&Form::shaped(shape)).unwrap_or(Missing::Nil);
                let kind = Kind::Computed { base: base.op.into(), field, name: name.into(), of_text, missing };
                let known = match read {
                    Some(read) => Known::read(read.or(Form::shaped(shape))),
                    None => Known::shaped(shape, None),
                };
                let known = Known { may_be_nil: known.may_be_nil && (base_may_be_nil || !is_required), ..known };
                Ok(Typed { op: Op { kind, at }, known })
            }
            (Some(form), None) => {
                self.warn_of_unknown(at, &base.known, name);
                let may_be_nil = missing.is_none() && (base_may_be_nil || !is_required);
                let nil = if empty_is_none { Missing::NilOrEmpty } else { Missing::Nil };
                let typed = self.step_down(at, base, name, form, missing.unwrap_or(nil));
                Ok(Typed { known: Known { may_be_nil, ..typed.known }, ..typed })
            }
            (None, None) if following.is_empty() => Err(self.error(at, self.no_field_but(&base.known, name))),
            (None, None) => Err(self.misplaced(link, &base, following)),
        }
    }

    /// Says that a field may not be what was meant, where only an evaluation knows whether it is there.
    fn warn_of_unknown(&mut self, at: u32, base: &Known<'s>, name: &str) {
        let (schema, forms) = (self.schema, base.form.alternatives());
        if !forms.iter().any(|form| matches!(form, Form::Any)) {
            return;
        }
        if let Some(object) = schema.computes(name) {
            let message = format!(
                "`{name}` is worked out for {object} where that is known: here it is a field like any other, and may be missing"
            );
            self.warn(at, message);
        } else if forms.iter().any(|form| form.object().is_some())
            && forms.iter().all(|form| matches!((form, form.member(schema, name)), (Form::Any, _) | (_, Member::None)))
        {
            let message = self.no_field_but(base, name);
            self.warn(at, format!("{message}, unless this is something else"));
        }
    }

    /// What is wrong with a field, and the nearest one.
    fn no_field_but(&self, base: &Known<'s>, name: &str) -> String {
        let objects = base.form.alternatives().iter().filter_map(Form::object);
        let fields = objects.flat_map(|id| self.schema.object(id).fields.keys().map(String::as_str));
        format!("{}{}", self.no_field(base, name), suggest::hint(name, fields))
    }

    pub(super) fn no_field(&self, base: &Known<'s>, name: &str) -> String {
        let forms = base.form.alternatives();
        if base.kind.is_array() {
            return format!("a list has no field `{name}`: write `any(…, .{name} …)`, or `[0].{name}`");
        }
        let mut objects = forms.iter().filter_map(Form::object).map(|id| self.schema.object(id));
        let Some(first) = objects.next() else {
            let hint = part_of_version(base.kind, name);
            return format!("a value that is {} has no field `{name}`{hint}", base.kind);
        };
        let mut names = vec![&*first.name];
        for object in objects {
            // Objects that differ in what is known of their fields may have one name.
            if !names.contains(&&*object.name) {
                names.push(&object.name);
            }
        }
        format!("{} has no field `{name}`", names.join(" or "))
    }

    /// One field further down a path.
    fn step_down(&self, at: u32, base: Typed<'s>, name: &str, form: Form<'s>, missing: Missing) -> Typed<'s> {
        let key = Key::new(name);
        let kind = match base.op.kind {
            // A field of an empty map is nil, as one of nothing is.
            Kind::Path { base, keys, missing: Missing::Nil | Missing::EmptyMap } => {
                let mut keys = Vec::from(keys);
                // It is a slice again right away.
                keys.reserve_exact(1);
                keys.push(key);
                Kind::Path { base, keys: keys.into(), missing }
            }
            kind => {
                let base = Op { kind, at: base.op.at };
                Kind::Path { base: base.into(), keys: [key].into(), missing }
            }
        };
        let origin = base.known.origin.map(|mut origin| {
            origin.path.push(Segment::Field(name.to_owned()));
            origin
        });
        let known = Known { origin, ..Known::read(form) };
        Typed { op: Op { kind, at }, known }
    }

    /// `base[property]` with a property that is no constant text.
    fn element(
        &mut self,
        at: u32,
        (base_id, mut base): (Id, Typed<'s>),
        property: Id,
        optional: bool,
    ) -> Result<Typed<'s>, Error> {
        if base.known.kind == Type::TEXT {
            self.refuse_hidden(base_id, &base)?;
        }
        // Which part is read is known only when it runs, so all of it is.
        if let Some(origin) = base.known.origin.take() {
            self.facts.read(origin);
        }
        let property_at = self.at(property);
        let is_environment = matches!(base.op.kind, Kind::Environment);
        let property_id = property;
        let property = self.below(!is_environment, |compiler| compiler.value(property))?;
        self.refuse_hidden(property_id, &property)?;
        let known = if self.strict {
            self.strict_element(at, property_at, &base.known, &property.known)?
        } else {
            if base.known.kind.is_array() {
                self.check_index(property_at, &property.known)?;
            }
            base.known.element()
        };
        let kind = Kind::Fetch { base: base.op.into(), property: property.op.into(), optional };
        Ok(Typed { op: Op { kind, at }, known })
    }

    fn check_index(&self, at: u32, index: &Known<'s>) -> Result<(), Error> {
        if index.may_be(Type::INT) {
            return Ok(());
        }
        Err(self.error(at, format!("an element of a list is chosen by a whole number, and this is a {}", index.kind)))
    }

    fn strict_member(&self, at: u32, base: &Known<'s>, name: &str, method: bool) -> Result<Known<'s>, Error> {
        let what = if method { "method" } else { "field" };
        if base.is_unknown() || base.kind.is_map() {
            return Ok(Known::of(base.kind.element()));
        }
        if method && (base.kind == Type::TIME || base.kind == Type::DURATION) {
            return Ok(Known::unknown());
        }
        Err(self.error(at, format!("a {} has no {what} `{name}`", base.kind)))
    }

    fn strict_element(
        &self,
        at: u32,
        property_at: u32,
        base: &Known<'s>,
        property: &Known<'s>,
    ) -> Result<Known<'s>, Error> {
        if base.is_unknown() {
            return Ok(Known::unknown());
        }
        if base.kind.is_map() {
            if !property.is_unknown() && !property.kind.is_assignable(base.kind.key()) {
                let message = format!("a {} cannot be used to get a value of a {}", property.kind, base.kind);
                return Err(self.error(property_at, message));
            }
            return Ok(Known::of(base.kind.element()));
        }
        if base.kind.is_array() {
            self.check_index(property_at, property)?;
            return Ok(Known::of(base.kind.element()));
        }
        Err(self.error(at, format!("a {} has no elements", base.kind)))
    }

    pub(super) fn slice(&mut self, at: u32, base: Id, from: Option<Id>, to: Option<Id>) -> Result<Typed<'s>, Error> {
        let base_id = base;
        let base = self.value(base)?;
        if base.known.kind == Type::TEXT {
            self.refuse_hidden(base_id, &base)?;
        }
        // A part of a text is not what the whole was.
        let form = if base.known.kind == Type::TEXT { Form::Plain(Type::TEXT) } else { base.known.form };
        let known = Known { form, ..base.known };
        if !(known.is_unknown() || known.kind.is_array() || known.kind == Type::TEXT || known.kind == Type::BYTES) {
            return Err(self.error(at, format!("a {} cannot be sliced", known.kind)));
        }
        let is_known = !known.is_unknown();
        let from = self.below(is_known, |compiler| from.map(|from| compiler.bound(from, &known)).transpose())?;
        let to = self.below(is_known, |compiler| to.map(|to| compiler.bound(to, &known)).transpose())?;
        let kind = Kind::Slice { base: base.op.into(), from: from.map(Box::new), to: to.map(Box::new) };
        Ok(Typed { op: Op { kind, at }, known })
    }

    fn bound(&mut self, bound: Id, base: &Known<'s>) -> Result<Op, Error> {
        let at = self.at(bound);
        let bound_id = bound;
        let bound = self.value(bound)?;
        self.require(bound_id, &bound, "0", |bound| format!("[({bound}):]"))?;
        // Go does not look at the bounds of what it knows nothing about.
        if !base.is_unknown() && !bound.known.may_be(Type::INT) {
            return Err(self.error(
                at,
                format!("a slice goes from one whole number to another, and this is a {}", bound.known.kind),
            ));
        }
        Ok(bound.op)
    }

    /// A root without a value, used as if it had one.
    pub(super) fn restricted(&self, at: u32, root: &str, calls: &Calls) -> Error {
        let mut functions: Vec<String> =
            calls.functions.iter().map(|function| format!("`{root}.NAME.{}(…)`", function.name)).collect();
        if let Some(Among { word, functions: among }) = &calls.among {
            functions.extend(among.iter().map(|function| format!("`{root}.{word}(\"NAME\", …).{}(…)`", function.name)));
        }
        let meant = self.indexed_meant(at, root).unwrap_or_default();
        self.error(at, format!("`{root}` can only be used as {}{meant}", functions.join(" or ")))
    }

    /// What is meant by `cluster.namespaces[metadata.namespace]`.
    fn indexed_meant(&self, at: u32, root: &str) -> Option<String> {
        let tree = self.tree;
        tree.nodes.iter().find_map(|node| {
            let Syntax::Member { base, property, .. } = &node.kind else { return None };
            let Syntax::Member { base: first, property: name, .. } = tree.kind(*base) else { return None };
            let (Syntax::Identifier(_), Syntax::Text(name)) = (tree.kind(*first), tree.kind(*name)) else {
                return None;
            };
            let is_name = matches!(tree.kind(*property), Syntax::Text(_));
            (self.at(*first) == at && !is_name)
                .then(|| format!(": write `{root}.{name}.byName({})`", self.shown(*property)))
        })
    }
}

/// What a field of this form is when it is missing, if it is not nil.
fn empty(form: &Form<'_>) -> Option<Missing> {
    match form {
        Form::Shaped(Shape::List { never_nil: true, .. }) => Some(Missing::EmptyList),
        Form::Shaped(Shape::Map { never_nil: true, .. }) => Some(Missing::EmptyMap),
        _ => None,
    }
}
