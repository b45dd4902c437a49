//! Parts of an image that they can never be: a registry has no path behind it, a name has no tag.

use std::collections::HashSet;

use portal_expr::{Compared, Relation};

use super::Compiler;
use crate::{
    context::{IMAGE_NAME, IMAGE_REGISTRY, IMAGE_SHA256, IMAGE_TAG, image::Image},
    rule::diagnostic::Level,
};

/// What is wrong with a comparison, and what to write instead.
struct Found {
    level: Level,
    because: String,
    instead: Instead,
}

enum Instead {
    /// A value in place of the text.
    Value(String),
    /// A condition in place of the comparison. A list keeps what else is in it.
    Condition(String),
}

impl Compiler<'_> {
    /// Refuses to compare a part of an image with what it can never be. One mistake is told, as of the language.
    pub(super) fn check_images(&mut self, compared: &[Compared]) {
        let known = Known::of(compared);
        let mut is_warned = false;
        for compared in compared {
            let found = |text: &str| found(compared, text, &known).map(|found| (text.to_owned(), found));
            // A warning hides no error.
            for (text, found) in compared.texts.iter().filter_map(|text| found(text)) {
                let is_error = found.level == Level::Error;
                if is_error || !is_warned {
                    let message = format!("{}: {}", found.because, found.instead.shown(compared, &text));
                    self.add_at(found.level, self.place(compared.at as usize), message);
                    is_warned = true;
                }
                if is_error {
                    return;
                }
            }
        }
    }
}

/// What the comparisons of a rule say together.
struct Known<'a> {
    /// The tags that are compared with "latest".
    latest: HashSet<&'a str>,
    /// The texts that registries are compared with.
    registries: HashSet<&'a str>,
    /// Whether a colon is looked for, by whoever knows that a tag may be missing.
    has_colon: bool,
}

impl<'a> Known<'a> {
    fn of(compared: &'a [Compared]) -> Self {
        let of_field = |field| compared.iter().filter(move |compared| compared.field == Some(field));
        let has_latest = |compared: &&Compared| compared.texts.iter().any(|text| &**text == "latest");
        Known {
            latest: of_field(IMAGE_TAG).filter(has_latest).map(|compared| &*compared.subject).collect(),
            has_colon: compared.iter().any(|compared| compared.texts.iter().any(|text| &**text == ":")),
            registries: of_field(IMAGE_REGISTRY).flat_map(|compared| &compared.texts).map(|text| &**text).collect(),
        }
    }

    /// Whether the rule asks for another registry, in which a path may begin as it likes.
    fn has_other_registry(&self, registry: &str) -> bool {
        self.registries.iter().any(|other| *other != registry)
    }
}

impl Instead {
    /// As it is written in place of a text of a comparison.
    fn shown(&self, compared: &Compared, text: &str) -> String {
        let Compared { subject, relation, is_negated, .. } = compared;
        let not = if *is_negated { "not " } else { "" };
        match (self, relation) {
            (Instead::Value(value), Relation::In) => format!("put `{value}` in place of {text:?}"),
            (Instead::Value(value), Relation::Equal) => {
                format!("write `{subject} {} {value}`", if *is_negated { "!=" } else { "==" })
            }
            (Instead::Value(value), Relation::StartsWith | Relation::Split | Relation::Other) => {
                format!("write `{subject} {not}startsWith {value}`")
            }
            (Instead::Condition(condition), Relation::In) => match is_negated {
                true => format!("write `({subject} not in […] && not ({condition}))`, without {text:?} in the list"),
                false => format!("write `({subject} in […] || {condition})`, without {text:?} in the list"),
            },
            (Instead::Condition(condition), _) if *is_negated => format!("write `not ({condition})`"),
            (Instead::Condition(condition), _) => format!("write `{condition}`"),
        }
    }
}

