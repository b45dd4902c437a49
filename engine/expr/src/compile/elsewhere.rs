//! Fields that were looked for in the wrong place: the schema knows where they are, and the host knows what people mean who write
//! a path that there is not.

use std::collections::HashSet;

use super::{
    Compiler, Typed,
    form::{Form, Member},
};
use crate::{
    ast::{Id, Kind as Syntax},
    error::Error,
    habits,
    schema::{ObjectId, Root},
    suggest,
    types::Type,
};

/// How many fields a path has at most that is found for another. Who is further off means something else.
const MAX_DEPTH: usize = 4;

/// A field of the same name that is no further off is what is meant, rather than one with a similar name.
const NEAR: usize = 2;

/// More places than these are no help.
const MAX_SHOWN: usize = 2;

/// A field, where it is.
struct Place {
    text: String,
    /// How far it is from where it was looked for.
    distance: usize,
    /// The place of the search that found it among others: the value itself comes first, and then the roots.
    search: usize,
}

/// A value that fields are looked for in, and the way to it.
struct Candidate<'s> {
    path: String,
    /// The list on the way, whose elements the path begins with.
    list: Option<String>,
    form: Form<'s>,
    distance: usize,
}

impl<'s> Compiler<'s> {
    /// Whether a value can have no field of this name, whatever it is.
    pub(super) fn lacks(&self, base: &Form<'s>, name: &str) -> bool {
        base.alternatives().iter().all(|form| matches!(form.member(self.schema, name), Member::None))
    }

    /// What is wrong with a field that a value does not have, with the fields that follow it.
    pub(super) fn misplaced(&self, link: Id, base: &Typed<'s>, fields: &[&str]) -> Error {
        let (Some(name), Syntax::Member { base: base_id, .. }) = (fields.first(), self.tree.kind(link)) else {
            return self.error(self.at(link), "this has no such field");
        };
        let hint = self.hint_of_field(*base_id, base, name, fields).unwrap_or_default();
        self.error(self.at(link), format!("{}{hint}", self.no_field(&base.known, name)))
    }

    /// What may be meant by a field that there is not: what is nearest comes first.
    fn hint_of_field(&self, base_id: Id, base: &Typed<'s>, name: &str, fields: &[&str]) -> Option<String> {
        let objects: Vec<ObjectId> = base.known.form.alternatives().iter().filter_map(Form::object).collect();
        let own = || objects.iter().flat_map(|id| self.schema.object(*id).fields.keys().map(String::as_str));
        let path = match self.shown(base_id) {
            element if element == "#" => String::new(),
            path => path,
        };
        // The key of an amount may have a dot in it: `hard["requests.cpu"]`.
        if let (Type::QUANTITY, Syntax::Member { base: map, property, .. }) = (base.known.kind, self.tree.kind(base_id))
            && let Syntax::Text(key) = self.tree.kind(*property)
        {
            return Some(format!(": write `{}[\"{key}.{name}\"]` if that is the key", self.shown(*map)));
        }
        // What the host says of this very path is right, however near another name is.
        let told = self.schema.hint(&path_of(&path, &fields[..1])).and_then(|_| self.hinted(&path, fields));
        if let Some(hint) = told {
            return Some(hint.to_string());
        }
        if let Some(ours) = self.of_outer_element(base_id, fields) {
            return Some(format!(": it is a field of the element further out, which needs a name: write `{ours}`"));
        }
        if let Some(nearest) = suggest::nearest(name, own()) {
            return Some(format!(", did you mean `{nearest}`?"));
        }
        let types: Vec<String> = match objects.is_empty() {
            true => vec![base.known.kind.to_string()],
            false => objects.iter().map(|id| self.schema.object(*id).name.clone()).collect(),
        };
        if let Some(hint) = self.hinted(&path, fields).or_else(|| self.hinted_of_type(&path, &types, fields)) {
            return Some(hint.to_string());
        }
        // That of another value with the same fields is not what is meant.
        let is_reached_otherwise = path.is_empty() || path.starts_with('.') || path.contains('(');
        let is_computed = |id: &ObjectId| self.schema.computes(name) == Some(&*self.schema.object(*id).name);
        if is_reached_otherwise && objects.iter().any(is_computed) {
            let place = self.place_below_roots(fields).map(|place| format!(", as in {place}")).unwrap_or_default();
            return Some(format!(": it is worked out for what is judged alone{place}"));
        }
        let because = self.schema.hint(&format!("{path}.*"));
        let reason = because.map(|hint| format!(": {}", hint.because)).unwrap_or_default();
        let write = |text: String| match reason.is_empty() {
            true => format!(": write {text}"),
            false => format!("{reason}, write {text}"),
        };
        // A field too many on the way.
        if let Some(count) = (1..fields.len()).find(|count| self.resolves(&base.known.form, &fields[*count..])) {
            return Some(write(format!("`{}`", path_of(&path, &fields[count..]))));
        }
        if let Some(hint) = because.filter(|hint| self.leads_somewhere(&hint.instead, fields)) {
            return Some(write(format!("`{}`", path_of(&hint.instead, fields))));
        }
        if objects.is_empty() {
            return None;
        }
        let mut places = self.search(path, &base.known.form, fields, 0);
        places.extend(self.search_roots(fields, 1));
        let similar = suggest::similar(name, own());
        let is_near = places.iter().any(|place| place.distance <= NEAR);
        if !similar.is_empty() && !is_near {
            return Some(format!(", did you mean {}?", listed(&similar)));
        }
        let places = nearest_places(places);
        if places.is_empty() { (!reason.is_empty()).then_some(reason) } else { Some(write(listed(&places))) }
    }

