//! Rules out of files: a text in, its rules and everything that is wrong out, each with its place.

use std::fmt;

use portal_document::{Interning, Node};

use crate::{
    manifest::{Manifest, Placed, Problem, items, list_len},
    rule::{
        comment,
        diagnostic::{Diagnostic, Step, document_steps},
        load,
        quoting::{self, TagLine},
        source::{Origin, RuleSource},
    },
};

/// What a file says about rules.
#[derive(Debug, Default)]
pub struct RuleFile {
    /// The rules whose form is right, in their order.
    pub sources: Vec<RuleSource>,
    /// Everything that is wrong.
    pub problems: Vec<Problem>,
    /// What else is in it, in its order.
    pub others: Vec<Other>,
    /// Whether there is nothing in it, neither a rule nor anything else.
    pub is_empty: bool,
}

/// Something in a file of rules that is no rule, and says so.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Other {
    /// Its version, if it has one.
    pub api_version: Option<String>,
    /// Its kind.
    pub kind: String,
}

/// How a rule begins, for whoever wrote something else.
pub const HOW_TO_BEGIN: &str = "a rule has `apiVersion: portal.io/v1alpha1` and `kind: PortalClusterRule` or `PortalRule`, or neither and \
                                `name`, `match` and `rule` at the top";

/// Reads the rules of a file, also those in lists. What says that it is something else is passed over, such as a custom resource definition
/// beside the rules that name its kind.
pub fn read(manifest: &Manifest) -> RuleFile {
    let (documents, problems) = manifest.documents(Interning::LookUpOnly);
    let problems = problems.into_iter().map(|problem| with_way_out(manifest, problem)).collect::<Vec<_>>();
    let tags = quoting::tag_lines(manifest.numbered_lines());
    let mut file = RuleFile { is_empty: documents.is_empty() && problems.is_empty(), problems, ..RuleFile::default() };
    for (index, placed) in documents.iter().enumerate() {
        let end = documents.get(index + 1).map_or(usize::MAX, |next| next.line);
        let tags = TagsOfItems::of(manifest, placed, between(&tags, placed.line, end));
        for item in items(placed.document.root()) {
            let base = item.steps();
            let object = match &item.content {
                Ok(content) => content.root(),
                Err(error) => {
                    file.problems.push(problem(manifest, placed.line, &base, error.clone()));
                    continue;
                }
            };
            if let Some(other) = Other::of(object) {
                if load::is_meant_as_rule(object) {
                    let message = format!("{other} is no rule: {HOW_TO_BEGIN}");
                    let field = base.into_iter().chain([Step::Field("apiVersion".to_owned())]).collect::<Vec<_>>();
                    file.problems.push(problem(manifest, placed.line, &field, message));
                } else {
                    file.others.push(other);
                }
                continue;
            }
            let found = tagged(manifest, placed.line, &base, tags.of_item(item.path.first().copied()));
            if !found.is_empty() {
                file.problems.extend(found);
                continue;
            }
            let origin = Origin::File { path: manifest.file().to_owned(), line: placed.line };
            match load::load(object, origin, base) {
                Ok(source) => file.sources.push(source),
                Err(found) => file.problems.extend(found.iter().map(|diagnostic| place(diagnostic, Some(manifest)))),
            }
        }
    }
    file
}

/// What is wrong with the YAML of a file, with the way out where it is that of a text.
fn with_way_out(manifest: &Manifest, problem: Problem) -> Problem {
    let place = problem.line.zip(problem.column);
    match place.and_then(|(line, column)| quoting::unreadable(manifest.text_from(line), column)) {
        Some(way_out) => Problem { message: format!("{}: {way_out}", problem.message), ..problem },
        None => problem,
    }
}

/// The lines of a document behind whose key a tag may begin, and the lines on which the items of its list begin. To look for a field
/// takes longer the further down it is, so that only those are looked for that may have a tag.
struct TagsOfItems<'a> {
    tags: &'a [TagLine],
    items: Vec<usize>,
}

impl<'a> TagsOfItems<'a> {
    fn of(manifest: &Manifest, placed: &Placed, tags: &'a [TagLine]) -> Self {
        let count = list_len(placed.document.root()).filter(|_| !tags.is_empty());
        TagsOfItems { tags, items: count.map(|count| manifest.item_lines(placed.line, count)).unwrap_or_default() }
    }

