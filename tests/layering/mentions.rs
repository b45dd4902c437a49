//! The paths that a source file mentions: in imports, in code, in attributes and in what is passed to macros.

use proc_macro2::{Group, TokenStream, TokenTree};
use syn::{
    Ident, ItemUse, Token, UseTree,
    ext::IdentExt as _,
    parse::{ParseStream, Parser as _},
    token::{Brace, Bracket, Paren},
};

/// The names between the `::` of a path.
pub(crate) type Names = Vec<String>;

/// A path that a file mentions, as it stands there.
pub(crate) struct Mention {
    pub(crate) path: Names,
    pub(crate) line: usize,
    pub(crate) kind: Kind,
}

pub(crate) enum Kind {
    /// `use path as name`.
    Import { name: String },
    /// `use path::*`.
    Glob,
    /// `path!(…)`.
    Macro,
    /// Anywhere else. Never a single name: that is a local, or something that an import has already mentioned.
    Path,
}

impl Mention {
    /// Brings something in under this name.
    pub(crate) fn imports(&self, name: &str) -> bool {
        matches!(&self.kind, Kind::Import { name: imported } if imported == name)
    }
}

pub(crate) fn in_use(item: &ItemUse) -> Vec<Mention> {
    let mut mentions = Vec::new();
    flatten(&item.tree, &[], &mut mentions);
    mentions
}

pub(crate) fn in_path(path: &syn::Path) -> Option<Mention> {
    let line = path.segments.first()?.ident.span().start().line;
    let names: Names = path.segments.iter().map(|segment| plain(&segment.ident)).collect();
    (names.len() > 1).then_some(Mention { path: names, line, kind: Kind::Path })
}

pub(crate) fn in_macro(call: &syn::Macro) -> Vec<Mention> {
    let mut mentions = in_tokens(&call.tokens);
    let line = call.path.segments.first().map_or(0, |segment| segment.ident.span().start().line);
    let path = call.path.segments.iter().map(|segment| plain(&segment.ident)).collect();
    mentions.push(Mention { path, line, kind: Kind::Macro });
    mentions
}

/// What looks like a path in tokens that only a macro understands, `use` groups in a `macro_rules!` included.
pub(crate) fn in_tokens(tokens: &TokenStream) -> Vec<Mention> {
    let mut mentions = Vec::new();
    scan(tokens, &[], &mut mentions);
    mentions
}

/// The path to something by that name in `path`.
pub(crate) fn join(path: &[String], name: &str) -> Names {
    [path, &[name.to_owned()]].concat()
}

/// The name of an identifier, which `r#` is not part of.
pub(crate) fn plain(ident: &Ident) -> String {
    ident.unraw().to_string()
}

fn flatten(tree: &UseTree, prefix: &[String], mentions: &mut Vec<Mention>) {
    match tree {
        UseTree::Path(tree) => flatten(&tree.tree, &join(prefix, &plain(&tree.ident)), mentions),
        UseTree::Group(tree) => tree.items.iter().for_each(|tree| flatten(tree, prefix, mentions)),
        UseTree::Glob(tree) => {
            let line = tree.star_token.spans[0].start().line;
            mentions.push(Mention { path: prefix.to_vec(), line, kind: Kind::Glob });
        }
        UseTree::Name(tree) => mentions.push(import(prefix, &tree.ident, None)),
        UseTree::Rename(tree) => mentions.push(import(prefix, &tree.ident, Some(&tree.rename))),
    }
}

fn import(prefix: &[String], ident: &Ident, rename: Option<&Ident>) -> Mention {
    let mut path = prefix.to_vec();
    // `io::{self}` is `io`.
    if ident != "self" || path.is_empty() {
        path.push(plain(ident));
    }
    let name = rename.map(plain).unwrap_or_else(|| path.last().expect("never empty").clone());
    Mention { path, line: ident.span().start().line, kind: Kind::Import { name } }
}

fn scan(tokens: &TokenStream, prefix: &[String], mentions: &mut Vec<Mention>) {
    let parser = |input: ParseStream<'_>| {
        while !input.is_empty() {
            if input.peek(Ident::peek_any) {
                scan_path(input, prefix, mentions)?;
            } else if let TokenTree::Group(group) = input.parse()? {
                scan(&group.stream(), &[], mentions);
            }
        }
        Ok(())
    };
    parser.parse2(tokens.clone()).expect("takes any token that there is");
}

fn scan_path(input: ParseStream<'_>, prefix: &[String], mentions: &mut Vec<Mention>) -> syn::Result<()> {
    let first = Ident::parse_any(input)?;
    let line = first.span().start().line;
    let mut path = join(prefix, &plain(&first));
    while input.peek(Token![::]) && input.peek3(Ident::peek_any) {
        input.parse::<Token![::]>()?;
        path.push(plain(&Ident::parse_any(input)?));
    }
    let kind = if input.peek(Token![::]) && input.peek3(Brace) {
        input.parse::<Token![::]>()?;
        scan(&input.parse::<Group>()?.stream(), &path, mentions);
        return Ok(());
    } else if input.peek(Token![::]) && input.peek3(Token![*]) {
        Kind::Glob
    } else if input.peek(Token![!]) && (input.peek2(Paren) || input.peek2(Bracket) || input.peek2(Brace)) {
        Kind::Macro
    } else if path.len() > 1 {
        Kind::Path
    } else {
        return Ok(());
    };
    mentions.push(Mention { path, line, kind });
    Ok(())
}
