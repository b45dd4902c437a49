//! Files of folders that hold no object: values of a chart, its templates, what kustomize reads. Whoever names a folder means the
//! objects in it. Whoever names a file means that file.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use portal_core::manifest::{Manifest, Problem};
use portal_document::{Node, View};

use crate::check::judge::{Failed, unread};

/// The group of what kustomize reads. No cluster serves it.
const KUSTOMIZE: &str = "kustomize.config.k8s.io";

/// What is wrong with a file, unless the file need not hold any object.
pub(crate) struct Doubt {
    /// The number of the file.
    order: usize,
    failed: Failed,
    /// Whether it is wrong in a file that holds objects all the same.
    is_wrong_among_objects: bool,
}

/// What each worker found of it.
#[derive(Default)]
pub(crate) struct Doubts {
    list: Vec<Doubt>,
    /// The numbers of the files that hold objects.
    holding: HashSet<usize>,
}

impl Doubts {
    /// A document that is no object.
    pub(crate) fn add_no_object(&mut self, order: usize, failed: Failed) {
        self.list.push(Doubt { order, failed, is_wrong_among_objects: true });
    }

    /// A file with nothing in it.
    pub(crate) fn add_empty(&mut self, order: usize, problem: Problem) {
        self.list.push(Doubt { order, failed: unread(order, problem), is_wrong_among_objects: false });
    }

    /// A part of a template that is no YAML. Gives it back if the text is no template.
    pub(crate) fn add_template(&mut self, order: usize, piece: &Manifest, problem: Problem) -> Option<Failed> {
        if !is_template(piece) {
            // What cannot be read may be an object.
            self.hold(order);
            return Some(unread(order, problem));
        }
        let failed = unread(order, of_template(problem));
        self.list.push(Doubt { order, failed, is_wrong_among_objects: false });
        None
    }

    /// Says that a file holds an object.
    pub(crate) fn hold(&mut self, order: usize) {
        self.holding.insert(order);
    }

    pub(crate) fn append(&mut self, mut other: Doubts) {
        self.list.append(&mut other.list);
        self.holding.extend(other.holding);
    }

    /// What is wrong, and what is passed over, once for each file. `named` is what the user named, files and folders.
    pub(crate) fn settle(self, paths: &[PathBuf], named: &[PathBuf], is_strict: bool) -> (Vec<Failed>, Vec<Failed>) {
        let Doubts { mut list, holding } = self;
        list.sort_by(|one, other| one.failed.location.cmp(&other.failed.location));
        let (mut failures, mut skipped) = (Vec::new(), Vec::new());
        let mut last = None;
        for Doubt { order, failed, is_wrong_among_objects } in list {
            let is_wrong = is_wrong_among_objects && holding.contains(&order);
            if is_strict || is_wrong || is_named(&paths[order], named) {
                failures.push(failed);
            } else if last.replace(order) != Some(order) {
                skipped.push(failed);
            }
        }
        failures.extend(named.iter().filter_map(|folder| without_objects(folder, paths, &holding, &skipped)));
        (failures, skipped)
    }
}

/// Whether the user named this file, and not only a folder that it is in.
pub(crate) fn is_named(path: &Path, named: &[PathBuf]) -> bool {
    named.iter().any(|named| named == path)
}

/// Whether a text is one that a program fills in, such as Helm.
pub(crate) fn is_template(manifest: &Manifest) -> bool {
    manifest.mentions("{{")
}

/// What is wrong with a template that is no YAML.
pub(crate) fn of_template(problem: Problem) -> Problem {
    let message = format!("this is a template and no YAML ({}): check what it renders to", problem.message);
    Problem { message, ..problem }
}

/// Why a document is no object of a cluster, if that is so.
pub(crate) fn no_object(document: Node<'_>) -> Option<&'static str> {
    let text = |name: &str| document.get_str(name).and_then(Node::as_str);
    match (text("apiVersion"), text("kind")) {
        (Some(version), Some(_)) if version.split('/').next() == Some(KUSTOMIZE) => {
            Some("kustomize reads this, and no cluster: check what `kustomize build` writes")
        }
        (Some(_), Some(_)) => None,
        _ => Some("this is no Kubernetes object: it has no apiVersion and kind"),
    }
}

/// What is wrong with the name or the namespace of an object, which an API server would refuse: nothing could look the object up.
pub(crate) fn misnamed(object: Node<'_>) -> Option<String> {
    let metadata = object.get_str("metadata")?;
    ["name", "namespace"].into_iter().find_map(|field| {
        let what = match metadata.get_str(field)?.view() {
            View::Null | View::Str(_) => return None,
            View::Bool(_) => "a boolean, as YAML reads on, off, yes, no, y and n",
            View::Int(_) | View::Float(_) => "a number",
            View::Array(_) => return Some(format!("metadata.{field} is a list: write text")),
            View::Object(_) => return Some(format!("metadata.{field} is a map: write text")),
        };
        Some(format!("metadata.{field} is {what}: write it in quotes"))
    })
}

/// Whether a document that is no object was meant as one.
pub(crate) fn is_meant(document: Node<'_>) -> bool {
    let has = |name: &str| document.get_str(name).is_some();
    let is_kustomize = no_object(document).is_some() && has("apiVersion") && has("kind");
    !is_kustomize && has("metadata") && (has("apiVersion") || has("kind"))
}

/// What is wrong with a folder in which everything is passed over.
fn without_objects(folder: &Path, paths: &[PathBuf], holding: &HashSet<usize>, skipped: &[Failed]) -> Option<Failed> {
    let is_inside = |path: &Path| path != folder && path.starts_with(folder);
    let holds = paths.iter().enumerate().any(|(order, path)| is_inside(path) && holding.contains(&order));
    let passed_over = skipped.iter().filter(|failed| is_inside(Path::new(&failed.location.file))).count();
    if holds || passed_over == 0 || passed_over < paths.iter().filter(|path| is_inside(path)).count() {
        return None;
    }
    let message = "there is no object in this folder: every file in it is passed over";
    Some(unread(0, Problem::of_file(folder.display().to_string(), message)))
}