    /// A predicate whose element has the fields that were looked for in an element further in, with a name for its own.
    fn of_outer_element(&self, element: Id, fields: &[&str]) -> Option<String> {
        let Syntax::Pointer("") = self.tree.kind(element) else { return None };
        let (_, outer) = self.scopes.split_last()?;
        let has_fields = |form: &Form<'s>| form.object().is_some() && self.resolves(form, fields);
        let depth = outer.iter().rposition(|scope| scope.item.form.alternatives().iter().any(has_fields))?;
        let predicates = self.predicates_around(element);
        let is_taken = |name: &&&str| !self.is_unknown_name(name);
        let name = ["outer", "around", "one"].iter().find(|name| !is_taken(name))?;
        habits::with_outer(self.tree, name, *predicates.get(depth)?, element)
    }

    /// The predicates that a part of the expression is in, from the outside in.
    fn predicates_around(&self, id: Id) -> Vec<Id> {
        let mut parents: Vec<Option<Id>> = vec![None; self.tree.nodes.len()];
        for (index, node) in self.tree.nodes.iter().enumerate() {
            node.kind.each_child(|child| parents[child.0 as usize] = Some(Id(index as u32)));
        }
        let parent_of = |id: &Id| parents[id.0 as usize];
        let around = std::iter::successors(Some(id), parent_of);
        let mut predicates: Vec<Id> = around
            .filter(|id| matches!(self.tree.kind(*id), Syntax::Predicate(_)))
            .filter_map(|id| parent_of(&id))
            .collect();
        predicates.reverse();
        predicates
    }

    /// Where a field of some root is, as it is written: nothing if there is none, or too many.
    pub(super) fn place_below_roots(&self, fields: &[&str]) -> Option<String> {
        let places = nearest_places(self.search_roots(fields, 0));
        (!places.is_empty()).then(|| listed(&places))
    }

