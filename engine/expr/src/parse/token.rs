//! Tokens, read by hand where pest is no help: before it runs, after it failed, and to find what follows an expression.

use pest::unicode::{DECIMAL_NUMBER, LETTER};

/// Where the next token is, after spaces and comments. The length of the source if there is none.
pub(super) fn skip_space(source: &str, mut at: usize) -> usize {
    loop {
        let rest = &source[at..];
        let after_spaces = rest.trim_start();
        at += rest.len() - after_spaces.len();
        let length = match after_spaces.as_bytes() {
            [b'/', b'/', ..] => after_spaces.find('\n'),
            // A comment that is not closed is no comment.
            [b'/', b'*', ..] => match after_spaces[2..].find("*/") {
                Some(length) => Some(length + 4),
                None => return at,
            },
            _ => return at,
        };
        at += length.unwrap_or(after_spaces.len());
    }
}

/// The token at a place that has one. A literal that is not closed is only its quote.
pub(super) fn token(source: &str, at: usize) -> &str {
    let rest = &source[at..];
    let Some(first) = rest.chars().next() else { return rest };
    let length = match first {
        '"' => quoted(rest, b'"'),
        '\'' => quoted(rest, b'\''),
        '`' => raw(rest),
        _ if is_word(first) => {
            let ascii = rest.bytes().take_while(|byte| byte.is_ascii() && is_word(char::from(*byte))).count();
            ascii + rest[ascii..].find(|character| !is_word(character)).unwrap_or(rest.len() - ascii)
        }
        _ => match rest.as_bytes() {
            [b'=' | b'!' | b'<' | b'>', b'=', ..] | [b'?', b'?' | b'.', ..] => 2,
            [b'&', b'&', ..] | [b'|', b'|', ..] | [b'.', b'.', ..] | [b'*', b'*', ..] | [b':', b':', ..] => 2,
            _ => first.len_utf8(),
        },
    };
    &rest[..length]
}

/// Whether a character can be part of a name or a number.
pub(crate) fn is_word(character: char) -> bool {
    match character {
        '_' | '$' => true,
        _ if character.is_ascii() => character.is_ascii_alphanumeric(),
        _ => LETTER(character) || DECIMAL_NUMBER(character),
    }
}

/// Whether a word is an operator wherever it stands but after a dot.
pub(crate) fn is_reserved(word: &str) -> bool {
    RESERVED.contains(&word)
}

const RESERVED: [&str; 11] =
    ["and", "contains", "else", "endsWith", "if", "in", "let", "matches", "not", "or", "startsWith"];

fn quoted(rest: &str, quote: u8) -> usize {
    let mut escaped = false;
    // What is looked for is no part of any other character.
    for (at, byte) in rest.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'\n' => break,
            _ if byte == quote => return at + 1,
            _ => {}
        }
    }
    1
}

fn raw(rest: &str) -> usize {
    let mut at = 1;
    while let Some(found) = rest[at..].find('`') {
        at += found + 1;
        // Two backticks in a row stand for one in the text.
        if !rest[at..].starts_with('`') {
            return at;
        }
        at += 1;
    }
    1
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::{skip_space, token};

    #[track_caller]
    fn check(source: &str, expected: Expect) {
        let mut tokens = Vec::new();
        let mut at = skip_space(source, 0);
        while at < source.len() {
            tokens.push(token(source, at));
            at = skip_space(source, at + tokens[tokens.len() - 1].len());
        }
        expected.assert_eq(&tokens.join(" "));
    }

    #[test]
    fn a_source_is_cut_into_tokens() {
        check("a.b?.c??d==1..2", expect!["a . b ?. c ?? d == 1 .. 2"]);
        check("früh$1_x(#acc,[::len])", expect!["früh$1_x ( # acc , [ :: len ] )"]);
        check(r#"'it\'s'+"a'b"+`c``d`"#, expect![[r#"'it\'s' + "a'b" + `c``d`"#]]);
    }

    #[test]
    fn spaces_and_comments_are_no_tokens() {
        check(" a\t// b\n/* c */\u{a0}d // e", expect!["a d"]);
    }

    #[test]
    fn what_is_not_closed_is_a_token_by_itself() {
        check("'a", expect!["' a"]);
        check("\"a\nb\"", expect![[r#"" a b ""#]]);
        check("`a``", expect!["` a ``"]);
        check("/* a", expect!["/ * a"]);
    }
}