/// What is wrong with a comparison with a text.
fn found(compared: &Compared, text: &str, known: &Known<'_>) -> Option<Found> {
    let is_equality = matches!(compared.relation, Relation::Equal | Relation::In);
    if compared.relation == Relation::Split {
        return split(&compared.subject, text);
    }
    if compared.field.is_none() && compared.relation == Relation::Other && text == ":" {
        return Some(colon(&compared.subject));
    }
    if compared.field.is_none() && compared.relation == Relation::Other && known.latest.is_empty() && !known.has_colon {
        // What a pattern has at its end belongs to no image.
        let end = text.trim_end_matches(['$', ')', '*']);
        if let Some(tag) = [":latest", "[:]latest", "\\:latest"].iter().find(|tag| end.ends_with(**tag)) {
            // A pattern may ask for more before it.
            return end
                .trim_end_matches(tag)
                .trim_matches(['^', '.', '*', '('])
                .is_empty()
                .then(|| latest(&compared.subject));
        }
    }
    if let (None, Relation::Other, Some(beginning)) = (compared.field, compared.relation, text.strip_prefix('^')) {
        return beginning_of_pattern(&compared.subject, beginning);
    }
    if !is_equality && compared.relation != Relation::StartsWith {
        return None;
    }
    let image = compared.subject.rsplit_once('.').map_or(&*compared.subject, |(image, _)| image);
    match compared.field {
        Some(IMAGE_REGISTRY) if text.contains('/') => Some(path_in_registry(image, text, is_equality)),
        Some(IMAGE_REGISTRY) if is_equality => registry(image, text),
        Some(IMAGE_NAME) if is_equality => name(image, text, known),
        Some(IMAGE_NAME) => beginning_of_name(image, text, known),
        Some(IMAGE_TAG) if is_equality => tag(compared, text, known),
        Some(IMAGE_SHA256) => digest(compared, text, is_equality),
        None if is_equality => whole(&compared.subject, text),
        None => short(&compared.subject, text),
        _ => None,
    }
}

fn error(because: impl Into<String>, instead: Instead) -> Found {
    Found { level: Level::Error, because: because.into(), instead }
}

/// Whoever looks for a colon looks for a tag, and finds the port of a registry too.
fn colon(image: &str) -> Found {
    let because = "a registry may have a port, as in registry.example:5000/app, so that a `:` is no sign of a tag";
    let instead = Instead::Condition(format!("{image}.tag != \"latest\""));
    Found { level: Level::Warning, because: because.to_owned(), instead }
}

/// Whoever takes an image apart by hand has another part of it where one is left out.
fn split(image: &str, sign: &str) -> Option<Found> {
    let (because, instead) = match sign {
        ":" => ("a registry may have a port, as in registry.example:5000/app, and a tag may be left out", "tag"),
        "/" => ("the registry may be left out, which is docker.io then", "registry"),
        "@" => ("a digest may be left out", "sha256"),
        _ => return None,
    };
    let instead = Instead::Condition(format!("{image}.{instead}"));
    Some(Found { level: Level::Warning, because: because.to_owned(), instead })
}

/// Whoever names an image without its tag finds none that is written with one.
fn whole(image: &str, text: &str) -> Option<Found> {
    let parts = Image(text);
    let name = parts.name();
    let last = text.rsplit('/').next().unwrap_or(text);
    if text.is_empty() || last.contains([':', '@', '*', '?', '$', ' ']) {
        return None;
    }
    let is_short = parts.registry() == "docker.io" && !text.contains("docker.io/");
    let condition = match is_short {
        true => format!("{image}.name == {name:?}"),
        false => format!("{image}.registry == {:?} && {image}.name == {name:?}", parts.registry()),
    };
    let because = "an image is written with its tag or its digest, so that this is true of hardly any";
    Some(Found { level: Level::Warning, because: because.to_owned(), instead: Instead::Condition(condition) })
}

/// Whoever looks for the tag finds no image that is written without one.
fn latest(image: &str) -> Found {
    let because = "an image that is written without a tag is \"latest\" too, and does not end so";
    let instead = Instead::Condition(format!("{image}.tag == \"latest\""));
    Found { level: Level::Warning, because: because.to_owned(), instead }
}

fn path_in_registry(image: &str, text: &str, is_equality: bool) -> Found {
    let path = text.split_once("://").map_or(text, |(_, path)| path);
    // Whoever names a whole path means what is below it.
    let below = |path: &str| match path {
        "" => String::new(),
        _ if is_equality => format!("{}/", path.trim_end_matches('/')),
        _ => path.to_owned(),
    };
    let (first, rest) = path.split_once('/').unwrap_or((path, ""));
    let condition = match registry_of(first) {
        Some(registry) => of_registry(image, &registry, &below(rest), false),
        None => format!("{image}.name startsWith {:?}", below(path)),
    };
    error(format!("a registry has no `/`, so that this is never {text:?}"), Instead::Condition(condition))
}

