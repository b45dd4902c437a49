//! Calls: of builtins, of functions of the host, and of methods.

use super::{
    Compiler, Typed,
    form::{self, Form, Member},
    known::Known,
    through::Route,
};
use crate::{
    ast::{Argument, Binary, Id, Kind as Syntax},
    builtins::{self, Builtin, Gives, Run},
    error::Error,
    facts::ArgumentShape,
    habits,
    program::{CallSite, Constant, Kind, Op},
    schema::{Function, Nil, Parameter},
    suggest,
    types::Type,
};

impl<'s> Compiler<'s> {
    pub(super) fn builtin(&mut self, at: u32, name: &str, arguments: &[Id]) -> Result<Typed<'s>, Error> {
        let Some(builtin) = builtins::find(name) else {
            return Err(self.error(at, format!("unknown builtin `{name}`")));
        };
        if let Run::Predicate(predicate) = builtin.run {
            return self.predicate(at, predicate, builtin, arguments);
        }
        self.plain_builtin(at, builtin, arguments)
    }

    /// A builtin that runs no body.
    fn plain_builtin(&mut self, at: u32, builtin: &'static Builtin, arguments: &[Id]) -> Result<Typed<'s>, Error> {
        let typed: Vec<Typed<'s>> =
            arguments.iter().map(|argument| self.value(*argument)).collect::<Result<_, Error>>()?;
        self.refuse_hidden_arguments(builtin, arguments, &typed)?;
        self.note_split(at, builtin, arguments, &typed);
        self.note_glob(at, builtin, arguments, &typed);
        let kinds: Vec<Type> = typed.iter().map(|typed| typed.known.kind).collect();
        let kind = match builtin.check(&kinds) {
            Ok(kind) => kind,
            // The call fails when it runs.
            Err(_) if self.unchecked > 0 => Type::UNKNOWN,
            Err(refusal) => {
                let argument = refusal.argument.and_then(|argument| arguments.get(argument));
                let at = argument.map_or(at, |argument| self.at(*argument));
                let is_amount = refusal.argument.and_then(|argument| kinds.get(argument)) == Some(&Type::QUANTITY);
                let hint = match self.call_meant(builtin.name, arguments, &kinds).filter(|_| !self.strict) {
                    Some(ours) => format!(": write `{ours}`"),
                    None if is_amount && !self.strict => part_of_version(Type::QUANTITY, builtin.name).to_owned(),
                    None => String::new(),
                };
                return Err(self.error(at, format!("{}{hint}", refusal.message)));
            }
        };
        self.refuse_either_arguments(builtin, &kinds, arguments, &typed)?;
        let mut ops = Vec::with_capacity(arguments.len());
        let mut knowns = Vec::with_capacity(arguments.len());
        for (index, typed) in typed.into_iter().enumerate() {
            let typed = self.prepared(builtin, &kinds, arguments, index, typed)?;
            ops.push(typed.op);
            knowns.push(typed.known);
        }
        let may_be_nil = builtin.may_give_nil(&kinds);
        let has_nil = builtin.gives != Gives::Type && knowns.iter().any(|known| known.has_nil);
        // Keys are texts, which Go's checker does not know.
        let kind = if builtin.name == "keys" && !self.strict { Type::TEXT.array() } else { kind };
        // The largest of amounts is one.
        let is_amount = matches!(builtin.name, "max" | "min") && knowns.iter().all(Known::has_quantities);
        let kind = if is_amount && !self.strict { Type::QUANTITY } else { kind };
        let mut forms: Vec<_> = knowns.into_iter().map(|known| known.form).collect();
        if let (Gives::Member, [_, key]) = (builtin.gives, arguments)
            && let Syntax::Text(field) = self.tree.kind(*key)
            && !self.strict
            && forms[0].alternatives().iter().any(|form| form.object().is_some())
        {
            // A field of the schema is one however it is asked for.
            let base = Typed { op: ops.swap_remove(0), known: Known::read(forms.swap_remove(0)) };
            return self.member_field(*key, base, field, &[]);
        }
        if builtin.name == "now" && self.facts.now.is_none() {
            let place = self.error(at, "");
            self.facts.now = Some((place.line, place.column));
        }
        let known = self.formed(Known::of(kind), form::of_result(builtin.gives, kind, &forms, None));
        let known = Known { has_nil, may_be_nil: may_be_nil || self.strict && known.may_be_nil, ..known };
        let op = Op { kind: Kind::Builtin { builtin, arguments: ops.into() }, at };
        self.refuse_failing(&op)?;
        self.refuse_failing_default(builtin, arguments, &op)?;
        self.refuse_swapped(builtin, arguments, &op)?;
        self.warn_of_pattern_classes(at, builtin, arguments);
        self.read_constants(Typed { op, known })
    }

    /// An argument of a builtin as it takes one: what may be missing is nothing to a function of lists, and refused by others.
    fn prepared(
        &self,
        builtin: &'static Builtin,
        kinds: &[Type],
        arguments: &[Id],
        index: usize,
        mut typed: Typed<'s>,
    ) -> Result<Typed<'s>, Error> {
        let id = arguments[index];
        if self.strict {
            return Ok(typed);
        }
        if typed.known.has_nil && builtin.needs_every_element() {
            let mut shown: Vec<String> = arguments.iter().map(|argument| self.shown(*argument)).collect();
            let list = std::mem::replace(&mut shown[index], format!("filter({}, # != nil)", self.shown(id)));
            let message = format!(
                "elements of `{list}` may be missing: write `{}({})` to leave those out, or `?? …` where they are read",
                builtin.name,
                shown.join(", ")
            );
            return Err(self.error(typed.op.at, message));
        }
        if typed.known.has_quantities() && builtin.compares() {
            typed = self.as_quantity(id, typed)?;
        }
        if !typed.known.may_be_nil {
            return Ok(typed);
        }
        let at = typed.op.at;
        match builtin.takes_nil_for(index, kinds[index]) {
            Some(missing) => {
                let op = Op { kind: Kind::OrEmpty { operand: typed.op.into(), missing }, at };
                Ok(Typed { op, known: Known { may_be_nil: false, ..typed.known } })
            }
            None if !builtin.takes_nil(index) => {
                let shown: Vec<String> = arguments.iter().map(|argument| self.shown(*argument)).collect();
                let whole = |replaced: &str| {
                    let mut shown = shown.clone();
                    replaced.clone_into(&mut shown[index]);
                    format!("{}({})", builtin.name, shown.join(", "))
                };
                if builtin.name == "semver" {
                    let text = self.shown(id);
                    let message = format!(
                        "`{text}` may be missing, and may be no version: write `isSemver({text}) && …` to leave out what is none"
                    );
                    return Err(self.error(at, message));
                }
                match builtin.readable().filter(|_| typed.known.may_be(Type::TEXT)) {
                    Some(readable) => Err(self.missing(id, &typed, readable, whole)),
                    None => self.require(id, &typed, builtin.group.nothing(), whole).map(|()| typed),
                }
            }
            None => Ok(typed),
        }
    }

    pub(super) fn call(&mut self, id: Id, callee: Id, arguments: &'s [Argument<'s>]) -> Result<Typed<'s>, Error> {
        let (tree, at) = (self.tree, self.at(id));
        match tree.kind(callee) {
            Syntax::Identifier(name) => {
                let schema = self.schema;
                let is_variable = self.variable(name).is_some();
                match schema.function(name) {
                    Some(function) if !is_variable => {
                        self.host_call(at, function, Known::shaped(&function.result, None), Route::default(), arguments)
                    }
                    None if !self.strict
                        && !is_variable
                        && let Some(builtin) = builtins::find_ours(name) =>
                    {
                        let arguments = self.unnamed(arguments)?;
                        self.plain_builtin(at, builtin, &arguments)
                    }
                    _ if self.strict => self.uncallable(at, callee, arguments),
                    _ => Err(self
                        .habitual_call(id, name)
                        .unwrap_or_else(|| self.unknown_function(id, name, is_variable))),
                }
            }
            Syntax::Member { base, property, optional, .. } => {
                if let Some(through) = self.through(callee) {
                    return self.call_through(at, through, arguments);
                }
                match tree.kind(*property) {
                    Syntax::Text(name) => self.method(id, *base, name, *optional, arguments),
                    _ => self.uncallable(at, callee, arguments),
                }
            }
            _ => self.uncallable(at, callee, arguments),
        }
    }

    /// Go finds out that something is no function only when it calls it.
    fn uncallable(&mut self, at: u32, callee: Id, arguments: &'s [Argument<'s>]) -> Result<Typed<'s>, Error> {
        if !self.strict {
            return Err(self.error(at, "only functions can be called"));
        }
        let callee = self.value(callee)?;
        if !callee.known.is_unknown() {
            return Err(self.error(at, format!("a {} cannot be called", callee.known.kind)));
        }
        let arguments = self.below(false, |compiler| compiler.plain_arguments(arguments))?;
        let arguments = arguments.into_iter().map(|argument| argument.op).collect();
        let kind = Kind::Uncallable { callee: callee.op.into(), arguments };
        Ok(Typed { op: Op { kind, at }, known: Known::unknown() })
    }

    fn unknown_function(&self, id: Id, name: &str, is_variable: bool) -> Error {
        let at = self.at(id);
        if is_variable || self.schema.root(name).is_some() {
            return self.error(at, format!("`{name}` is a value, not a function"));
        }
        if let Some(instead) = habits::absent(name) {
            return self.error(at, format!("unknown function `{name}`: {instead}"));
        }
        // What the schema says of a function is what it is called there.
        if let Some(hint) = self.schema.hint(&format!("{name}()")) {
            let call = self.shown(id);
            let ours = call.replacen(name, &hint.instead, 1);
            return self.error(at, format!("unknown function `{name}`: write `{ours}`"));
        }
        let mut known: Vec<&str> = self.schema.function_names().collect();
        for name in builtins::names().chain(builtins::our_names()) {
            known.push(name);
        }
        let hint = suggest::hint(name, known.into_iter());
        self.error(at, format!("unknown function `{name}`{hint}"))
    }

    /// A method of a time, a duration or a timezone.
    fn method(
        &mut self,
        id: Id,
        base: Id,
        name: &str,
        optional: bool,
        arguments: &'s [Argument<'s>],
    ) -> Result<Typed<'s>, Error> {
        let (at, base_id) = (self.at(id), base);
        if let Some(error) = self.habitual_namespace(id, base, name).or_else(|| self.habitual_chain(id, base, name)) {
            return Err(error);
        }
        let base = self.value(base)?;
        self.refuse_hidden(base_id, &base)?;
        let kind = base.known.kind;
        if let Some(error) = self.habitual_method(id, &base.known, name, arguments.len()) {
            return Err(error);
        }
        let has_methods = [Type::TIME, Type::DURATION, Type::ZONE].contains(&kind);
        if !(has_methods || kind.is_unknown() || kind.is_map() && self.strict) {
            return Err(self.error(at, format!("a {kind} has no method `{name}`{}", part_of_version(kind, name))));
        }
        let method = builtins::signature(kind, name);
        // A group is known to be an array, which cannot be called.
        if (has_methods && method.is_none() || kind == Type::GROUPS) && self.unchecked == 0 {
            return Err(self.error(at, format!("a {kind} has no method `{name}`")));
        }
        self.require(base_id, &base, "…", |base| format!("({base}).{name}()"))?;
        let typed = self.below(has_methods, |compiler| compiler.plain_arguments(arguments))?;
        for (argument, typed) in arguments.iter().zip(&typed) {
            self.require(argument.value, typed, "…", |argument| format!("….{name}({argument})"))?;
        }
        if let Some(method) = method.filter(|_| self.unchecked == 0) {
            let kinds: Vec<Type> = typed.iter().map(|argument| argument.known.kind).collect();
            if let Err(refusal) = method.check(&kinds) {
                let argument = refusal.argument.and_then(|argument| arguments.get(argument));
                let at = argument.map_or(at, |argument| self.at(argument.value));
                return Err(self.error(at, refusal.message));
            }
        }
        let arguments = typed.into_iter().map(|argument| argument.op).collect();
        let kind = Kind::Method { base: base.op.into(), name: name.into(), arguments, optional };
        Ok(Typed { op: Op { kind, at }, known: Known::of(method.map_or(Type::UNKNOWN, |method| method.result)) })
    }

    /// Arguments of a function that knows none of them by a name.
    pub(super) fn unnamed(&self, arguments: &'s [Argument<'s>]) -> Result<Vec<Id>, Error> {
        match arguments.iter().find_map(|argument| argument.name) {
            Some((name, at)) => {
                Err(self.error(at, format!("this takes no argument called `{name}`: leave the name out")))
            }
            None => Ok(arguments.iter().map(|argument| argument.value).collect()),
        }
    }

    fn plain_arguments(&mut self, arguments: &'s [Argument<'s>]) -> Result<Vec<Typed<'s>>, Error> {
        self.unnamed(arguments)?.into_iter().map(|argument| self.value(argument)).collect()
    }

    /// A call of a function of the host, with what is known of its result.
    pub(super) fn host_call(
        &mut self,
        at: u32,
        function: &'s Function,
        known: Known<'s>,
        route: Route,
        arguments: &'s [Argument<'s>],
    ) -> Result<Typed<'s>, Error> {
        let mut given: Vec<Option<(Op, ArgumentShape)>> = function.parameters.iter().map(|_| None).collect();
        let mut doubtful: Vec<(usize, usize)> = Vec::new();
        for (position, argument) in arguments.iter().enumerate() {
            let index = self.parameter(function, position, argument)?;
            let Some(parameter) = function.parameters.get(index) else {
                let (name, takes) = (&function.name, function.parameters.len());
                return Err(self.error(self.at(argument.value), format!("`{name}` takes {takes} arguments")));
            };
            if given[index].is_some() {
                let message = format!("`{}` is given twice", parameter.name);
                return Err(self.error(self.at(argument.value), message));
            }
            let (op, shape, may_be_nil) = self.argument(function, parameter, argument.value)?;
            given[index] = Some((op, shape));
            doubtful.extend(may_be_nil.then_some((position, index)));
        }
        let missing =
            function.parameters.iter().zip(&given).find(|(parameter, given)| parameter.required && given.is_none());
        if let Some((parameter, _)) = missing {
            return Err(self.error(at, format!("`{}` needs `{}`: {}", function.name, parameter.name, usage(function))));
        }
        let site = self.calls.len() as u32;
        let place = self.error(at, "");
        let (id, name) = (function.id, function.name.clone());
        let Route { root, names, among } = route;
        self.calls.push(CallSite { function: id, name, names, among, root, line: place.line, column: place.column });
        let absent = || (Op { kind: Kind::Constant(Constant::Nil), at }, ArgumentShape::Missing);
        let (ops, shapes): (Vec<Op>, Vec<ArgumentShape>) =
            given.into_iter().map(|given| given.unwrap_or_else(absent)).unzip();
        self.facts.calls.push(shapes);
        self.note_unsure(site as usize, arguments, &doubtful);
        self.facts.doubtful.push(doubtful.into_iter().map(|(_, index)| index).collect());
        let known = Known { may_be_nil: known.may_be_nil && !function.always, ..known };
        Ok(Typed { op: Op { kind: Kind::Call { site, arguments: ops.into() }, at }, known })
    }

    /// Which parameter an argument is for.
    fn parameter(&self, function: &Function, position: usize, argument: &Argument<'s>) -> Result<usize, Error> {
        let Some((name, at)) = argument.name else { return Ok(position) };
        function.parameters.iter().position(|parameter| parameter.name == name).ok_or_else(|| {
            let hint = suggest::hint(name, function.parameters.iter().map(|parameter| parameter.name.as_str()));
            self.error(at, format!("`{}` has no parameter `{name}`{hint}", function.name))
        })
    }

    fn argument(
        &mut self,
        function: &Function,
        parameter: &'s Parameter,
        id: Id,
    ) -> Result<(Op, ArgumentShape, bool), Error> {
        let at = self.at(id);
        let typed = self.node(id)?;
        self.refuse_hidden(id, &typed)?;
        let wanted = Known::shaped(&parameter.shape, None).kind;
        let kind = typed.known.kind;
        // As in Go, nil is a map of nothing.
        let is_map = kind.is_map() || kind.is_nil();
        let is_told = parameter.takes_text && matches!(typed.op.kind, Kind::Constant(Constant::Text(_)));
        if !(kind.is_unknown() || wanted.is_unknown() || kind == wanted || is_map && wanted.is_map() || is_told) {
            let hint = self.hint_of_map(wanted, id).or_else(|| self.argument_meant(function, parameter, id, kind));
            let hint = hint.filter(|_| !self.strict).unwrap_or_default();
            let message =
                format!("`{}` of `{}` must be {wanted}, and this is {kind}{hint}", parameter.name, function.name);
            return Err(self.error(at, message));
        }
        self.require_argument(function, parameter, id, &typed)?;
        self.require_fields(function, parameter, id, &typed.known)?;
        let shape = match (&typed.op.kind, typed.known.origin) {
            (Kind::Constant(Constant::Text(text)), _) => ArgumentShape::Text(text.to_string()),
            (Kind::Constant(_), _) => ArgumentShape::Constant,
            (Kind::Map(_), _) => ArgumentShape::Map,
            (_, Some(origin)) => {
                self.facts.read(origin.clone());
                ArgumentShape::Path(origin)
            }
            _ => ArgumentShape::Dynamic,
        };
        Ok((typed.op, shape, typed.known.may_be_nil))
    }

    /// How a function is called whose argument has fields that it asks for, and does not have them.
    fn argument_meant(&self, function: &Function, parameter: &Parameter, id: Id, kind: Type) -> Option<String> {
        let name = &function.name;
        let meant = match kind.is_array() {
            true => format!(": write `any({}, ….{name}(…, #) …)` to ask for each", self.shown(id)),
            false => format!(": {}", usage(function)),
        };
        (!parameter.fields.is_empty()).then_some(meant)
    }

    /// Refuses an argument that can never have what the host asks of it: whatever it is, nothing would come of it.
    fn require_fields(
        &self,
        function: &Function,
        parameter: &Parameter,
        id: Id,
        known: &Known<'s>,
    ) -> Result<(), Error> {
        let has = |form: &Form<'s>, field: &str| match form {
            Form::Record(entries) => entries.iter().any(|entry| entry.key == field),
            form => !matches!(form.member(self.schema, field), Member::None),
        };
        let forms = known.form.alternatives();
        let is_missing = |field: &&&str| !forms.iter().any(|form| has(form, field));
        let Some(field) = parameter.fields.iter().find(is_missing).filter(|_| !self.strict) else { return Ok(()) };
        let (text, name) = (self.shown(id), &function.name);
        let hint = match forms {
            [Form::Record(_)] => format!(": write `{{{field}: …}}`"),
            // What has nothing else is of one kind, which its field is called by.
            _ if forms.iter().any(|form| has(form, "name")) => {
                let of = if text == "#" { "" } else { &*text };
                format!(": write `cluster.NAME.byName(…, {of}.name)`")
            }
            _ => String::new(),
        };
        let message = format!("`{text}` has no `{field}`, without which `{name}` cannot know what is meant{hint}");
        Err(self.error(self.at(id), message))
    }

    /// Refuses an argument that may be missing, where the host can do nothing with nil.
    fn require_argument(
        &self,
        function: &Function,
        parameter: &Parameter,
        id: Id,
        typed: &Typed<'s>,
    ) -> Result<(), Error> {
        let Nil::Refused(instead) = parameter.nil else { return Ok(()) };
        if !self.strict && !typed.known.may_be_nil && instead.is_none() {
            return self.refuse_empty_default(&function.name, id);
        }
        if self.strict || !typed.known.may_be_nil {
            return Ok(());
        }
        let before = if function.parameters.len() > 1 { "…, " } else { "" };
        Err(match instead {
            Some(instead) => {
                self.missing(id, typed, instead, |argument| format!("{}({before}{argument})", function.name))
            }
            None => {
                let text = self.shown(id);
                let message = format!("`{text}` may be missing: write `{text} != nil && …` to leave out what has none");
                self.error(typed.op.at, message)
            }
        })
    }
}

