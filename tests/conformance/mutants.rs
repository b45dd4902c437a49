//! Expressions that are almost right, made from right ones: the corpora hold few that are wrong.

use crate::chance::Random;

/// What is put into expressions: everything that has a meaning of its own, and some that has none.
const PIECES: &str = r#"
    ( ) [ ] { } , ; : :: . ?. ? ?? .. + - * / % ** ^ ! & && | || = == != < > <= >= # ## #acc #index @ \ " ` /* //
    not in and or matches contains startsWith endsWith let if else true false nil a b f len map x x; é ٣ $env
    1 0x1F 1.5 .5 1e3 1_0 0b1 0o7 1. 1e 0x "s" 't' `r` b"x" "\n" "\u{1F600}" "\q" "\400" /*c*/ .foo .a?.b ?.[0] -1[0]
    f( len( all( count( sortBy( filter(x, |len() |map(#) |f a?b:c {a:1} (1;2) [1:2]
"#;

/// The same with spaces in it.
const PHRASES: [&str; 9] =
    [" ", "\n", "\r", "\u{a0}", "// c\n", " not in ", " not contains ", "let x = 1; ", "if a { b } else { c }"];

/// Makes `count` mutants, the same ones each time.
pub(super) fn mutants(expressions: &[String], count: usize) -> Vec<String> {
    let mut random = Random::new(1);
    let new: Vec<&str> = PIECES.split_whitespace().chain(PHRASES).collect();
    (0..count)
        .map(|_| {
            let mut pieces = split(&expressions[random.below(expressions.len())]);
            for _ in 0..=random.below(3) {
                mutate(&mut pieces, &new, &mut random);
            }
            pieces.concat()
        })
        .collect()
}

fn mutate<'e>(pieces: &mut Vec<&'e str>, new: &[&'e str], random: &mut Random) {
    let at = random.below(pieces.len() + 1);
    let new = new[random.below(new.len())];
    match random.below(5) {
        0 | 1 => pieces.insert(at, new),
        _ if at == pieces.len() => pieces.push(new),
        2 => pieces[at] = new,
        3 => drop(pieces.remove(at)),
        _ => {
            let other = random.below(pieces.len());
            pieces.swap(at, other);
        }
    }
}

/// Cuts between words and everything else.
fn split(expression: &str) -> Vec<&str> {
    let is_word = |character: char| character.is_alphanumeric() || character == '_';
    let mut pieces = Vec::new();
    let mut rest = expression;
    while let Some(first) = rest.chars().next() {
        let end = match is_word(first) {
            true => rest.find(|character| !is_word(character)).unwrap_or(rest.len()),
            false => first.len_utf8(),
        };
        let (piece, after) = rest.split_at(end);
        pieces.push(piece);
        rest = after;
    }
    pieces
}
