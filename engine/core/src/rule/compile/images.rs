//! Parts of an image that they can never be: a registry has no path behind it, a name has no registry before it.

use portal_expr::{Compared, Facts};

use super::Compiler;
use crate::{
    context::{IMAGE_NAME, IMAGE_REGISTRY, IMAGE_SHA256, IMAGE_TAG, image::Image},
    rule::diagnostic::Level,
};

impl Compiler<'_> {
    /// Refuses to compare a part of an image with what it can never be.
    pub(super) fn check_images(&mut self, facts: &Facts) {
        for compared in &facts.compared {
            let place = (compared.line, compared.column);
            let message = never(compared).or_else(|| empty(compared, facts)).or_else(|| short(compared));
            if let Some(message) = message {
                self.add_at(Level::Error, place, message);
            }
        }
    }
}

/// What is wrong with a comparison that has always the same answer.
fn never(compared: &Compared) -> Option<String> {
    let Compared { field, subject, operator, text, .. } = compared;
    let image = subject.rsplit_once('.').map_or(subject.as_str(), |(image, _)| image);
    let is_equality = matches!(*operator, "==" | "!=" | "in" | "not in");
    let is_start = *operator == "startsWith";
    let not = |advice: String| match *operator {
        "!=" | "not in" => format!("not ({advice})"),
        _ => advice,
    };
    let equal = |field: &str, value: &str| match *operator {
        "!=" | "not in" => format!("{image}.{field} != {value:?}"),
        _ => format!("{image}.{field} == {value:?}"),
    };
    match *field {
        Some(IMAGE_REGISTRY) if text.is_empty() && is_equality => Some(format!(
            "every image has a registry, which is docker.io where none is written: write `{}`",
            equal("registry", "docker.io")
        )),
        Some(IMAGE_REGISTRY) if (is_equality || is_start) && text.contains('/') => {
            let (registry, name) = text.split_once('/')?;
            let path = match name {
                "" => String::new(),
                _ => format!(" && {image}.name startsWith {:?}", format!("{}/", name.trim_end_matches('/'))),
            };
            let advice = not(format!("{image}.registry == {registry:?}{path}"));
            Some(format!("a registry has no `/`, so that this is never {text:?}: write `{advice}`"))
        }
        Some(IMAGE_REGISTRY) if is_equality => {
            let whole = format!("{text}/x");
            let parts = Image(&whole);
            match (parts.name(), parts.registry()) {
                _ if text.contains(['*', '?']) => None,
                ("x", known) if known == *text => None,
                ("x", known) => Some(format!("this is never {text:?}: write `{}`", equal("registry", &known))),
                _ => Some(format!(
                    "this is never {text:?}: a registry has a `.` or a `:` in it, such as \"ghcr.io\"; what stands first in a name is asked \
                     by `{image}.name startsWith {:?}`",
                    format!("{text}/")
                )),
            }
        }
        Some(IMAGE_NAME) if is_equality && !text.is_empty() => {
            let parts = Image(text);
            let (registry, name, tag) = (parts.registry(), parts.name(), parts.tag());
            if name == text.as_str() {
                return None;
            }
            let has_registry = text.starts_with(&*registry);
            let has_tag = text[text.find(name).unwrap_or(0)..].len() > name.len();
            let mut advice = vec![format!("{image}.name == {name:?}")];
            if has_registry {
                advice.insert(0, format!("{image}.registry == {registry:?}"));
            }
            if let Some(tag) = tag.filter(|_| has_tag) {
                advice.push(format!("{image}.tag == {tag:?}"));
            }
            let advice = if advice.len() == 1 { equal("name", name) } else { not(advice.join(" && ")) };
            let because = match (has_registry, has_tag) {
                (true, _) => "a name has no registry before it",
                (_, true) => "a name has no tag behind it",
                _ => "a name is without Docker Hub's `library/`",
            };
            Some(format!("{because}, so that this is never {text:?}: write `{advice}`"))
        }
        Some(IMAGE_NAME) if is_start => {
            let first = text.split('/').next().filter(|_| text.contains('/'))?;
            let rest = &text[first.len() + 1..];
            let whole = format!("{first}/x");
            let parts = Image(&whole);
            if parts.name() != "x" {
                return None;
            }
            let registry = if first == "library" { "docker.io".into() } else { parts.registry() };
            let path = match rest {
                "" if first == "library" => format!(" && not ({image}.name contains \"/\")"),
                "" => String::new(),
                _ => format!(" && {image}.name startsWith {rest:?}"),
            };
            Some(format!(
                "a name never begins with {:?}: write `{image}.registry == {registry:?}{path}`",
                format!("{first}/")
            ))
        }
        Some(IMAGE_TAG) if is_equality && text.starts_with(':') => {
            Some(format!("a tag is without its `:`: write `{}`", equal("tag", text.trim_start_matches(':'))))
        }
        Some(IMAGE_SHA256) if (is_equality || is_start) && text.starts_with("sha256:") => {
            let digest = text.trim_start_matches("sha256:");
            Some(match digest {
                "" => format!("this is the digest without its `sha256:`: write `{image}.sha256 != nil`"),
                _ => format!("this is the digest without its `sha256:`: write `{}`", equal("sha256", digest)),
            })
        }
        _ => None,
    }
}