fn registry(image: &str, text: &str) -> Option<Found> {
    if text.is_empty() {
        let because = "every image has a registry, which is docker.io where none is written";
        return Some(error(because, Instead::Value("\"docker.io\"".to_owned())));
    }
    match registry_of(text) {
        _ if text.contains(['*', '?']) => None,
        Some(known) if known == text => None,
        Some(known) => Some(error(format!("this is never {text:?}"), Instead::Value(format!("{known:?}")))),
        None if text == "library" => {
            Some(error(format!("this is never {text:?}"), Instead::Value("\"docker.io\"".to_owned())))
        }
        None => Some(error(
            format!("this is never {text:?}, because a registry has a `.` or a `:` in it, such as \"ghcr.io\""),
            Instead::Condition(format!("{image}.name startsWith {:?}", format!("{text}/"))),
        )),
    }
}

/// The registry that a text is as the first part of an image, under its one name.
fn registry_of(text: &str) -> Option<String> {
    let whole = format!("{text}/x");
    let parts = Image(&whole);
    (parts.name() == "x" && text != "library").then(|| parts.registry().into_owned())
}

/// A name that has a tag or a digest behind it is no name. What stands before it may be the path in another registry.
fn name(image: &str, text: &str, known: &Known<'_>) -> Option<Found> {
    let parts = Image(text);
    let (registry, name) = (parts.registry(), parts.name());
    if name == text || text.is_empty() {
        return None;
    }
    let has_registry = text.get(..registry.len()).is_some_and(|start| start.eq_ignore_ascii_case(&registry))
        || registry == "docker.io" && text.starts_with("index.docker.io/");
    let last = text.rsplit('/').next().unwrap_or(text);
    let is_whole = last.contains([':', '@']);
    let mut conditions = Vec::new();
    if has_registry {
        conditions.push(format!("{image}.registry == {registry:?}"));
    }
    conditions.push(format!("{image}.name == {name:?}"));
    if is_whole {
        conditions.extend(parts.tag().map(|tag| format!("{image}.tag == {tag:?}")));
        conditions.extend(parts.sha256().map(|digest| format!("{image}.sha256 == {digest:?}")));
    }
    let instead = match (&conditions[..], is_whole) {
        ([_], false) => Instead::Value(format!("{name:?}")),
        _ => Instead::Condition(conditions.join(" && ")),
    };
    if is_whole {
        let because = format!("a name has no tag and no digest behind it, so that this is never {text:?}");
        return Some(error(because, instead));
    }
    let part = if has_registry { "a registry before it" } else { "Docker Hub's `library/`" };
    let because =
        format!("a name is without {part}, so that this is never {text:?} unless it is a path in another registry");
    (!known.has_other_registry(&registry)).then_some(Found { level: Level::Warning, because, instead })
}

fn beginning_of_name(image: &str, text: &str, known: &Known<'_>) -> Option<Found> {
    let (first, rest) = text.split_once('/')?;
    let is_official = first == "library";
    let registry = if is_official { "docker.io".to_owned() } else { registry_of(first)? };
    let condition = of_registry(image, &registry, rest, is_official);
    let because = format!("a name begins with \"{first}/\" only where it is a path in another registry");
    let found = Found { level: Level::Warning, because, instead: Instead::Condition(condition) };
    (!known.has_other_registry(&registry)).then_some(found)
}

/// An image of a registry with a name that begins so. Those that Docker publishes itself have no path.
fn of_registry(image: &str, registry: &str, name: &str, is_official: bool) -> String {
    let name = if name.is_empty() { String::new() } else { format!(" && {image}.name startsWith {name:?}") };
    let official = if is_official { format!(" && not ({image}.name contains \"/\")") } else { String::new() };
    format!("{image}.registry == {registry:?}{name}{official}")
}

fn tag(compared: &Compared, text: &str, known: &Known<'_>) -> Option<Found> {
    if let Some(tag) = text.strip_prefix(':').filter(|tag| !tag.is_empty()) {
        return Some(error("a tag is without its `:`", Instead::Value(format!("{tag:?}"))));
    }
    // `tag == "" || tag == "latest"` is right by its second half.
    if !text.is_empty() || !compared.may_be_nil || known.latest.contains(&*compared.subject) {
        return None;
    }
    let because = "a tag is never \"\": an image that is written without one has the tag \"latest\", and `nil` if it has a digest";
    Some(error(because, Instead::Value("\"latest\"".to_owned())))
}

