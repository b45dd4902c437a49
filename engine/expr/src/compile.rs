//! Turns a parsed expression into a program: finds what each name means, checks that types can fit, notes what is read, and
//! looks up everything that can be looked up before there is a value.
//!
//! Nodes are visited in the order in which Go's checker visits them, so that of several mistakes the same one is shown.

mod absences;
mod advice;
mod booleans;
mod calls;
mod constants;
mod contradictions;
mod decided;
mod defaults;
mod divisors;
mod either;
mod elsewhere;
mod empties;
mod ends;
mod everything;
mod fallbacks;
mod filled;
mod form;
mod guards;
mod hidden;
mod hints;
mod known;
mod lacking;
mod members;
mod nil;
mod operators;
mod partial;
mod patterns;
mod ports;
mod predicates;
mod readings;
mod remainder;
mod reversed;
mod selectors;
mod sorts;
mod spelled;
#[cfg(test)]
mod tests;
mod through;
mod unfound;
mod vacuous;
mod wildcards;
mod words;

use crate::{
    ast::{Id, Kind as Syntax, Node, Tree},
    error::{Error, Phase},
    facts::{Compared, Facts, Read},
    limits::{MAX_NESTING, MAX_SOURCE},
    parse::{self, parse},
    print::written,
    program::{CallSite, Constant, Kind, Op, Program},
    schema::{Filled, FilledList, Schema, Shape, Siblings, Slot},
    types::Type,
    warning::Warning,
};

pub use self::advice::map_meant;
use self::{
    fallbacks::Replaceable,
    form::{Entry, Form},
    guards::{Asked, Way},
    known::Known,
    remainder::Remaining,
    unfound::Unsure,
};

/// How an expression is read.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Mode {
    /// For rules: nil has every field and is false and empty, and every name must be known.
    Rules,
    /// Exactly expr-lang, as it is without knowing its environment: an unknown name is nil.
    Strict,
}

/// Operations in operations. Parentheses make one level of nesting and can make several operations.
const MAX_HEIGHT: usize = 3 * MAX_NESTING;

/// Compiles an expression.
pub fn compile(source: &str, schema: &Schema, mode: Mode) -> Result<Program, Error> {
    compile_as(source, schema, mode, false)
}

/// Compiles an expression whose value must be true or false, as that of a rule is. Fails if it can never be.
pub fn compile_condition(source: &str, schema: &Schema, mode: Mode) -> Result<Program, Error> {
    compile_as(source, schema, mode, true)
}

/// Compiles an expression as [`compile_condition`] does, and others that stand behind the variables which it declares first. What uses none
/// of them, calls the host or cannot be compiled is left to the caller: for that the declarations are there as text.
pub fn compile_condition_and(
    source: &str,
    behind: &[&str],
    schema: &Schema,
    mode: Mode,
) -> Result<(Program, Vec<Option<Program>>), Error> {
    let mut tree = parse(source)?;
    let condition = compile_tree(source, &tree, schema, mode, true)?;
    let mut declared = Vec::new();
    while let Syntax::Let { name, value, body } = tree.kind(tree.root) {
        declared.push(Declared { name, value: *value, at: tree.node(tree.root).at });
        tree.root = *body;
    }
    // What is declared was read first, and nothing else of the condition matters to what stands behind it.
    tree.nodes.truncate(declared.last().map_or(0, |declared| declared.value.0 as usize + 1));
    let behind = behind.iter().map(|text| compile_behind(source, &mut tree, &declared, text, schema, mode)).collect();
    Ok((condition, behind))
}

/// A variable that a condition declares before anything else.
struct Declared<'s> {
    name: &'s str,
    value: Id,
    at: u32,
}

/// Above this number of nodes declarations are long, and take as long as they do.
const MAX_SHARED: usize = 1000;

