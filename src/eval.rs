//! `portal eval`: one expression, or many, on objects at hand.

use std::collections::BTreeMap;
use std::io::{BufRead as _, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use clap::Args;
use portal_core::context::functions;
use portal_document::{Document, Key, Node};
use portal_expr::{
    Arena, ComputedId, Error, Failure, Host, Limits, Machine, Mode, Program, Schema, Shape, Slot, Value,
};
use serde_json::{Value as Json, json};

use crate::clock;
use crate::output::{self, Unwritten};

/// Evaluate an expression on an object, and print its value
///
/// A mistake is shown with its line, its column and a caret. The object is called `object`
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  portal eval '1 + 1'\n  portal eval 'object.spec.replicas > 3' -f deployment.yaml\n  \
                        portal eval 'any(pod.spec.containers, .image contains \"latest\")' --root pod=pod.yaml"
)]
pub(crate) struct Arguments {
    /// The expression
    #[arg(required_unless_present = "lines")]
    expression: Option<String>,
    /// The object, as YAML or JSON
    #[arg(short, long)]
    file: Option<PathBuf>,
    /// A further object, by the name that the expression calls it
    #[arg(long, value_name = "NAME=FILE", value_parser = parse_root)]
    root: Vec<(String, PathBuf)>,
    /// A JSON or YAML object whose fields are the names that the expression may use. With --lines it may be `-`: then each
    /// line is JSON, an expression with its own object: {"expr": "a + 1", "env": {"a": 1}}
    #[arg(long, value_name = "FILE")]
    env: Option<PathBuf>,
    /// Exactly expr-lang: nil has no fields, and an unknown name is nil
    #[arg(long)]
    strict: bool,
    /// Read one expression per line from standard input, and write one JSON object per line
    #[arg(long, conflicts_with_all = ["expression", "file"])]
    lines: bool,
}

/// Fields of an object that people name by themselves.
const OF_OBJECT: [&str; 4] = ["metadata", "spec", "status", "data"];

/// Named documents, as the host of an expression.
struct Roots {
    schema: Schema,
    documents: Vec<(Slot, Document)>,
    /// Where `--env` gave the names: all of them in one object, for `$env`.
    environment: Option<Environment>,
    fields: BTreeMap<Slot, Key>,
}

/// The same for one expression, whose calls it knows.
struct Answering<'a> {
    roots: &'a Roots,
    program: &'a Program,
}

/// An object whose fields are names.
struct Environment {
    document: Document,
    /// The field of the document that is the object. Without one it is the whole document.
    field: Option<Key>,
}

/// The deepest value that is printed, as the language's own functions have it: each level takes stack.
const MAX_DEPTH: usize = 256;

/// The value of `--env` that says that each line has its own environment.
const STANDARD_INPUT: &str = "-";

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let mode = if arguments.strict { Mode::Strict } else { Mode::Rules };
    if arguments.env.as_deref() == Some(Path::new(STANDARD_INPUT)) {
        if !arguments.lines || !arguments.root.is_empty() {
            bail!("`--env {STANDARD_INPUT}` goes with --lines and without --root: each line has its own names");
        }
        return run_lines(|line| {
            let (source, roots) = Roots::of_line(line, mode)?;
            Ok(answer(&source, &roots, mode))
        });
    }
    let roots = Roots::read(arguments, mode)?;
    if arguments.lines {
        return run_lines(|line| Ok(answer(line, &roots, mode)));
    }
    let source = arguments.expression.as_deref().context("an expression is needed")?;
    let program = match portal_expr::compile(source, &roots.schema, mode) {
        Ok(program) => program,
        Err(error) => bail!("{error}"),
    };
    // Whoever tries out an expression of constants knows that it is one.
    let warnings = if roots.is_empty() { &[] } else { program.warnings() };
    for warning in warnings {
        eprintln!("warning: {}:{}: {}", warning.line, warning.column, warning.message);
    }
    let (host, arena) = (Answering { roots: &roots, program: &program }, Arena::new());
    match evaluate(&host, &arena) {
        Ok(value) if is_deeper(value, MAX_DEPTH) => {
            bail!("the value is more than {MAX_DEPTH} levels deep: print a part of it")
        }
        Ok(value) => output::print(text(&plain(value))? + "\n")?,
        Err(error) => bail!("{error}"),
    }
    Ok(())
}

fn evaluate<'a>(host: &'a Answering<'a>, arena: &'a Arena) -> Result<Value<'a>, Error> {
    host.program.evaluate(host, arena, &Limits::default(), clock::now())
}