fn digest(compared: &Compared, text: &str, is_equality: bool) -> Option<Found> {
    let because = "this is the digest without its `sha256:`";
    match text.strip_prefix("sha256:") {
        Some("") => Some(error(because, Instead::Condition(format!("{} != nil", compared.subject)))),
        Some(digest) => Some(error(because, Instead::Value(format!("{digest:?}")))),
        None if is_equality && text.is_empty() && compared.may_be_nil => {
            Some(error("a digest is never \"\", and what is missing is `nil`", Instead::Value("nil".to_owned())))
        }
        None => None,
    }
}

/// What is wrong with a text that begins with Docker Hub's name, which most of its images leave out.
fn short(image: &str, text: &str) -> Option<Found> {
    let path = match text {
        "docker.io" | "index.docker.io" => "",
        _ => text.strip_prefix("docker.io/").or_else(|| text.strip_prefix("index.docker.io/"))?,
    };
    let official = path.strip_prefix("library/");
    let condition = of_registry(image, "docker.io", official.unwrap_or(path), official.is_some());
    let because = "an image that is written without a registry is docker.io's too, and does not begin so";
    Some(error(because, Instead::Condition(condition)))
}

/// The same of a pattern, as far as it is plain text.
fn beginning_of_pattern(image: &str, pattern: &str) -> Option<Found> {
    let plain = pattern.replace("\\.", ".").replace("[.]", ".");
    let plain = plain.strip_suffix(".*").unwrap_or(&plain);
    let end = plain.find(['*', '+', '?', '(', '[', '{', '|', '$', '\\']);
    let found = short(image, end.map_or(plain, |end| &plain[..plain[..end].rfind('/').map_or(0, |slash| slash + 1)]))?;
    let instead = match (found.instead, end) {
        // What the rest asks is for its author to say.
        (Instead::Condition(condition), Some(_)) => Instead::Condition(format!("{condition} && …")),
        (instead, _) => instead,
    };
    Some(Found { level: Level::Warning, instead, ..found })
}

#[cfg(test)]
mod tests {
    use super::super::natural::follow;
    use crate::testing::rules;

    fn told(rule: &str) -> Vec<String> {
        rules(&format!("name: a\nmatch: {{gvk: [{{kind: Pod}}]}}\nrule: |\n  {rule}\n")).1
    }

    #[track_caller]
    fn check(rule: &str, expected: &str) {
        let problems = told(rule);
        let told = problems.first().map_or("", String::as_str);
        assert!(told.contains(expected) && expected.is_empty() == told.is_empty(), "{rule}: {told}");
        assert!(problems.len() < 2, "{rule}: {problems:?}");
        follow("gvk: [{kind: Pod}]", rule, told);
    }