fn compile_behind<'s>(
    source: &str,
    tree: &mut Tree<'s>,
    declared: &[Declared<'s>],
    text: &'s str,
    schema: &Schema,
    mode: Mode,
) -> Option<Program> {
    let (count, length) = (tree.nodes.len(), source.len() + 1 + text.len());
    let uses_one = declared.iter().any(|declared| text.contains(declared.name));
    if !uses_one || count > MAX_SHARED || length > MAX_SOURCE / 2 {
        return None;
    }
    let body = parse::append(tree, text, source.len() as u32 + 1, declared.len());
    let program = body.and_then(|body| {
        tree.root = declared.iter().rev().fold(body, |body, Declared { name, value, at }| {
            tree.nodes.push(Node { kind: Syntax::Let { name, value: *value, body }, at: *at });
            Id(tree.nodes.len() as u32 - 1)
        });
        compile_tree(&format!("{source}\n{text}"), tree, schema, mode, false).ok()
    });
    tree.nodes.truncate(count);
    let program = program.filter(|program| program.calls.is_empty());
    program.map(|program| Program { compared: Vec::new(), ..program })
}

fn compile_as(source: &str, schema: &Schema, mode: Mode, is_condition: bool) -> Result<Program, Error> {
    compile_tree(source, &parse(source)?, schema, mode, is_condition)
}

fn compile_tree(
    source: &str,
    tree: &Tree<'_>,
    schema: &Schema,
    mode: Mode,
    is_condition: bool,
) -> Result<Program, Error> {
    let mut compiler = Compiler {
        source,
        tree,
        schema,
        strict: mode == Mode::Strict,
        variables: Vec::new(),
        declared: Vec::new(),
        fixed: Vec::new(),
        roots: Vec::new(),
        scopes: Vec::new(),
        present: Vec::new(),
        asked: Vec::new(),
        empty_tests: Vec::new(),
        negated: Vec::new(),
        unsure: Vec::new(),
        dividing: Vec::new(),
        compared: Vec::new(),
        replaceable: Vec::new(),
        filled: Vec::new(),
        open_lists: Vec::new(),
        of_all: Vec::new(),
        remaining: Vec::new(),
        indexed: Vec::new(),
        beside: Vec::new(),
        defaulted: Vec::new(),
        facts: Facts::default(),
        calls: Vec::new(),
        warnings: Vec::new(),
        height: 0,
        unchecked: 0,
    };
    let typed = compiler.value(tree.root)?;
    if is_condition {
        compiler.require_condition(tree.root, &typed)?;
    }
    compiler.warn_of_truth(tree.root, &typed, true);
    if compiler.facts.reads.is_empty() && compiler.calls.is_empty() && compiler.facts.now.is_none() && !compiler.strict
    {
        compiler.warn(tree.node(tree.root).at, "this reads nothing, so its answer is always the same");
    }
    compiler.facts.absences = compiler.absences();
    compiler.facts.unfound = compiler.unfound();
    compiler.facts.substituted = compiler.substituted();
    compiler.warn_of_filled();
    compiler.warn_of_open_lists();
    compiler.warn_of_remainders();
    compiler.warn_of_vacuous();
    if is_condition {
        compiler.warn_of_indices();
        compiler.warn_of_siblings();
    }
    compiler.warn_of_lacking();
    let Compiler { strict, declared, roots, compared, mut facts, calls, warnings, .. } = compiler;
    facts.finish();
    Ok(Program {
        source: source.into(),
        root: typed.op,
        variables: declared.into(),
        roots: roots.into(),
        calls: calls.into(),
        strict,
        facts,
        compared,
        warnings,
        declarations: if is_condition { declarations(tree).into() } else { Box::default() },
    })
}

/// The declarations that an expression begins with, in one line.
fn declarations(tree: &Tree<'_>) -> String {
    let mut text = String::new();
    let mut node = tree.root;
    while let Syntax::Let { name, value, body } = tree.kind(node) {
        text.push_str(&format!("let {name} = {}; ", written(tree, *value)));
        node = *body;
    }
    text
}

/// An operation, and what is known of its value.
struct Typed<'s> {
    op: Op,
    known: Known<'s>,
}