/// What is wrong with a part that is compared with "", and is missing instead.
fn empty(compared: &Compared, facts: &Facts) -> Option<String> {
    let Compared { field, subject, operator, text, may_be_nil, .. } = compared;
    if !text.is_empty() || !may_be_nil {
        return None;
    }
    let (equal, is_negated) = if matches!(*operator, "!=" | "not in") { ("!=", true) } else { ("==", false) };
    match *field {
        // `tag == "" || tag == "latest"` is right by its second half.
        Some(IMAGE_TAG) if facts.compared.iter().any(|other| other.subject == *subject && other.text == "latest") => {
            None
        }
        Some(IMAGE_TAG) => Some(format!(
            "a tag is never \"\": an image that is written without one has the tag \"latest\", and `nil` if it has a digest: write \
             `{subject} {equal} \"latest\"`"
        )),
        Some(IMAGE_SHA256) if is_negated || *operator == "==" => {
            Some(format!("a digest is never \"\", and what is missing is `nil`: write `{subject} {equal} nil`"))
        }
        _ => None,
    }
}

/// What is wrong with a text that begins with Docker Hub's name, which most of its images leave out.
fn short(compared: &Compared) -> Option<String> {
    let Compared { field, subject, operator, text, .. } = compared;
    if field.is_some() || *operator != "startsWith" {
        return None;
    }
    let path = text.strip_prefix("docker.io/").or_else(|| text.strip_prefix("index.docker.io/"))?;
    let name = match path.strip_prefix("library/").unwrap_or(path) {
        "" => String::new(),
        name => format!(" && {subject}.name startsWith {name:?}"),
    };
    Some(format!(
        "an image that is written without a registry is docker.io's too, and does not begin so: write `{subject}.registry == \
         \"docker.io\"{name}`"
    ))
}

#[cfg(test)]
mod tests {
    use crate::testing::rules;

    #[track_caller]
    fn check(rule: &str, expected: &str) {
        let (_, problems) = rules(&format!("name: a\nmatch: {{gvk: [{{kind: Pod}}]}}\nrule: '{rule}'\n"));
        let told = problems.first().map_or("", String::as_str);
        assert!(told.contains(expected) && expected.is_empty() == told.is_empty(), "{rule}: {told}");
    }

    #[test]
    fn what_a_part_of_an_image_can_never_be_is_told_with_the_way_out() {
        for (rule, expected) in [
            (
                r#"container.image.registry == "ghcr.io/evil""#,
                r#"write `container.image.registry == "ghcr.io" && container.image.name startsWith "evil/"`"#,
            ),
            (r#"container.image.registry == """#, r#"write `container.image.registry == "docker.io"`"#),
            (r#"container.image.registry != "index.docker.io""#, r#"write `container.image.registry != "docker.io"`"#),
            (
                r#"container.image.name != "ghcr.io/corp/app""#,
                r#"write `not (container.image.registry == "ghcr.io" && container.image.name == "corp/app")`"#,
            ),
            (r#"container.image.name == "library/nginx""#, r#"write `container.image.name == "nginx"`"#),
            (
                r#"container.image.name == "nginx:1.2""#,
                r#"write `container.image.name == "nginx" && container.image.tag == "1.2"`"#,
            ),
            (
                r#"container.image.name startsWith "ghcr.io/corp/""#,
                r#"write `container.image.registry == "ghcr.io" && container.image.name startsWith "corp/"`"#,
            ),
            (r#"container.image.tag == ":latest""#, r#"write `container.image.tag == "latest"`"#),
            (r#"container.image.sha256 == "sha256:ab""#, r#"write `container.image.sha256 == "ab"`"#),
            (r#"container.image.sha256 == """#, "write `container.image.sha256 == nil`"),
            (r#"container.image.tag == """#, r#"write `container.image.tag == "latest"`"#),
            (r#"container.image.tag == "" || container.image.tag == "latest""#, ""),
            (r#"container.image.tag == nil || container.image.tag == """#, ""),
            (r#"container.image startsWith "docker.io/""#, r#"write `container.image.registry == "docker.io"`"#),
            (
                r#"container.image startsWith "docker.io/corp/""#,
                r#"write `container.image.registry == "docker.io" && container.image.name startsWith "corp/"`"#,
            ),
            (r#"container.image.name == "corp/app""#, ""),
            (r#"container.image.registry in ["ghcr.io", "localhost:5000", "docker.io"]"#, ""),
            (r#"container.image.name startsWith "corp/""#, ""),
        ] {
            check(rule, expected);
        }
    }
}
