//! Manifests as people write them, in all the styles that YAML has.

use expect_test::expect;

use super::compare_yaml;
use crate::chance::Random;

const KEYS: [&str; 20] = [
    "apiVersion",
    "kind",
    "metadata",
    "name",
    "namespace",
    "labels",
    "annotations",
    "spec",
    "containers",
    "image",
    "args",
    "env",
    "ports",
    "containerPort",
    "resources",
    "limits",
    "cpu",
    "app.kubernetes.io/name",
    "\"quoted\"",
    "'on'",
];

const VALUES: [&str; 34] = [
    "v1",
    "Pod",
    "nginx:1.27",
    "ghcr.io/team/web@sha256:0123",
    "100m",
    "1Gi",
    "8080",
    "0.5",
    "true",
    "\"true\"",
    "'8080'",
    "no",
    "~",
    "",
    "\"\"",
    "/var/run",
    "--flag=value",
    "-v",
    "{}",
    "[]",
    "0644",
    "1e3",
    "2026-01-01",
    "2026-01-01T00:00:00Z",
    "a b c",
    "$(POD_NAME)",
    "\"a: b\"",
    "'it''s'",
    "http://example.org:80/a?b#c",
    "*.example.org",
    "a # comment",
    "\"\\u00e4\\n\"",
    "!!str 8080",
    "1_000",
];

struct Writer {
    random: Random,
    text: String,
}

impl Writer {
    /// Lines of a mapping or a list, indented.
    fn block(&mut self, indent: usize, depth: usize) {
        let is_list = depth > 0 && self.random.below(3) == 0;
        for number in 0..1 + self.random.below(4) {
            if self.random.below(12) == 0 {
                let line = self.random.pick(&["# comment\n", "\n", "  # another\n"]);
                self.text.push_str(line);
            }
            self.text.push_str(&" ".repeat(indent));
            match is_list {
                true => self.text.push('-'),
                false => {
                    // Mostly different ones.
                    let key = self.random.pick(&KEYS);
                    let suffix = if self.random.below(6) == 0 || !key.ends_with(char::is_alphabetic) {
                        String::new()
                    } else {
                        number.to_string()
                    };
                    self.text.push_str(&format!("{key}{suffix}:"));
                }
            }
            self.value(indent, depth);
        }
    }

    fn value(&mut self, indent: usize, depth: usize) {
        if self.random.below(14) == 0 {
            let anchor = self.random.pick(&[" &one", " &two"]);
            self.text.push_str(anchor);
        }
        match self.random.below(if depth < 4 { 14 } else { 9 }) {
            0..=4 => {
                let value = self.random.pick(&VALUES);
                self.text.push_str(&format!(" {value}\n"));
            }
            5 => {
                self.text.push(' ');
                self.flow(depth);
                self.text.push('\n');
            }
            6 => {
                let indicator = self.random.pick(&["|", "|-", "|+", ">", ">-", ">+"]);
                let pad = " ".repeat(indent + 2);
                let body = ["#!/bin/sh", "set -e", "  echo \"a: b\"", "", "exit 0 # done", "{{ template }}"];
                self.text.push_str(&format!(" {indicator}\n"));
                for _ in 0..1 + self.random.below(4) {
                    let line = self.random.pick(&body);
                    self.text.push_str(&if line.is_empty() { "\n".to_owned() } else { format!("{pad}{line}\n") });
                }
            }
            7 => {
                let pad = " ".repeat(indent + 2);
                let text = self.random.pick(&[
                    "plain text\n@goes on\n",
                    "\"quoted\n@goes on \\\n@and on\"\n",
                    "'single\n\n@goes on'\n",
                ]);
                self.text.push_str(&format!(" {}", text.replace('@', &pad)));
            }
            8 => {
                let alias = self.random.pick(&[" *one\n", " *two\n", "\n", " # nothing\n"]);
                self.text.push_str(alias);
            }
            9 if self.random.below(3) == 0 => {
                let pad = " ".repeat(indent + 2);
                let merged = self.random.pick(&["*one", "*two", "[*one, *two]", "{a: 1, b: 2}"]);
                self.text.push_str(&format!("\n{pad}<<: {merged}\n{pad}own: 1\n"));
            }
            _ => {
                self.text.push('\n');
                let step = [2, 2, 2, 4, 1][self.random.below(5)];
                self.block(indent + step, depth + 1);
            }
        }
    }

    fn flow(&mut self, depth: usize) {
        let (open, close) = if self.random.below(2) == 0 { ('[', ']') } else { ('{', '}') };
        self.text.push(open);
        for number in 0..self.random.below(4) {
            if number > 0 {
                let comma = self.random.pick(&[", ", ",", " , ", ",\n        "]);
                self.text.push_str(comma);
            }
            if open == '{' {
                let key = self.random.pick(&["a", "b", "\"c\"", "1", "yes", "name"]);
                self.text.push_str(&format!("{key}: "));
            }
            match depth < 3 && self.random.below(4) == 0 {
                true => self.flow(depth + 1),
                false => {
                    let value = self.random.pick(&[
                        "a",
                        "\"b c\"",
                        "'d'",
                        "1",
                        "1.5",
                        "null",
                        "true",
                        "x-y",
                        "http://a/b",
                        "*one",
                        "-1",
                    ]);
                    self.text.push_str(value);
                }
            }
        }
        self.text.push(close);
    }
}

fn manifest(seed: u64) -> String {
    let mut writer = Writer { random: Random::new(seed), text: String::new() };
    // Anchors that most documents have, so that most aliases stand for something.
    if writer.random.below(3) > 0 {
        writer.text.push_str("base: &one {a: 1, c: [x]}\nother: &two\n  b: 2\n");
    }
    writer.block(0, 0);
    match writer.random.below(10) {
        0 => writer.text.replace('\n', "\r\n"),
        1 => format!("---\n{}---\nsecond: document\n", writer.text),
        2 => format!("\u{feff}{}", writer.text),
        _ => writer.text,
    }
}

#[test]
fn manifests_are_read_alike() {
    let texts: Vec<String> = (1..=10_000).map(manifest).collect();
    expect![[r#"
        both take 7283, both refuse 2717
    "#]]
    .assert_eq(&compare_yaml(&texts).table());
}