struct Compiler<'s> {
    source: &'s str,
    tree: &'s Tree<'s>,
    schema: &'s Schema,
    strict: bool,
    /// What `let` declared around the node that is visited.
    variables: Vec<Variable<'s>>,
    /// The variables that there are in all, by their numbers.
    declared: Vec<Box<str>>,
    /// Which of them depend on nothing that is read.
    fixed: Vec<bool>,
    /// The roots that were named.
    roots: Vec<(Slot, Box<str>)>,
    /// The predicates around the node that is visited, the innermost last.
    scopes: Vec<Scope<'s>>,
    /// What conditions around the node that is visited have found to be there.
    present: Vec<Way<'s>>,
    /// What is asked whether it is there, somewhere in the conditions that are joined with the node that is visited.
    asked: Vec<Asked<'s>>,
    /// The lists and maps that were asked whether they are empty.
    empty_tests: Vec<Id>,
    /// The operators around the node that is visited which are written with a `not` before them: `x not in y`.
    negated: Vec<u32>,
    /// The arguments of calls of the host that may be missing, and that nobody asks for.
    unsure: Vec<Unsure>,
    /// What divisors around the node that is visited are read from.
    dividing: Vec<Id>,
    /// What texts with computed fields, and those fields, are compared with, if the schema wants that.
    compared: Vec<Compared>,
    /// The fields that something else may count for.
    replaceable: Vec<Replaceable>,
    /// The lists that Kubernetes fills in where they are empty.
    filled: Vec<(Id, &'static FilledList)>,
    /// The lists that stand for everything where they are empty.
    open_lists: Vec<(Id, &'static str)>,
    /// The lists of whose elements something is asked of all, and which may be empty.
    of_all: Vec<Id>,
    /// The lists beside which there is something for the rest, and fields of their elements.
    remaining: Vec<Remaining>,
    /// Elements of lists of objects that are chosen by their places, and the lists.
    indexed: Vec<(Id, Id)>,
    /// The lists beside which there are others of the same.
    beside: Vec<(Id, &'static Siblings)>,
    /// The fields that read as something where they are missing.
    defaulted: Vec<(Id, Filled)>,
    facts: Facts,
    calls: Vec<CallSite>,
    warnings: Vec<Warning>,
    height: usize,
    /// Above zero where Go's checker does not look: below what it knows nothing about.
    unchecked: usize,
}

/// What `let` declared.
struct Variable<'s> {
    name: &'s str,
    number: u16,
    known: Known<'s>,
    value: Id,
    /// How many predicates are around the declaration.
    level: usize,
}

/// What a predicate's body may name.
struct Scope<'s> {
    item: Known<'s>,
    /// Whether the elements come from a call of the host.
    looked_up: bool,
    /// The list that they are of.
    collection: Id,
    /// What is asked of each of them.
    body: Option<Id>,
    /// Whether the elements are texts of the expression, some of which have a `*` or a `?`.
    has_patterns: bool,
    /// Whether the elements are texts of the expression, and nothing else.
    has_texts: bool,
    has_index: bool,
    accumulator: Option<Known<'s>>,
    /// Whether the body looks at the element at all.
    uses_item: bool,
    /// Whether the body looks at what came of the elements before.
    uses_accumulator: bool,
}

impl<'s> Compiler<'s> {
    /// Refuses a value that can never be true or false.
    fn require_condition(&self, id: Id, typed: &Typed<'s>) -> Result<(), Error> {
        let known = &typed.known;
        if known.form.may_be_bool() {
            return Ok(());
        }
        self.refuse_hidden(id, typed)?;
        self.refuse_either_truth(id, typed, true)?;
        let kind = if known.is_unknown() { "neither".to_owned() } else { known.kind.to_string() };
        // In other languages a default stands behind it.
        let hint = match self.source.contains(" // ") {
            true => Some("; what stands behind `//` is a comment, and a default stands behind `??`".to_owned()),
            false => self.truth_of(id, known.kind, true),
        };
        let hint = hint.filter(|_| !self.strict).unwrap_or_default();
        Err(self.error(self.at(id), format!("a rule must be true or false, and this is {kind}{hint}")))
    }

