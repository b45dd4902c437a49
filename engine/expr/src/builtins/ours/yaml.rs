//! YAML as values, by the reader that objects of Kubernetes go through.

use portal_document::{DocumentLimits, Interning, Node, Options, View, from_yaml};

use crate::{
    machine::{Failure, MAX_DEPTH, Machine, deeper},
    value::{Entry, Keys, Value, map::Duplicates},
};

/// Bytes that are read in one step. It takes much longer than to copy them.
const BYTES_PER_STEP: usize = 2;

/// Steps for a text with merge keys. A few of them add so many entries as the reader allows, and of those with the same key
/// nothing is left that could be counted.
const STEPS_OF_MERGES: u64 = 50_000;

pub(super) fn parse<'a>(machine: &Machine<'a>, text: &'a str) -> Result<Value<'a>, Failure> {
    let merges = if text.contains("<<") { STEPS_OF_MERGES } else { 0 };
    machine.step((text.len() / BYTES_PER_STEP) as u64 + merges)?;
    let limits = DocumentLimits { depth: MAX_DEPTH as usize, ..DocumentLimits::default() };
    let options = Options { limits, interning: Interning::LookUpOnly, ..Options::default() };
    let documents = from_yaml(text, &options).map_err(|error| Failure::new(format!("this is no YAML: {error}")))?;
    // What stands between two `---` may be nothing.
    let mut documents = documents.iter().map(|found| found.document.root()).filter(|root| !root.is_null());
    match (documents.next(), documents.count()) {
        (None, _) => Ok(Value::Nil),
        (Some(root), 0) => copy(machine, root, 0),
        (Some(_), more) => Err(Failure::new(format!("this YAML has {} documents, and one is read", more + 1))),
    }
}

/// The value of a node, in the arena. What aliases stand for is there as often as they do, and paid for each time.
fn copy<'a>(machine: &Machine<'a>, node: Node<'_>, depth: u32) -> Result<Value<'a>, Failure> {
    machine.step(1)?;
    Ok(match node.view() {
        View::Null => Value::Nil,
        View::Bool(value) => Value::Bool(value),
        View::Int(number) => Value::Int(number),
        View::Float(number) => Value::Float(number),
        View::Str(text) => Value::Text(machine.text(text)?),
        View::Array(array) => {
            let depth = deeper(depth)?;
            let items = machine.fill(array.len(), Value::Nil)?;
            for (place, item) in items.iter_mut().zip(array.iter()) {
                *place = copy(machine, item, depth)?;
            }
            Value::List(items)
        }
        View::Object(object) => {
            let depth = deeper(depth)?;
            let entries: &mut [Entry<'a>] = machine.fill(object.len(), (Value::Nil, Value::Nil))?;
            for (place, (key, value)) in entries.iter_mut().zip(object.iter()) {
                *place = (Value::Text(machine.text(key)?), copy(machine, value, depth)?);
            }
            machine.sort_map(entries, Keys::Text, Duplicates::Last)?
        }
    })
}

#[cfg(test)]
mod tests {
    use crate::{builtins::sample::check_with, limits::Limits};

    #[track_caller]
    fn check(table: &str) {
        check_with(table, &Limits::default(), false);
    }

    #[test]
    fn yaml_is_read_as_kubernetes_reads_it() {
        check(
            r##"
            fromYAML("a: [1, 2.5, x, null, true, yes]") => {"a": [1, 2.5, "x", nil, true, true]}
            fromYAML("b: 1\na: {c: 2}") => {"a": {"c": 2}, "b": 1}
            fromYAML("{\"a\": 1}").a => 1
            fromYAML("5") => 5
            fromYAML("text") => "text"
            fromYAML("") => nil
            fromYAML("# nothing") => nil
            fromYAML("---\n---\na: 1\n---\n") => {"a": 1}
            fromYAML("a: &x [1]\nb: *x") => {"a": [1], "b": [1]}
            fromYAML("base: &b {x: 1}\nthis: {<<: *b}").this.x => 1
            fromYAML("a: 1\n---\nb: 2") => error: this YAML has 2 documents, and one is read
            fromYAML("a: [1") => error: this is no YAML: 1:4: unclosed bracket '['
            fromYAML(nil) => error: expected a string, got nil
            "##,
        );
    }

    #[test]
    fn yaml_that_means_harm_runs_out() {
        let deep = "error: this is no YAML: 1:257: nesting is over the limit of 256 levels";
        check(&format!(r#"fromYAML(repeat("[", 300)) => {deep}"#));
        let level =
            |number: usize| format!("a{number}: &a{number} [{}]\\n", vec![format!("*a{}", number - 1); 9].join(", "));
        let bomb: String = (1..7).map(level).collect();
        let expands = "error: this is no YAML: 5:10: aliases and merge keys expand to too much";
        check(&format!(r#"fromYAML("a0: &a0 [x]\n{bomb}") => {expands}"#));
        // Aliases that the reader takes are paid for each time.
        let (list, aliases) = (vec!["x"; 2000].join(", "), vec!["*a"; 90].join(", "));
        let call = format!(r#"fromYAML("a: &a [{list}]\nb: [{aliases}]")"#);
        let out = "error: out of memory: an evaluation may make 16777216 bytes of text, lists and maps";
        check(&format!("len({call}) => 2"));
        check(&format!("[{call}, {call}, {call}, {call}, {call}] => {out}"));
    }
}
