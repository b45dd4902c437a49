//! The modules of a target, read from its sources as the compiler would find them.

use std::{
    fs,
    path::{Path, PathBuf},
};

use syn::{
    Attribute, Expr, ExprLit, ItemExternCrate, ItemMod, ItemUse, Lit, Meta, punctuated::Punctuated, visit::Visit,
};

use super::mentions::{self, Kind, Mention, Names, join, plain};

const KEYWORDS: [&str; 3] = ["crate", "self", "super"];

/// Imports followed from one name to what it stands for. More is a circle.
const FOLLOWED: usize = 8;

/// All modules of a target.
#[derive(Default)]
pub(crate) struct Tree {
    pub(crate) files: Vec<PathBuf>,
    pub(crate) modules: Vec<Module>,
    /// Sentences about files that are not there or make no sense.
    pub(crate) problems: Vec<String>,
}

pub(crate) struct Module {
    /// From the root: `crate::admission::review`.
    pub(crate) path: Names,
    pub(crate) file: PathBuf,
    /// It, or a module around it, is `#[cfg(test)]`.
    pub(crate) test_only: bool,
    pub(crate) mentions: Vec<Mention>,
}

/// Where a module looks for the files of its children.
struct Home {
    folder: PathBuf,
    /// For `a.rs` it is `a`: its children are in `folder/a`, but their `#[path]` starts at `folder`.
    inner: Option<String>,
}

/// Walks one file and, through its `mod` declarations, those below it.
struct Reader<'tree> {
    tree: &'tree mut Tree,
    home: Home,
    /// The module that the walk is in, as an index into the tree's.
    module: usize,
}

impl Tree {
    /// Reads the module in `root` and all below it. Modules that a `cfg` leaves out count as there.
    pub(crate) fn read(root: &Path) -> Self {
        let mut tree = Self::default();
        let folder = root.parent().expect("a file is in a folder").to_owned();
        tree.read_file(root, vec!["crate".to_owned()], Home { folder, inner: None }, false);
        tree
    }

    fn read_file(&mut self, file: &Path, path: Names, home: Home, test_only: bool) {
        // A `#[path]` may take a detour through `..`.
        let file = file.canonicalize().expect("found before it is read");
        let source = fs::read_to_string(&file).expect("sources are readable text");
        self.files.push(file.clone());
        match syn::parse_file(&source) {
            Ok(parsed) => {
                let test_only = test_only || is_test_only(&parsed.attrs);
                self.modules.push(Module { path, file, test_only, mentions: Vec::new() });
                let module = self.modules.len() - 1;
                Reader { tree: self, home, module }.visit_file(&parsed);
            }
            Err(error) => {
                let line = error.span().start().line;
                self.problems.push(format!("{}:{line}: cannot be parsed: {error}", file.display()));
            }
        }
    }

    /// What a path that stands in the module at `scope` leads to, from `crate` or from the name of another crate.
    pub(crate) fn resolve(&self, scope: &[String], path: &[String]) -> Names {
        self.follow(scope, path, FOLLOWED)
    }

    fn follow(&self, scope: &[String], path: &[String], left: usize) -> Names {
        let (keywords, names) = path.split_at(path.iter().take_while(|name| KEYWORDS.contains(&name.as_str())).count());
        let mut reached = scope.to_vec();
        for keyword in keywords {
            match keyword.as_str() {
                "crate" => reached.truncate(1),
                "super" => drop(reached.pop()),
                _ => {}
            }
        }
        // Without a keyword, a path starts with a name that this module knows, or with the name of another crate.
        if keywords.is_empty() && names.first().is_none_or(|name| self.look_up(scope, name, left).is_none()) {
            return path.to_vec();
        }
        for name in names {
            reached = self.look_up(&reached, name, left).unwrap_or_else(|| join(&reached, name));
        }
        reached
    }

    /// What a name stands for in the module at `scope`, if a `mod` or a `use` there says so.
    fn look_up(&self, scope: &[String], name: &str, left: usize) -> Option<Names> {
        let left = left.checked_sub(1)?;
        let child = join(scope, name);
        if self.modules.iter().any(|module| module.path == child) {
            return Some(child);
        }
        let module = self.modules.iter().find(|module| module.path == scope)?;
        let imported = module.mentions.iter().find(|mention| mention.imports(name));
        imported.map(|import| self.follow(scope, &import.path, left)).or_else(|| {
            let globs = module.mentions.iter().filter(|mention| matches!(mention.kind, Kind::Glob));
            globs.map(|glob| self.follow(scope, &glob.path, left)).find_map(|glob| self.look_up(&glob, name, left))
        })
    }
}