    /// What is asked of those elements that a `filter` leaves, of whose list nobody can ask it.
    pub(super) fn asked_of_filtered(&self, list: Id, fields: &[&str]) -> Option<String> {
        let Syntax::Builtin { name: "filter", arguments } = self.tree.kind(list) else { return None };
        let [list, body] = arguments[..] else { return None };
        let (list, body, path) = (self.shown(list), self.shown(body), path_of("", fields));
        let is_choice = ["||", " or ", "?"].iter().any(|sign| body.contains(sign));
        let asked = if is_choice { format!("({body})") } else { body.clone() };
        Some(format!("`find({list}, {body}){path}` for the first of them, or `any({list}, {asked} && {path} …)`"))
    }

    /// Where the elements of a list have a field, and how it is asked for an element by name or by itself.
    pub(super) fn asked_of_elements(&self, base: &str, list: &Form<'s>, fields: &[&str]) -> Option<String> {
        let (name, element) = (fields.first()?, list.element());
        if element.kind() == Type::TEXT {
            return Some(format!("`{name:?} in {base}`"));
        }
        if !self.lacks(&element, name) {
            let path = if self.resolves(&element, fields) { path_of("", fields) } else { format!(".{name}") };
            return Some(format!("`any({base}, {path} …)`, or `{base}[0]{path}`"));
        }
        element.object()?;
        if let [place] = &nearest_places(self.search(String::new(), &element, fields, 0))[..]
            && place.starts_with('.')
        {
            return Some(format!("`any({base}, {place} …)`"));
        }
        (!self.lacks(&element, "name")).then(|| format!("`any({base}, .name == {name:?} && …)`"))
    }

    /// Whether these fields can be read, one below the other.
    fn resolves(&self, form: &Form<'s>, fields: &[&str]) -> bool {
        let Some((name, rest)) = fields.split_first() else { return true };
        form.alternatives().iter().any(|form| match form.member(self.schema, name) {
            Member::None => false,
            Member::Read { form: Form::Any, .. } => true,
            // What is asked of the elements of a list is told there.
            Member::Read { form, .. } => form.kind().is_array() || self.resolves(&form, rest),
            Member::Computed { shape, .. } => self.resolves(&Form::shaped(shape), rest),
        })
    }

    /// Whether a path leads to a field that everything has that its root may be. Of several kinds some may have no such field.
    pub(super) fn is_of_all(&self, id: Id) -> bool {
        let (mut names, mut node) = (Vec::new(), id);
        while let Syntax::Member { base, property, .. } = self.tree.kind(node) {
            let Syntax::Text(name) = self.tree.kind(*property) else { return true };
            names.push(name.as_ref());
            node = *base;
        }
        let Syntax::Identifier(root) = self.tree.kind(node) else { return true };
        let Some(root) = self.schema.root(root) else { return true };
        let mut form = Form::shaped(&root.shape);
        for name in names.into_iter().rev() {
            let mut found = Vec::new();
            for alternative in form.alternatives() {
                match alternative.member(self.schema, name) {
                    Member::None => return false,
                    Member::Read { form, .. } => found.push(form),
                    Member::Computed { .. } => return true,
                }
            }
            form = Form::any_of(found);
        }
        true
    }

    /// Whether what is meant by a path can be read. What is called is not looked at.
    pub(super) fn may_be_read(&self, path: &str) -> bool {
        path.contains('(') || self.leads_somewhere(path, &[])
    }

    /// Whether a path that begins with a root can be read, with these fields below it.
    fn leads_somewhere(&self, path: &str, fields: &[&str]) -> bool {
        let mut names = path.split('.');
        let Some(root) = names.next().and_then(|name| self.schema.root(name)) else { return false };
        let names: Vec<&str> = names.chain(fields.iter().copied()).collect();
        let form = Form::shaped(&root.shape);
        matches!(form, Form::Any) || self.resolves(&form, &names)
    }