/// On one line if it fits there.
fn text(value: &Json) -> anyhow::Result<String> {
    let line = serde_json::to_string(value)?;
    Ok(if line.len() <= 100 { line } else { serde_json::to_string_pretty(value)? })
}

/// One line in, one line out, for comparisons with other implementations.
fn run_lines(answer: impl Fn(&str) -> anyhow::Result<Json>) -> anyhow::Result<()> {
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    for (index, line) in std::io::stdin().lock().lines().enumerate() {
        let line = line.context("standard input is not text")?;
        if !line.is_empty() {
            let answer = answer(&line).with_context(|| format!("line {} cannot be read", index + 1))?;
            writeln!(out, "{answer}").map_err(Unwritten::from)?;
        }
    }
    Ok(out.flush().map_err(Unwritten::from)?)
}

fn answer(source: &str, roots: &Roots, mode: Mode) -> Json {
    let failed = |mut answer: Json, error: &Error| {
        answer["phase"] = json!(match error.phase {
            portal_expr::Phase::Parse => "parse",
            portal_expr::Phase::Compile => "compile",
            portal_expr::Phase::Run => "run",
        });
        answer["err"] = json!(error.message);
        answer["line"] = json!(error.line);
        answer["col"] = json!(error.column);
        answer
    };
    let mut answer = json!({"expr": source});
    match portal_expr::canonical(source) {
        Ok(canonical) => answer["ast"] = json!(canonical),
        Err(error) => return failed(answer, &error),
    }
    let program = match portal_expr::compile(source, &roots.schema, mode) {
        Ok(program) => program,
        Err(error) => return failed(answer, &error),
    };
    let (host, arena) = (Answering { roots, program: &program }, Arena::new());
    match evaluate(&host, &arena) {
        Ok(value) if is_deeper(value, MAX_DEPTH) => answer["err"] = json!("the value is too deep to be written"),
        Ok(value) => answer["val"] = typed(value),
        Err(error) => return failed(answer, &error),
    }
    answer
}

impl Roots {
    /// Nothing but the functions that rules have, which expr-lang itself does not.
    fn new(mode: Mode) -> Self {
        let mut schema = Schema::new();
        if mode == Mode::Rules {
            functions::add_functions(&mut schema);
        }
        Self { schema, documents: Vec::new(), environment: None, fields: BTreeMap::new() }
    }

    fn of_environment(environment: Environment, mode: Mode) -> anyhow::Result<Self> {
        let mut roots = Self::new(mode);
        let Some(object) = environment.node().and_then(Node::as_object) else {
            bail!("it holds no object: its fields would be the names to use");
        };
        for (name, _) in object.iter() {
            let slot = roots.schema.add_root(name.to_owned(), Shape::Any);
            roots.fields.insert(slot, Key::new(name));
        }
        roots.environment = Some(environment);
        Ok(roots)
    }

    /// An expression and what it may use, from a line of JSON.
    fn of_line(line: &str, mode: Mode) -> anyhow::Result<(String, Self)> {
        let document = Document::parse(line.as_bytes(), &portal_document::Options::default())?;
        let source = document.root().get_str("expr").and_then(Node::as_str);
        let source = source.context("its field `expr` is no text")?.to_owned();
        let environment = Environment { document, field: Some(Key::new("env")) };
        Ok((source, Self::of_environment(environment, mode).context("its field `env` cannot be used")?))
    }

    fn read(arguments: &Arguments, mode: Mode) -> anyhow::Result<Self> {
        let mut roots = match &arguments.env {
            Some(path) => Self::of_environment(Environment { document: read_document(path)?, field: None }, mode)
                .with_context(|| format!("{} cannot be used", path.display()))?,
            None => Self::new(mode),
        };
        let file = arguments.file.iter().map(|path| ("object".to_owned(), path.clone()));
        for (name, path) in file.chain(arguments.root.iter().cloned()) {
            let document = read_document(&path)?;
            let slot = roots.schema.add_root(name, Shape::Any);
            roots.documents.push((slot, document));
        }
        // As rules have them.
        for name in OF_OBJECT.into_iter().filter(|_| arguments.file.is_some()) {
            roots.schema.add_hint(name, format!("object.{name}"), "");
        }
        Ok(roots)
    }

    fn is_empty(&self) -> bool {
        self.documents.is_empty() && self.fields.is_empty()
    }
}

impl Roots {
    fn root(&self, slot: Slot) -> Value<'_> {
        if let Some((_, document)) = self.documents.iter().find(|(known, _)| *known == slot) {
            return Value::from_node(document.root());
        }
        let field = self.fields.get(&slot).zip(self.environment.as_ref().and_then(Environment::node));
        field.and_then(|(key, environment)| environment.get(key)).map_or(Value::Nil, Value::from_node)
    }
}