    /// Those of an item of the outermost list, or of the whole document.
    fn of_item(&self, index: Option<usize>) -> &'a [TagLine] {
        let Some(start) = index.and_then(|index| self.items.get(index)) else { return self.tags };
        // Several may begin on one line.
        let end = self.items.get(self.items.partition_point(|line| line <= start));
        between(self.tags, *start, end.copied().unwrap_or(usize::MAX))
    }
}

fn between(tags: &[TagLine], start: usize, end: usize) -> &[TagLine] {
    let place = |line: usize| tags.partition_point(|(tag, _)| *tag < line);
    &tags[place(start)..place(end)]
}

/// The texts of a rule of which YAML leaves out the beginning. The rule that is left must never be judged by.
fn tagged(manifest: &Manifest, line: usize, base: &[Step], tags: &[TagLine]) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (tag, field) in tags {
        for way in [&["spec", *field][..], &[*field][..]] {
            let steps: Vec<Step> =
                base.iter().cloned().chain(way.iter().map(|name| Step::Field((*name).to_owned()))).collect();
            let place = manifest.locate(line, &document_steps(&steps));
            let Some((at, column)) = place.filter(|(at, _)| at == tag) else { continue };
            let found = quoting::tagged(manifest.text_from(at), column, field);
            problems.extend(found.map(|message| manifest.problem(Some(at), Some(column), message)));
        }
    }
    problems
}

impl Other {
    /// What an object is that is no rule.
    fn of(object: Node<'_>) -> Option<Other> {
        let text = |name: &str| object.get_str(name).and_then(Node::as_str).map(str::to_owned);
        let is_other = !load::is_rule(object) && object.get_str("kind").is_some();
        is_other.then(|| Other { api_version: text("apiVersion"), kind: text("kind").unwrap_or_default() })
    }

    /// Whether it defines a kind that rules may name.
    pub fn is_definition(&self) -> bool {
        self.kind == "CustomResourceDefinition"
    }
}

impl fmt::Display for Other {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.api_version {
            Some(api_version) => write!(formatter, "{} ({api_version})", self.kind),
            None => write!(formatter, "{} (without an apiVersion)", self.kind),
        }
    }
}

/// A diagnostic in its place. Without the text of the file that is the line on which the document of the rule begins.
pub fn place(diagnostic: &Diagnostic, manifest: Option<&Manifest>) -> Problem {
    let message = diagnostic.to_string();
    let problem = match (&diagnostic.origin, manifest) {
        (Origin::File { line, .. }, Some(manifest)) => {
            let message = if diagnostic.excerpt.as_ref().is_some_and(|excerpt| excerpt.ends_early) {
                with_comment(message, manifest, *line, &diagnostic.field)
            } else {
                message
            };
            problem(manifest, *line, &diagnostic.field, message)
        }
        (origin, _) => of_origin(origin, message),
    };
    Problem { rule: diagnostic.rule.clone(), ..problem }
}

/// What is wrong with an expression that ends too early: here is at hand what ends it, and nobody has to guess.
fn with_comment(message: String, manifest: &Manifest, line: usize, field: &[Step]) -> String {
    let message = message.strip_suffix(comment::GUESS).map_or(&*message, str::trim_end);
    let at = manifest.locate(line, &document_steps(field));
    let cut = at.and_then(|(line, column)| comment::split(manifest.text_from(line), column));
    match (cut, field.last()) {
        (Some((plain, comment)), Some(Step::Field(field))) => {
            format!("{message}\n{}", comment::way_out(field, &plain, comment))
        }
        _ => message.to_owned(),
    }
}

/// Something that is wrong with a rule as a whole.
pub fn problem_of(source: &RuleSource, message: String) -> Problem {
    Problem { rule: Some(source.id.clone()), ..of_origin(&source.origin, message) }
}

fn of_origin(origin: &Origin, message: String) -> Problem {
    match origin {
        Origin::File { path, line } => Problem { line: Some(*line), ..Problem::of_file(&**path, message) },
        Origin::Cluster { uid } => Problem::of_file(&**uid, message),
    }
}

