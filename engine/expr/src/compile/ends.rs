//! Allow-lists that let in more than they name: `"registry.example"` is also the beginning of `"registry.example.org"`, `"example.com"` the end of
//! `"anexample.com"`, and a pattern without `^` is found anywhere. Who may choose the text gets around such a rule.

use super::{Compiler, Typed, form::Form, operators::name_of};
use crate::{
    ast::{Binary, Id, Kind as Syntax},
    schema::Shape,
};

/// Words in the names of fields that hold names of hosts.
const HOSTS: [&str; 6] = ["host", "dns", "domain", "externalname", "commonname", "server"];

/// What may go on behind a text, or before it, and what to write so that nothing does.
struct Loose {
    more: String,
    instead: Instead,
}

enum Instead {
    /// Another text for the same operator.
    Text(String),
    /// Another text for another operator.
    By(Binary, String),
    /// The text itself, or another text for the same operator.
    Either(String),
}

impl<'s> Compiler<'s> {
    /// Warns of `not (container.image startsWith "registry.example")`, where the rule is true of what does not begin so and more begins so than
    /// is meant.
    pub(super) fn warn_of_loose_ends(
        &mut self,
        at: u32,
        operator: Binary,
        (left_id, left): (Id, &Typed<'s>),
        right_id: Id,
    ) {
        let is_text = matches!(operator, Binary::StartsWith | Binary::EndsWith | Binary::Contains | Binary::Matches);
        if self.strict || !is_text {
            return;
        }
        let tree = self.tree;
        let (texts, is_each): (Vec<&str>, bool) = match tree.kind(right_id) {
            Syntax::Text(text) => (vec![text.as_ref()], false),
            Syntax::Pointer("") => (self.texts_of_item(), true),
            _ => return,
        };
        let is_whole = matches!(left.known.form, Form::Shaped(Shape::TextWith(_)));
        let found = texts.into_iter().find_map(|text| {
            let loose = match operator {
                Binary::StartsWith => self.loose_beginning(left_id, text, is_whole),
                Binary::EndsWith => self.loose_end(left_id, text),
                Binary::Contains => loose_middle(text).filter(|_| is_whole),
                _ => loose_pattern(text),
            };
            loose.map(|loose| (text, loose))
        });
        let Some((text, Loose { more, instead })) = found else { return };
        if !self.is_decided(left_id, right_id, false) {
            return;
        }
        let subject = self.shown(left_id);
        let (not, sign) = (if self.is_negated(at) { "not " } else { "" }, name_of(operator));
        let advice = match (instead, is_each) {
            (Instead::Text(other), true) => format!("put {other:?} in the place of {text:?}"),
            (Instead::Text(other), false) => format!("write `{subject} {not}{sign} {other:?}`"),
            (Instead::By(operator, other), _) => format!("write `{subject} {not}{} {other:?}`", name_of(operator)),
            (Instead::Either(other), true) => {
                format!("write `({subject} == # || {subject} {sign} …)`, with {other:?} for {text:?}")
            }
            (Instead::Either(other), false) => {
                format!("write `{not}({subject} == {text:?} || {subject} {sign} {other:?})`")
            }
        };
        self.warn(at, format!("{more}, and this rule lets that through: {advice}"));
    }

    /// The texts of the list whose elements the innermost predicate goes through, if it has nothing else.
    fn texts_of_item(&self) -> Vec<&'s str> {
        let Some(scope) = self.scopes.last().filter(|scope| scope.has_texts) else { return Vec::new() };
        let collection = match self.tree.kind(scope.collection) {
            Syntax::Identifier(name) => self.variable(name).map_or(scope.collection, |variable| variable.value),
            _ => scope.collection,
        };
        let Syntax::Array(elements) = self.tree.kind(collection) else { return Vec::new() };
        let text = |id: &Id| match self.tree.kind(*id) {
            Syntax::Text(text) => Some(text.as_ref()),
            _ => None,
        };
        elements.iter().filter_map(text).collect()
    }

    /// What may follow a beginning that is meant to be a host, or a folder.
    fn loose_beginning(&self, subject: Id, text: &str, is_whole: bool) -> Option<Loose> {
        let host = text.split_once("://").map(|(_, host)| host);
        if is_host(host.unwrap_or(text)) && (is_whole || host.is_some()) {
            let more = format!("{text:?} is also the beginning of \"{text}.example/\"");
            return Some(Loose { more, instead: Instead::Text(format!("{text}/")) });
        }
        let is_folder = text.len() > 1 && text.starts_with('/') && !text.ends_with('/');
        let is_below = is_folder && self.is_of_host_path(subject);
        is_below.then(|| {
            let more = format!("{text:?} is also the beginning of \"{text}-other\"");
            Loose { more, instead: Instead::Either(format!("{text}/")) }
        })
    }

    /// What may stand before an end that is meant to be a domain.
    fn loose_end(&self, subject: Id, text: &str) -> Option<Loose> {
        let name = match self.tree.kind(subject) {
            Syntax::Pointer("") => self.list_of_item().map(str::to_owned),
            Syntax::Binary(Binary::Coalesce, first, _) => self.last_name(*first).map(str::to_owned),
            _ => self.last_name(subject).map(str::to_owned),
        };
        let name = name?.to_lowercase();
        let is_domain = is_host(text) && HOSTS.iter().any(|word| name.contains(word));
        is_domain.then(|| {
            let more = format!("{text:?} is also the end of \"other{text}\"");
            Loose { more, instead: Instead::Either(format!(".{text}")) }
        })
    }

    /// Whether something is a folder of the node.
    fn is_of_host_path(&self, id: Id) -> bool {
        let Syntax::Member { base, .. } = self.tree.kind(id) else { return false };
        self.last_name(*base) == Some("hostPath")
    }
}

/// Where a part of the name of an image may stand that is meant to be its registry.
fn loose_middle(text: &str) -> Option<Loose> {
    let (host, _) = text.split_once('/')?;
    let more = format!("{text:?} may be anywhere in it, as in \"other.example/{text}\"");
    is_host(host).then(|| Loose { more, instead: Instead::By(Binary::StartsWith, text.to_owned()) })
}

/// What is let through by a pattern that is found anywhere. Who begins with `.*` means that.
fn loose_pattern(pattern: &str) -> Option<Loose> {
    let is_anchored = pattern.contains(['^', '$']) || pattern.contains("\\A") || pattern.contains("\\b");
    if is_anchored || pattern.starts_with("(?") || pattern.starts_with(".*") || pattern.starts_with(".+") {
        return None;
    }
    let (part, end) = match pattern.strip_suffix(".*") {
        Some(part) => (part, ""),
        None => (pattern, "$"),
    };
    let whole = if part.contains('|') { format!("^({part}){end}") } else { format!("^{part}{end}") };
    let more = "a pattern without `^` may be found anywhere in a text".to_owned();
    Some(Loose { more, instead: Instead::Text(whole) })
}

/// Whether a text is the name of a host with a domain, maybe with a port.
fn is_host(text: &str) -> bool {
    let (name, port) = text.split_once(':').map_or((text, None), |(name, port)| (name, Some(port)));
    let is_label =
        |label: &str| !label.is_empty() && label.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '-');
    let is_top = |label: &str| label.len() > 1 && label.chars().all(|letter| letter.is_ascii_alphabetic());
    name.contains('.')
        && name.split('.').all(is_label)
        && name.rsplit('.').next().is_some_and(is_top)
        && port.is_none_or(|port| !port.is_empty() && port.chars().all(|digit| digit.is_ascii_digit()))
}