impl Host for Answering<'_> {
    fn root(&self, slot: Slot) -> Value<'_> {
        self.roots.root(slot)
    }

    fn computed<'a>(&'a self, part: ComputedId, base: Value<'a>, machine: &Machine<'a>) -> Result<Value<'a>, Failure> {
        match base {
            Value::Text(reference) => functions::image_part(part, reference, machine),
            _ => Ok(Value::Nil),
        }
    }

    fn call<'a>(&'a self, site: usize, arguments: &[Value<'a>], machine: &Machine<'a>) -> Result<Value<'a>, Failure> {
        let Some(call) = self.program.calls().get(site) else {
            return Err(Failure::new("the expression calls what it did not declare"));
        };
        functions::call(call.function, arguments, machine)
    }

    fn environment(&self) -> Value<'_> {
        let environment = self.roots.environment.as_ref().and_then(Environment::node);
        environment.map_or(Value::Nil, Value::from_node)
    }
}

impl Environment {
    fn node(&self) -> Option<Node<'_>> {
        let root = self.document.root();
        self.field.as_ref().map_or(Some(root), |field| root.get(field))
    }
}

fn parse_root(text: &str) -> Result<(String, PathBuf), String> {
    let (name, path) = text.split_once('=').ok_or("write it as NAME=FILE")?;
    Ok((name.to_owned(), PathBuf::from(path)))
}

fn read_document(path: &Path) -> anyhow::Result<Document> {
    let text = std::fs::read_to_string(path).with_context(|| format!("could not read {}", path.display()))?;
    let mut documents = portal_document::from_yaml(&text, &portal_document::Options::default())
        .with_context(|| format!("{} is neither YAML nor JSON", path.display()))?;
    // What stands between two `---` may be nothing.
    documents.retain(|found| !found.document.root().is_null());
    match documents.len() {
        0 => bail!("{} holds no object", path.display()),
        1 => Ok(documents.remove(0).document),
        count => bail!("{} holds {count} objects: leave one", path.display()),
    }
}

/// Whether a value has more levels than so many.
fn is_deeper(value: Value<'_>, levels: usize) -> bool {
    let Some(below) = levels.checked_sub(1) else { return true };
    match (value.elements(), value.entries()) {
        (Some(mut elements), _) => elements.any(|element| is_deeper(element, below)),
        (_, Some(entries)) => entries.into_iter().any(|(_, value)| is_deeper(value, below)),
        _ => false,
    }
}

/// A value as JSON, for people.
fn plain(value: Value<'_>) -> Json {
    match value {
        Value::Nil => Json::Null,
        Value::Bool(value) => json!(value),
        Value::Int(value) => json!(value),
        Value::Float(value) => {
            serde_json::Number::from_f64(value).map_or_else(|| json!(value.to_string()), Json::Number)
        }
        Value::Text(text) => json!(text),
        Value::Bytes(bytes) => json!(bytes),
        _ => match (value.elements(), value.entries()) {
            (Some(elements), _) => Json::Array(elements.map(plain).collect()),
            (_, Some(entries)) => {
                let key = |key: Value<'_>| match plain(key) {
                    Json::String(text) => text,
                    other => other.to_string(),
                };
                Json::Object(entries.into_iter().map(|(name, value)| (key(name), plain(value))).collect())
            }
            _ => json!(value.to_string()),
        },
    }
}

/// A value with its types: integers and other numbers differ, and maps are sorted pairs.
fn typed(value: Value<'_>) -> Json {
    match value {
        Value::Nil => json!({"nil": true}),
        Value::Bool(value) => json!(value),
        Value::Int(value) => json!({"i": value.to_string()}),
        Value::Float(_) => json!({"f": value.to_string()}),
        Value::Text(text) => json!(text),
        Value::Duration(nanoseconds) => json!({"dur": nanoseconds.to_string()}),
        Value::Zone(_) => json!({"opaque": "*time.Location"}),
        Value::Time(time) => json!({"time": time.rfc3339()}),
        _ => match (value.elements(), value.entries()) {
            (Some(elements), _) => Json::Array(elements.map(typed).collect()),
            (_, Some(entries)) => {
                let mut pairs: Vec<[Json; 2]> =
                    entries.into_iter().map(|(key, value)| [typed(key), typed(value)]).collect();
                pairs.sort_by_cached_key(|[key, _]| key.to_string());
                json!({"m": pairs})
            }
            _ => json!({"opaque": value.to_string()}),
        },
    }
}