fn problem(manifest: &Manifest, line: usize, field: &[Step], message: String) -> Problem {
    let at = manifest.locate(line, &document_steps(field));
    let (line, column) = at.map_or((line, None), |(line, column)| (line, Some(column)));
    manifest.problem(Some(line), column, message)
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;
    use crate::{kinds::Kinds, language::ExprEngine};

    #[track_caller]
    fn check(text: impl AsRef<[u8]>, expected: Expect) {
        let file = read(&Manifest::new("rules.yaml", text.as_ref()));
        let place = |source: &RuleSource| match &source.origin {
            Origin::File { path, line } => format!("{path}:{line}"),
            Origin::Cluster { uid } => uid.clone(),
        };
        let sources = file.sources.iter().map(|source| format!("{}: {}", place(source), source.id));
        let problems = file.problems.iter().map(ToString::to_string);
        expected.assert_eq(&sources.chain(problems).collect::<Vec<_>>().join("\n"));
    }

    #[test]
    fn rules_are_read_in_both_forms_beside_what_is_no_rule() {
        check(
            "name: a\nmatch: {gvk: [{kind: Pod}]}\nrule: spec.hostPID\n---\n\
             {apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition}\n---\n\
             apiVersion: portal.io/v1alpha1\nkind: PortalRule\nmetadata: {name: b, namespace: shop}\n\
             spec: {match: {gvk: [{kind: Pod}]}, rule: spec.hostPID}\n",
            expect![[r#"
                rules.yaml:1: a
                rules.yaml:7: shop/b"#]],
        );
    }

    #[test]
    fn rules_are_read_out_of_lists_in_lists_and_of_lists_that_name_their_items() {
        let rule = |name: &str| {
            format!("metadata: {{name: {name}}}, spec: {{match: {{gvk: [{{kind: Pod}}]}}, rule: spec.hostPID}}")
        };
        check(
            format!(
                "apiVersion: portal.io/v1alpha1\nkind: PortalClusterRuleList\nmetadata: {{resourceVersion: '1'}}\nitems:\n\
                 - {{{}}}\n---\n{{apiVersion: v1, kind: List, items: [{{apiVersion: v1, kind: List, items: [\n\
                 {{apiVersion: portal.io/v1alpha1, kind: PortalClusterRule, {}}}]}}]}}\n",
                rule("typed"),
                rule("nested"),
            ),
            expect![[r#"
                rules.yaml:1: typed
                rules.yaml:7: nested"#]],
        );
    }

    #[test]
    fn everything_that_is_wrong_has_its_place() {
        let bad = "{apiVersion: portal.io/v1alpha1, kind: PortalClusterRule, metadata: {name: a}, spec: {rul: x}}";
        check(
            format!(
                "name: good\nmatch: {{gvk: [{{kind: Pod}}]}}\nrule: spec.hostPID\n---\n\
                 apiVersion: v1\nkind: List\nitems:\n- {bad}\n- {{apiVersion: v1, kind: List, items: 5}}\n---\nb: [\n"
            ),
            expect![[r#"
                rules.yaml:1: good
                rules.yaml:11:4: unclosed bracket '['
                rules.yaml:8:89: rule a: items[0].spec.rul: unknown field `rul`, did you mean `rule`?
                rules.yaml:8:82: rule a: items[0].spec: `match` is missing
                rules.yaml:8:82: rule a: items[0].spec: `rule` is missing
                rules.yaml:9:3: `items` of this List is no list of objects"#]],
        );
        check(b"name: a\nrule: \xff\n", expect![[r#"rules.yaml:2:7: this is not text in UTF-8"#]]);
        check("just text\n", expect!["rules.yaml:1:1: a rule is a map, not text"]);
        check(
            "- name: a\n",
            expect!["rules.yaml:1:1: a rule is a map, not a list: write each as a document, with `---` between"],
        );
    }

    #[test]
    fn what_is_meant_as_a_rule_is_told_how_to_begin() {
        check(
            "apiVersion: portal.io.com/v1alpha1\nkind: PortalClusterRule\nmetadata: {name: a}\n---\n\
             apiVersion: v1\nkind: ClusterRule\nspec: {match: {gvk: [{kind: Pod}]}, rule: spec.hostPID}\n---\n\
             kind: PortalRule\nmetadata: {name: a}\n---\n\
             apiVersion: kyverno.io/v1\nkind: ClusterPolicy\nspec: {rules: []}\n",
            expect![[r#"
                rules.yaml:1:1: PortalClusterRule (portal.io.com/v1alpha1) is no rule: a rule has `apiVersion: portal.io/v1alpha1` and `kind: PortalClusterRule` or `PortalRule`, or neither and `name`, `match` and `rule` at the top
                rules.yaml:5:1: ClusterRule (v1) is no rule: a rule has `apiVersion: portal.io/v1alpha1` and `kind: PortalClusterRule` or `PortalRule`, or neither and `name`, `match` and `rule` at the top
                rules.yaml:9:1: PortalRule (without an apiVersion) is no rule: a rule has `apiVersion: portal.io/v1alpha1` and `kind: PortalClusterRule` or `PortalRule`, or neither and `name`, `match` and `rule` at the top"#]],
        );
    }

    #[test]
    fn what_is_no_rule_is_listed() {
        let text = "{apiVersion: kyverno.io/v1, kind: ClusterPolicy}\n---\n{apiVersion: a.io/v1, kind: CustomResourceDefinition}\n";
        let others = read(&Manifest::new("rules.yaml", text.as_bytes())).others;
        let shown: Vec<String> = others.iter().map(ToString::to_string).collect();
        assert_eq!(shown, ["ClusterPolicy (kyverno.io/v1)", "CustomResourceDefinition (a.io/v1)"]);
        assert!(!others[0].is_definition() && others[1].is_definition());
    }

    #[test]
    fn only_a_file_without_any_document_is_empty() {
        for (text, is_empty) in [
            ("", true),
            ("# Rules will be here.\n---\n", true),
            ("{apiVersion: v1, kind: Pod}", false),
            ("[", false),
            ("just text", false),
        ] {
            assert_eq!(read(&Manifest::new("rules.yaml", text.as_bytes())).is_empty, is_empty, "{text:?}");
        }
    }

    /// Compares what the compiler says of the only rule of a file.
    #[track_caller]
    fn check_compiled(text: &str, expected: Expect) {
        let manifest = Manifest::new("a.yaml", text.as_bytes());
        let source = read(&manifest).sources.swap_remove(0);
        let (_, diagnostics) = crate::rule::compile::compile_rule(&source, Kinds::builtin(), &ExprEngine);
        expected.assert_eq(&place(&diagnostics[0], Some(&manifest)).to_string());
    }

    #[test]
    fn a_rule_that_a_comment_cuts_off_is_shown_with_the_ways_out() {
        check_compiled(
            "name: a\nmatch: {gvk: [{kind: Pod}]}\nrule: any(spec.volumes, # == 'x')\n",
            expect![[r#"
                a.yaml:3:1: rule a: rule: 1:18: expected a value or `)`, found the end
                 | any(spec.volumes,
                 |                  ^
                YAML takes `# == 'x')` for a comment, because a space is before the `#`: write the rule in quotes, or as a block
                 | rule: 'any(spec.volumes, # == ''x'')'
                 | rule: |
                 |   any(spec.volumes, # == 'x')"#]],
        );
        check_compiled(
            "name: a\nmatch: {gvk: [{kind: Pod}]}\nrule: any(spec.volumes,\nmessage: a # b\n",
            expect![[r#"
                a.yaml:3:1: rule a: rule: 1:18: expected a value or `)`, found the end
                 | any(spec.volumes,
                 |                  ^"#]],
        );
    }

    #[test]
    fn what_the_compiler_says_has_its_place_too() {
        let manifest =
            Manifest::new("a.yaml", *b"# First.\nname: a\nmatch: {gvk: [{kind: Pod}]}\nrule: spec.hostPidd\n");
        let source = read(&manifest).sources.swap_remove(0);
        let (_, diagnostics) = crate::rule::compile::compile_rule(&source, Kinds::builtin(), &ExprEngine);
        let problem = place(&diagnostics[0], Some(&manifest));
        expect![[r#"
            a.yaml:4:1: rule a: rule: 1:6: PodSpec has no field `hostPidd`, did you mean `hostPID`?
             | spec.hostPidd
             |      ^"#]]
        .assert_eq(&problem.to_string());
        assert_eq!(problem.rule.as_ref(), Some(&source.id));
        for problem in [place(&diagnostics[0], None), problem_of(&source, "twice".to_owned())] {
            assert_eq!((&*problem.file, problem.line, problem.column), ("a.yaml", Some(2), None));
            assert_eq!(problem.rule.as_ref(), Some(&source.id));
        }
    }
}