impl Home {
    fn of_children(&self) -> PathBuf {
        self.folder.join(self.inner.as_deref().unwrap_or_default())
    }

    /// The file of the child `name`, and where that looks for its own children.
    fn find(&self, name: &str, attributes: &[Attribute]) -> Option<(PathBuf, Self)> {
        let found = if let Some(path) = path_attribute(attributes) {
            let file = self.folder.join(path);
            let folder = file.parent().expect("a file is in a folder").to_owned();
            (file, Self { folder, inner: None })
        } else {
            let folder = self.of_children();
            let beside = folder.join(format!("{name}.rs"));
            if beside.is_file() {
                (beside, Self { folder, inner: Some(name.to_owned()) })
            } else {
                let folder = folder.join(name);
                (folder.join("mod.rs"), Self { folder, inner: None })
            }
        };
        found.0.is_file().then_some(found)
    }

    fn of_inline(&self, name: &str, attributes: &[Attribute]) -> Self {
        let folder = match path_attribute(attributes) {
            Some(path) => self.folder.join(path),
            None => self.of_children().join(name),
        };
        Self { folder, inner: None }
    }
}

impl Reader<'_> {
    fn add(&mut self, mentions: impl IntoIterator<Item = Mention>) {
        self.tree.modules[self.module].mentions.extend(mentions);
    }
}

impl<'ast> Visit<'ast> for Reader<'_> {
    fn visit_item_mod(&mut self, item: &'ast ItemMod) {
        let name = plain(&item.ident);
        let Module { path, file, test_only, .. } = &self.tree.modules[self.module];
        let (file, test_only) = (file.clone(), *test_only || is_test_only(&item.attrs));
        let path = join(path, &name);
        if let Some((_, items)) = &item.content {
            self.tree.modules.push(Module { path, file, test_only, mentions: Vec::new() });
            let module = self.tree.modules.len() - 1;
            let mut inside = Reader { home: self.home.of_inline(&name, &item.attrs), module, tree: self.tree };
            items.iter().for_each(|item| inside.visit_item(item));
        } else if let Some((file, home)) = self.home.find(&name, &item.attrs) {
            self.tree.read_file(&file, path, home, test_only);
        } else {
            let line = item.ident.span().start().line;
            self.tree.problems.push(format!("{}:{line}: no file holds the module {name}", file.display()));
        }
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        self.add(mentions::in_use(item));
    }

    fn visit_item_extern_crate(&mut self, item: &'ast ItemExternCrate) {
        if let Some((_, rename)) = &item.rename {
            let path = if item.ident == "self" { "crate".to_owned() } else { plain(&item.ident) };
            let kind = Kind::Import { name: plain(rename) };
            self.add([Mention { path: vec![path], line: rename.span().start().line, kind }]);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        self.add(mentions::in_path(path));
        syn::visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        self.add(mentions::in_macro(call));
    }

    fn visit_meta_list(&mut self, list: &'ast syn::MetaList) {
        self.add(mentions::in_tokens(&list.tokens));
    }
}

fn path_attribute(attributes: &[Attribute]) -> Option<String> {
    attributes.iter().find_map(|attribute| match &attribute.meta {
        Meta::NameValue(pair) if pair.path.is_ident("path") => match &pair.value {
            Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Some(text.value()),
            _ => None,
        },
        _ => None,
    })
}

fn is_test_only(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg") && attribute.parse_args::<Meta>().is_ok_and(|condition| needs_test(&condition))
    })
}

fn needs_test(condition: &Meta) -> bool {
    match condition {
        Meta::Path(path) => path.is_ident("test"),
        Meta::List(list) if list.path.is_ident("all") => list
            .parse_args_with(Punctuated::<Meta, syn::Token![,]>::parse_terminated)
            .is_ok_and(|conditions| conditions.iter().any(needs_test)),
        _ => false,
    }
}