    /// Compiles a node whose value is used as a whole: what it comes from is read.
    fn value(&mut self, id: Id) -> Result<Typed<'s>, Error> {
        let mut typed = self.node(id)?;
        if let Some(origin) = typed.known.origin.take() {
            self.facts.read(origin);
        }
        Ok(typed)
    }

    /// Compiles a node. What it comes from is read only when somebody uses it.
    fn node(&mut self, id: Id) -> Result<Typed<'s>, Error> {
        self.height += 1;
        if self.height > MAX_HEIGHT {
            return Err(self.error(self.at(id), format!("nested too deeply: at most {MAX_NESTING} levels are allowed")));
        }
        let typed = self.dispatch(id);
        self.height -= 1;
        let mut typed = typed?;
        if self.unchecked == 0 {
            self.settle(id, &mut typed);
            return Ok(typed);
        }
        let Typed { op, known } = typed;
        // The origin is dropped here, so that nobody further up could note that it is read.
        if let Some(origin) = known.origin {
            self.facts.read(origin);
        }
        Ok(Typed { op, known: Known::unknown() })
    }

    /// What is known of a value, with what conditions have found to be there.
    fn settle(&self, id: Id, typed: &mut Typed<'s>) {
        typed.known.may_be_nil = typed.known.may_be_nil && (self.strict || !self.is_present(id));
    }

    /// Compiles something that Go does not check when what it belongs to is unknown.
    fn below<T>(&mut self, known: bool, compile: impl FnOnce(&mut Self) -> Result<T, Error>) -> Result<T, Error> {
        let unchecked = usize::from(self.strict && !known);
        self.unchecked += unchecked;
        let compiled = compile(self);
        self.unchecked -= unchecked;
        compiled
    }

    fn dispatch(&mut self, id: Id) -> Result<Typed<'s>, Error> {
        let tree = self.tree;
        let at = self.at(id);
        match tree.kind(id) {
            Syntax::Nil => Ok(self.constant(at, Constant::Nil, Type::NIL)),
            Syntax::Bool(value) => Ok(self.constant(at, Constant::Bool(*value), Type::BOOL)),
            Syntax::Integer(value) => Ok(self.constant(at, Constant::Int(*value), Type::INT)),
            Syntax::Float(value) => Ok(self.constant(at, Constant::Float(*value), Type::FLOAT)),
            Syntax::Text(text) => Ok(self.constant(at, Constant::Text(text.as_ref().into()), Type::TEXT)),
            Syntax::Bytes(bytes) => Ok(self.constant(at, Constant::Bytes(bytes.as_slice().into()), Type::BYTES)),
            Syntax::Array(elements) => self.array(at, elements),
            Syntax::Map(pairs) => self.map(at, pairs),
            Syntax::Identifier(name) => self.identifier(at, name),
            Syntax::Pointer(name) => self.pointer(at, name),
            Syntax::Unary(operator, operand) => {
                self.refuse_negated_habit(id, *operator, *operand)?;
                self.unary(at, *operator, *operand)
            }
            Syntax::Binary(..) => self.binary(id),
            Syntax::Chain(inner) => self.chain(at, *inner),
            Syntax::Member { .. } => self.member(id),
            Syntax::Slice { base, from, to } => self.slice(at, *base, *from, *to),
            Syntax::Call { callee, arguments } => self.call(id, *callee, arguments),
            Syntax::Builtin { name, arguments } => self.builtin(at, name, arguments),
            // The builtin that it belongs to compiles it.
            Syntax::Predicate(body) => self.value(*body),
            Syntax::Conditional { condition, yes, no, .. } => self.conditional(at, *condition, *yes, *no),
            Syntax::Let { name, value, body } => self.declaration(at, name, *value, *body),
            Syntax::Sequence(nodes) => self.sequence(at, nodes),
        }
    }

    fn constant(&self, at: u32, constant: Constant, kind: Type) -> Typed<'s> {
        Typed { op: Op { kind: Kind::Constant(constant), at }, known: Known::of(kind) }
    }

    fn identifier(&mut self, at: u32, name: &'s str) -> Result<Typed<'s>, Error> {
        if let Some(variable) = self.variable(name) {
            return Ok(Typed { op: Op { kind: Kind::Variable(variable.number), at }, known: variable.known.clone() });
        }
        if name == "$env" {
            if !self.strict {
                return Err(self.error(at, "`$env` cannot be used in rules: name the root that you mean"));
            }
            return Ok(Typed { op: Op { kind: Kind::Environment, at }, known: Known::unknown() });
        }
        let Some(root) = self.schema.root(name) else {
            if self.strict {
                return Ok(Typed { op: Op { kind: Kind::Constant(Constant::Nil), at }, known: Known::unknown() });
            }
            return Err(self.unknown_name(at, name, &[]));
        };
        if let Shape::Calls(calls) = &root.shape {
            return Err(self.restricted(at, name, calls));
        }
        if !self.roots.iter().any(|(slot, _)| *slot == root.slot) {
            self.roots.push((root.slot, name.into()));
        }
        let known = Known::shaped(&root.shape, Some(Read { root: root.slot, path: Vec::new() }));
        let known = Known { may_be_nil: known.may_be_nil && !root.required, ..known };
        Ok(Typed { op: Op { kind: Kind::Root(root.slot), at }, known })
    }

    fn pointer(&mut self, at: u32, name: &str) -> Result<Typed<'s>, Error> {
        let Some(scope) = self.scopes.last_mut() else {
            return Err(self.error(at, "`#` stands for an element, and there is none outside of a predicate"));
        };
        match name {
            "" => {
                scope.uses_item = true;
                let known = scope.item.clone();
                Ok(Typed { op: Op { kind: Kind::Item, at }, known })
            }
            "index" if scope.has_index => Ok(Typed { op: Op { kind: Kind::Index, at }, known: Known::of(Type::INT) }),
            "acc" if let Some(known) = &scope.accumulator => {
                scope.uses_accumulator = true;
                Ok(Typed { op: Op { kind: Kind::Accumulator, at }, known: known.clone() })
            }
            _ => Err(self.error(at, format!("there is no `#{name}` here"))),
        }
    }

    fn array(&mut self, at: u32, elements: &[Id]) -> Result<Typed<'s>, Error> {
        let mut ops = Vec::with_capacity(elements.len());
        let mut kinds = Vec::with_capacity(elements.len());
        let mut forms = Vec::with_capacity(elements.len());
        let mut has_nil = false;
        for element in elements {
            let typed = self.value(*element)?;
            ops.push(typed.op);
            kinds.push(typed.known.kind);
            forms.push(typed.known.form);
            has_nil |= typed.known.may_be_nil;
        }
        let known = self.formed(Known::of(known::array_of(&kinds)), Form::list(Form::any_of(forms)));
        let known = Known { has_nil, ..known };
        Ok(Typed { op: Op { kind: Kind::Array(ops.into()), at }, known })
    }

    fn map(&mut self, at: u32, pairs: &[(Id, Id)]) -> Result<Typed<'s>, Error> {
        let tree = self.tree;
        let mut ops = Vec::with_capacity(pairs.len());
        let mut fields = Vec::with_capacity(pairs.len());
        let mut has_nil = false;
        for (key, value) in pairs {
            let (typed_key, value) = (self.value(*key)?, self.value(*value)?);
            self.require(*key, &typed_key, "\"\"", |key| format!("{{({key}): …}}"))?;
            has_nil |= value.known.may_be_nil;
            ops.push((typed_key.op, value.op));
            let name = if let Syntax::Text(name) = tree.kind(*key) { Some(name.as_ref()) } else { None };
            fields.push((name, value.known.form, value.known.may_be_nil));
        }
        let entry = |(key, form, may_be_nil): &(Option<&'s str>, Form<'s>, bool)| {
            Some(Entry { key: (*key)?, form: form.clone(), may_be_nil: *may_be_nil })
        };
        let form = match fields.iter().map(entry).collect::<Option<Vec<Entry<'s>>>>() {
            Some(entries) => Form::Record(entries.into()),
            None => Form::map(Form::any_of(fields.into_iter().map(|(_, form, _)| form))),
        };
        let known = Known { has_nil, ..self.formed(Known::of(Type::MAP), form) };
        Ok(Typed { op: Op { kind: Kind::Map(ops.into()), at }, known })
    }

    fn conditional(&mut self, at: u32, condition: Id, yes: Id, no: Id) -> Result<Typed<'s>, Error> {
        let (condition_id, condition_at) = (condition, self.at(condition));
        let condition = self.value(condition)?;
        self.refuse_either_truth(condition_id, &condition, true)?;
        self.warn_of_truth(condition_id, &condition, true);
        if !condition.known.may_be(Type::BOOL) {
            let kind = condition.known.kind;
            return Err(self.error(condition_at, format!("a condition must be true or false, and this is {kind}")));
        }
        let yes = self.given(&[(condition_id, true)], |compiler| compiler.value(yes))?;
        let no = self.given(&[(condition_id, false)], |compiler| compiler.value(no))?;
        let known = self.formed(Known::either(&yes.known, &no.known), yes.known.form.clone().or(no.known.form.clone()));
        let known = self.quantity_of_either(known, &yes, &no);
        let kind = Kind::Conditional { condition: condition.op.into(), yes: yes.op.into(), no: no.op.into() };
        Ok(Typed { op: Op { kind, at }, known })
    }

    fn declaration(&mut self, at: u32, name: &'s str, value: Id, body: Id) -> Result<Typed<'s>, Error> {
        let taken = if !self.strict && self.schema.root(name).is_some() {
            Some("a name that rules can read")
        } else if crate::builtins::find(name).is_some() {
            Some("a builtin")
        } else if self.variable(name).is_some() {
            Some("a variable")
        } else {
            None
        };
        if let Some(taken) = taken {
            return Err(self.error(at, format!("`{name}` is {taken} already: choose another name")));
        }
        let typed = self.node(value)?;
        let Typed { op, known } = self.declared_default(name, value, typed);
        let number = self.declared.len() as u16;
        self.declared.push(name.into());
        self.note_fixed(&op);
        self.variables.push(Variable { name, number, known, value, level: self.scopes.len() });
        let body = self.node(body);
        self.variables.pop();
        let body = body?;
        let kind = Kind::Let { variable: number, value: op.into(), body: body.op.into() };
        Ok(Typed { op: Op { kind, at }, known: body.known })
    }

    fn sequence(&mut self, at: u32, nodes: &[Id]) -> Result<Typed<'s>, Error> {
        let mut ops = Vec::with_capacity(nodes.len());
        let mut known = Known::unknown();
        for node in nodes {
            let typed = self.value(*node)?;
            ops.push(typed.op);
            known = typed.known;
        }
        Ok(Typed { op: Op { kind: Kind::Sequence(ops.into()), at }, known })
    }

    /// What is known of a value, with its fields. Strict mode knows what Go knows, and no more.
    fn formed(&self, known: Known<'s>, form: Form<'s>) -> Known<'s> {
        if self.strict { known } else { known.formed(form) }
    }

    fn variable(&self, name: &str) -> Option<&Variable<'s>> {
        self.variables.iter().rev().find(|variable| variable.name == name)
    }

    fn at(&self, id: Id) -> u32 {
        self.tree.node(id).at
    }

    fn error(&self, at: u32, message: impl Into<String>) -> Error {
        Error::at(Phase::Compile, self.source, at, message)
    }

    fn warn(&mut self, at: u32, message: impl Into<String>) {
        let Error { message, line, column, .. } = self.error(at, message);
        let warning = Warning { message, line, column };
        // A part of `a < b < c` is compiled twice.
        if !self.warnings.contains(&warning) {
            self.warnings.push(warning);
        }
    }
}