    #[test]
    fn what_a_part_of_an_image_can_never_be_is_told_with_the_way_out() {
        for (rule, expected) in [
            (
                r#"container.image.registry == "ghcr.io/evil""#,
                r#"write `container.image.registry == "ghcr.io" && container.image.name startsWith "evil/"`"#,
            ),
            (
                r#"container.image.registry not startsWith "https://ghcr.io/ev""#,
                r#"write `not (container.image.registry == "ghcr.io" && container.image.name startsWith "ev")`"#,
            ),
            (r#"container.image.registry == "corp/team""#, r#"write `container.image.name startsWith "corp/team/"`"#),
            (r#"container.image.registry == "corp""#, r#"write `container.image.name startsWith "corp/"`"#),
            (r#"container.image.registry == """#, r#"write `container.image.registry == "docker.io"`"#),
            (r#"container.image.registry != "index.docker.io""#, r#"write `container.image.registry != "docker.io"`"#),
            (
                r#"container.image.registry in ["ghcr.io/corp", "quay.io"]"#,
                r#"write `(container.image.registry in […] || container.image.registry == "ghcr.io" && container.image.name startsWith "corp/")`, without "ghcr.io/corp" in the list"#,
            ),
            (r#"container.image.registry not in ["GHCR.io", "quay.io"]"#, r#"put `"ghcr.io"` in place of "GHCR.io""#),
            (
                r#"container.image.name == "nginx:1.2""#,
                r#"write `container.image.name == "nginx" && container.image.tag == "1.2"`"#,
            ),
            (
                r#"container.image.name != "ghcr.io/a/b@sha256:ab""#,
                r#"write `not (container.image.registry == "ghcr.io" && container.image.name == "a/b" && container.image.sha256 == "ab")`"#,
            ),
            (r#"container.image.tag == ":latest""#, r#"write `container.image.tag == "latest"`"#),
            (r#"container.image.sha256 == "sha256:ab""#, r#"write `container.image.sha256 == "ab"`"#),
            (r#"container.image.sha256 startsWith "sha256:ab""#, r#"write `container.image.sha256 startsWith "ab"`"#),
            (r#"container.image.sha256 == """#, "write `container.image.sha256 == nil`"),
            (r#"container.image.tag == """#, r#"write `container.image.tag == "latest"`"#),
            (r#"container.image.tag == "" || container.image.tag == "latest""#, ""),
            (r#"container.image.tag == nil || container.image.tag == """#, ""),
            (r#"container.image startsWith "docker.io""#, r#"write `container.image.registry == "docker.io"`"#),
            (r#"container.image startsWith "docker.io/""#, r#"write `container.image.registry == "docker.io"`"#),
            (
                r#"container.image startsWith "docker.io/corp/""#,
                r#"write `container.image.registry == "docker.io" && container.image.name startsWith "corp/"`"#,
            ),
            (
                r#"container.image not startsWith "docker.io/library/""#,
                r#"write `not (container.image.registry == "docker.io" && not (container.image.name contains "/"))`"#,
            ),
            (r#"container.image.name == "corp/app""#, ""),
            (r#"container.image.registry in ["ghcr.io", "localhost:5000", "docker.io"]"#, ""),
            (r#"container.image.name startsWith "corp/""#, ""),
        ] {
            check(rule, expected);
            assert!(expected.is_empty() || told(rule)[0].starts_with("Error"), "{rule}");
        }
    }

    #[test]
    fn what_may_be_the_path_in_another_registry_is_a_warning() {
        for (rule, expected) in [
            (
                r#"container.image.name != "ghcr.io/corp/app""#,
                r#"write `not (container.image.registry == "ghcr.io" && container.image.name == "corp/app")`"#,
            ),
            (r#"container.image.name == "library/nginx""#, r#"write `container.image.name == "nginx"`"#),
            (
                r#"container.image.name startsWith "ghcr.io/corp/""#,
                r#"write `container.image.registry == "ghcr.io" && container.image.name startsWith "corp/"`"#,
            ),
            (
                r#"container.image.name startsWith "library/""#,
                r#"write `container.image.registry == "docker.io" && not (container.image.name contains "/")`"#,
            ),
            (r#"container.image.registry == "harbor.corp.io" && container.image.name startsWith "library/""#, ""),
            (r#"container.image.registry == "harbor.corp.io" && container.image.name == "library/nginx""#, ""),
            (r#"container.image.registry == "mirror.corp.io" && container.image.name startsWith "docker.io/""#, ""),
        ] {
            check(rule, expected);
            assert!(expected.is_empty() || told(rule)[0].starts_with("Warning"), "{rule}");
        }
    }

    #[test]
    fn an_image_without_a_tag_is_the_latest_too() {
        let told_of = "an image that is written without a tag is \"latest\" too, and does not end so: write ";
        for (rule, expected) in [
            (r#"container.image endsWith ":latest""#, r#"`container.image.tag == "latest"`"#),
            (r#"container.image contains ":latest""#, r#"`container.image.tag == "latest"`"#),
            (r#"container.image not endsWith ":latest""#, r#"`not (container.image.tag == "latest")`"#),
            (r#"container.image matches ":latest$""#, r#"`container.image.tag == "latest"`"#),
            (r#"container.image matches "^.*:latest$""#, r#"`container.image.tag == "latest"`"#),
        ] {
            check(rule, &format!("{told_of}{expected}"));
        }
        for rule in [
            r#"container.image endsWith ":latest" || container.image.tag == "latest""#,
            r#"container.image endsWith ":latest-debug""#,
            r#"container.image matches "^nginx:latest$""#,
            r#"container.image endsWith ":1.2""#,
        ] {
            check(rule, "");
        }
    }

    #[test]
    fn a_long_list_of_mistakes_is_told_once() {
        let texts = |text: &str| vec![format!("{text:?}"); 5000].join(", ");
        for text in ["", ":a", "a"] {
            let long = "a".repeat(30_000);
            let problems = told(&format!("image({long:?}).tag in [{}]", texts(text))).len();
            assert_eq!(problems, usize::from(text != "a"), "{text:?}");
            assert_eq!(told(&format!("container.image.tag in [{}]", texts(text))).len(), usize::from(text != "a"));
        }
    }
}