    fn search_roots(&self, fields: &[&str], distance: usize) -> Vec<Place> {
        let mut roots: Vec<(&str, &Root)> =
            self.schema.root_names().filter_map(|name| Some((name, self.schema.root(name)?))).collect();
        roots.sort_by_key(|(_, root)| root.slot);
        let mut places = Vec::new();
        for (index, (name, root)) in roots.into_iter().enumerate() {
            let form = Form::shaped(&root.shape);
            let search = index + 1;
            if fields.first() == Some(&name) && self.resolves(&form, &fields[1..]) {
                places.push(Place { text: path_of(name, &fields[1..]), distance, search });
            }
            let found = self.search(name.to_owned(), &form, fields, distance);
            places.extend(found.into_iter().map(|place| Place { search, ..place }));
        }
        places
    }

    /// Where the fields are below a value, from the top down. What has been looked at is not looked at again.
    fn search(&self, path: String, form: &Form<'s>, fields: &[&str], distance: usize) -> Vec<Place> {
        let Some((name, rest)) = fields.split_first() else { return Vec::new() };
        let mut places = Vec::new();
        let mut seen: HashSet<ObjectId> = HashSet::new();
        let mut level = vec![Candidate { path, list: None, form: form.clone(), distance }];
        for _ in 0..MAX_DEPTH {
            let mut next = Vec::new();
            for candidate in level {
                for form in candidate.form.alternatives() {
                    let Some(id) = form.object().filter(|id| seen.insert(*id)) else { continue };
                    let mut names: Vec<&String> = self.schema.object(id).fields.keys().collect();
                    names.sort_unstable();
                    for field in names {
                        let below = match form.member(self.schema, field) {
                            Member::Read { form, .. } => form,
                            Member::Computed { shape, .. } => Form::shaped(shape),
                            Member::None => continue,
                        };
                        // What a status says is seldom asked for.
                        let distance = candidate.distance + 1 + usize::from(field == "status");
                        let last = candidate.path.rsplit('.').next().unwrap_or_default();
                        let is_meant = field.eq_ignore_ascii_case(name) || is_joined(name, last, field);
                        if is_meant && self.resolves(&below, rest) {
                            let path = path_of(&candidate.path, &[&[&**field], rest].concat());
                            let text = match &candidate.list {
                                Some(list) => format!("any({list}, {path} …)"),
                                None => path,
                            };
                            places.push(Place { text, distance, search: 0 });
                        }
                        let path = path_of(&candidate.path, &[field]);
                        let is_list = below.kind().is_array();
                        match &candidate.list {
                            None if is_list => next.push(Candidate {
                                path: String::new(),
                                list: Some(path),
                                form: below.element(),
                                distance: distance + 1,
                            }),
                            list if !is_list => {
                                next.push(Candidate { path, list: list.clone(), form: below, distance });
                            }
                            _ => {}
                        }
                    }
                }
            }
            level = next;
        }
        places
    }
}

/// The nearest of these, if they are few. Those below the value itself come before others.
fn nearest_places(mut places: Vec<Place>) -> Vec<String> {
    let Some(nearest) = places.iter().map(|place| (place.distance, place.search)).min() else { return Vec::new() };
    places.retain(|place| (place.distance, place.search) == nearest);
    places.dedup_by(|one, other| one.text == other.text);
    if places.len() > MAX_SHOWN { Vec::new() } else { places.into_iter().map(|place| place.text).collect() }
}

/// Whether a name is that of a field and the one above it in one: `imageTag`.
fn is_joined(name: &str, above: &str, field: &str) -> bool {
    let end = name.len().wrapping_sub(field.len());
    !above.is_empty()
        && name.get(..end).is_some_and(|start| start.eq_ignore_ascii_case(above))
        && name.get(end..).is_some_and(|end| end.eq_ignore_ascii_case(field))
}

fn listed(names: &[impl AsRef<str>]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{}`", name.as_ref())).collect();
    quoted.join(" or ")
}

/// Fields below a path. Below nothing they are those of an element.
pub(super) fn path_of(path: &str, fields: &[&str]) -> String {
    fields.iter().fold(path.to_owned(), |path, field| format!("{path}.{field}"))
}