impl<'s> Compiler<'s> {
    /// Refuses `x509(x ?? "")`, which fails wherever `x` is missing: the function reads no empty text.
    fn refuse_empty_default(&self, function: &str, id: Id) -> Result<(), Error> {
        let mut node = id;
        let first = loop {
            node = match self.tree.kind(node) {
                Syntax::Binary(Binary::Coalesce, first, second) => match self.tree.kind(*second) {
                    Syntax::Text(text) if text.is_empty() => break *first,
                    _ => return Ok(()),
                },
                Syntax::Chain(inner) => *inner,
                Syntax::Builtin { arguments, .. } if !arguments.is_empty() => arguments[0],
                _ => return Ok(()),
            };
        };
        let text = self.shown(first);
        // Whoever asks for it elsewhere may have seen to it.
        let is_other = |other: &Id| *other != first && self.shown(*other) == text;
        if !matches!(self.tree.kind(first), Syntax::Member { .. }) || self.members().any(|other| is_other(&other)) {
            return Ok(());
        }
        let message = format!(
            "`{function}` fails where `{text}` is missing, because it reads no `\"\"`: write `{text} != nil && …` to leave out what has none"
        );
        Err(self.error(self.at(first), message))
    }
}

/// How to ask for a number of a version, or of an amount, which have no fields.
pub(super) fn part_of_version(kind: Type, name: &str) -> &'static str {
    match (kind, name) {
        (Type::VERSION, "major" | "minor" | "patch") => ": write `… in \"1.x\"`, or `… < \"2\"`",
        (Type::QUANTITY, _) => ": it is compared as it is, `… > \"1Gi\"`",
        _ => "",
    }
}

/// How a function is called.
fn usage(function: &Function) -> String {
    let parameters: Vec<&str> = function.parameters.iter().map(|parameter| parameter.name.as_str()).collect();
    format!("write `{}({})`", function.name, parameters.join(", "))
}
