//! The inputs that are worth keeping: a text file per target with an input per line, bytes that are no printable ASCII as
//! escapes. A file per input, as libFuzzer has them, would be hundreds of files that nobody can read in a diff.

use std::path::{Path, PathBuf};

/// The file with the inputs of a target.
pub fn file(target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target).with_extension("txt")
}

/// The inputs of a file, or the first line that is not written as [`write`] does.
pub fn read(text: &str) -> Result<Vec<Vec<u8>>, String> {
    text.lines().map(|line| unescape(line).ok_or_else(|| format!("not an input: {line}"))).collect()
}

/// The text of a file with these inputs, in order.
pub fn write(mut inputs: Vec<Vec<u8>>) -> String {
    inputs.sort();
    inputs.dedup();
    inputs.iter().map(|input| format!("{}\n", escape(input))).collect()
}

/// Quotes need no escape here, and are easier to read without.
fn escape(input: &[u8]) -> String {
    let escaped = input.iter().map(|byte| match byte {
        b'"' | b'\'' => char::from(*byte).to_string(),
        byte => byte.escape_ascii().to_string(),
    });
    escaped.collect()
}

fn unescape(line: &str) -> Option<Vec<u8>> {
    let mut input = Vec::new();
    let mut rest = line.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        if *first != b'\\' {
            input.push(*first);
            continue;
        }
        let (escape, after) = rest.split_first()?;
        rest = after;
        input.push(match escape {
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'\\' => b'\\',
            b'x' => {
                let (digits, after) = rest.split_at_checked(2)?;
                rest = after;
                u8::from_str_radix(str::from_utf8(digits).ok()?, 16).ok()?
            }
            _ => return None,
        });
    }
    Some(input)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::targets;

    #[test]
    fn every_input_survives_its_file() {
        let all: Vec<u8> = (0..=255).collect();
        let inputs = vec![Vec::new(), b"a\\n\n\"'".to_vec(), all];
        let text = write(inputs.clone());
        assert_eq!(
            read(&text),
            Ok({
                let mut sorted = inputs;
                sorted.sort();
                sorted
            })
        );
        assert!(text.is_ascii());
        assert_eq!(read("\\q"), Err("not an input: \\q".to_owned()));
    }

    fn replay(name: &str) {
        let (_, target) = targets::find(name).unwrap();
        let text = std::fs::read_to_string(file(name)).unwrap();
        let inputs = read(&text).unwrap();
        assert!(inputs.len() > 20, "the corpus of {name} has {} inputs", inputs.len());
        for input in inputs {
            // The harness shows what a failed test printed.
            println!("{}", input.escape_ascii());
            target(&input);
        }
    }

    #[test]
    fn the_corpus_of_expression_parse_holds() {
        replay("expression_parse");
    }

    #[test]
    fn the_corpus_of_expression_evaluate_holds() {
        replay("expression_evaluate");
    }

    #[test]
    fn the_corpus_of_document_json_holds() {
        replay("document_json");
    }

    #[test]
    fn the_corpus_of_document_yaml_holds() {
        replay("document_yaml");
    }
}
