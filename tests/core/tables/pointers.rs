//! The texts that are pointers in Kubernetes' Go types. The API server describes them as any other text, so that its sources are read: they
//! are there, because it is built from them.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};

use portal_test_kit::{cache::Cache, kubernetes, repository};

use super::{check, is_newest};

/// A field of a Go type.
struct Field {
    /// What it is called in JSON. Empty: the fields of its type are fields of this one.
    json: String,
    /// Its type, without a package.
    kind: String,
    is_pointer: bool,
}

/// Types by their package, such as `core/v1`, and name.
type Types = HashMap<(String, String), Vec<Field>>;

#[test]
fn the_table_of_pointers_is_what_the_sources_of_kubernetes_say() {
    if !is_newest() {
        return;
    }
    let types = read();
    let table = fs::read_to_string(repository().join("engine/core/src/context/fields.txt")).unwrap();
    let mut pointers = BTreeSet::new();
    let mut owner = "";
    for line in table.lines().skip_while(|line| line.contains(" = ")) {
        match line.trim_start().split_once(' ') {
            None => owner = line,
            Some((field, shape)) if shape.starts_with("text") && !field.ends_with('!') => {
                if is_pointer(&types, owner, field) {
                    pointers.insert(format!("{owner}.{field}\n"));
                }
            }
            Some(_) => {}
        }
    }
    check("engine/core/src/context/pointers.txt", &pointers.into_iter().collect::<String>());
}

/// Whether a field of a type of the table is a pointer in the type of Go that it is.
fn is_pointer(types: &Types, owner: &str, field: &str) -> bool {
    let parts: Vec<&str> = owner.split('/').collect();
    let is_meant = |package: &str, name: &str| match parts[..] {
        [group, version, kind] => name == kind && package == format!("{group}/{version}"),
        _ => name == owner,
    };
    // Of a type of several versions the fields that it has in more than one are the same.
    let mut found = types.iter().filter(|((package, name), _)| is_meant(package, name)).collect::<Vec<_>>();
    found.sort_by_key(|((package, _), _)| (package.contains("alpha"), package.contains("beta"), package.clone()));
    found.iter().find_map(|(_, fields)| pointer_in(types, fields, field)).unwrap_or(false)
}

/// Whether a field is a pointer, if there is one of this name.
fn pointer_in(types: &Types, fields: &[Field], name: &str) -> Option<bool> {
    let own = fields.iter().find(|field| field.json == name).map(|field| field.is_pointer);
    own.or_else(|| {
        fields.iter().filter(|field| field.json.is_empty()).find_map(|inline| {
            types
                .iter()
                .filter(|((_, kind), _)| *kind == inline.kind)
                .find_map(|(_, fields)| pointer_in(types, fields, name))
        })
    })
}

fn read() -> Types {
    let version = kubernetes::DEFAULT_VERSION.strip_prefix('1').unwrap_or_default();
    let modules = Cache::open().unwrap().folder("go/mod/k8s.io").unwrap();
    let mut types = Types::new();
    for (module, groups) in [
        ("api", ""),
        ("apimachinery", "pkg/apis"),
        ("apiextensions-apiserver", "pkg/apis"),
        ("kube-aggregator", "pkg/apis"),
    ] {
        let groups = modules.join(format!("{module}@v0{version}")).join(groups);
        for group in folders(&groups) {
            for version in folders(&group) {
                let package = format!("{}/{}", name_of(&group), name_of(&version));
                let is_source =
                    |file: &PathBuf| name_of(file).ends_with("types.go") || name_of(file).starts_with("types");
                for file in entries(&version).into_iter().filter(is_source) {
                    read_types(&package, &fs::read_to_string(file).unwrap(), &mut types);
                }
            }
        }
    }
    assert!(types.len() > 500, "the sources of Kubernetes are in {}", modules.display());
    types
}

fn read_types(package: &str, source: &str, types: &mut Types) {
    let mut open: Option<(String, Vec<Field>)> = None;
    for line in source.lines() {
        if let Some(name) = line.strip_prefix("type ").and_then(|line| line.strip_suffix(" struct {")) {
            open = Some((name.to_owned(), Vec::new()));
        } else if line == "}" {
            types.extend(open.take().map(|(name, fields)| ((package.to_owned(), name), fields)));
        } else if let (Some((_, fields)), Some((declared, tag))) = (&mut open, line.split_once('`')) {
            let Some((_, json)) = tag.split_once("json:\"") else { continue };
            let json = json.split([',', '"']).next().unwrap_or_default().to_owned();
            let kind = declared.split_whitespace().last().unwrap_or_default();
            let (is_pointer, kind) = (kind.starts_with('*'), kind.rsplit(['.', '*']).next().unwrap_or_default());
            fields.push(Field { json, kind: kind.to_owned(), is_pointer });
        }
    }
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let mut entries: Vec<PathBuf> =
        fs::read_dir(folder).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path())).collect();
    entries.sort();
    entries
}

fn folders(folder: &Path) -> Vec<PathBuf> {
    entries(folder).into_iter().filter(|entry| entry.is_dir()).collect()
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
