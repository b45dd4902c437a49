//! The pages of the documentation as tests: a block that is marked `<!-- runnable -->` is run, against a cluster unless it
//! holds expressions, and what it prints is compared with the `text` block that follows it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};

use crate::cluster::Cluster;
use crate::state::Size;

/// A block that is to be run.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Block {
    /// The line of the page that it begins at.
    pub line: usize,
    /// What it is written in.
    pub language: Language,
    /// How much of a cluster it needs.
    pub size: Size,
    /// What is run.
    pub body: String,
    /// What it prints, as the page says. Nothing if the page says nothing.
    pub expected: String,
}

/// What a runnable block is written in.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Language {
    /// Commands.
    Bash,
    /// One command of a session. It may fail: what it prints is what counts.
    Console,
    /// Objects, for `kubectl apply`.
    Yaml,
    /// Expressions, one per line, for `portal eval`. They need no cluster.
    Expr,
}

/// Stands for anything: within a line, or alone on a line for any number of lines.
const ANYTHING: &str = "…";

/// Every page below a folder, in order.
pub fn find(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut pages = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| format!("could not read {}", folder.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            pages.extend(find(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            pages.push(path);
        }
    }
    pages.sort();
    Ok(pages)
}

/// The runnable blocks of a page, in order.
pub fn blocks(page: &str) -> anyhow::Result<Vec<Block>> {
    let lines: Vec<&str> = page.lines().collect();
    let mut blocks = Vec::new();
    let mut index = 0;
    while index < lines.len() {
        let marker = marker(lines[index]).with_context(|| format!("line {}", index + 1))?;
        let Some(size) = marker else {
            // A marker inside an ordinary block is an example of one.
            index = if fence(lines[index]).is_some() { end_of_block(&lines, index)? } else { index } + 1;
            continue;
        };
        let start = next_line(&lines, index + 1);
        let language = match lines.get(start).and_then(|line| fence(line)) {
            Some("bash") => Language::Bash,
            Some("yaml") => Language::Yaml,
            Some("expr") => Language::Expr,
            Some("console") => Language::Console,
            _ => bail!("line {}: `runnable` must stand before a bash, console, yaml or expr block", index + 1),
        };
        let end = end_of_block(&lines, start)?;
        if language == Language::Console {
            blocks.extend(session(&lines[start + 1..end], start + 2, size)?);
            index = end + 1;
            continue;
        }
        let body = lines[start + 1..end].join("\n") + "\n";
        let mut expected = String::new();
        index = end + 1;
        let after = next_line(&lines, index);
        if lines.get(after).and_then(|line| fence(line)) == Some("text") {
            let end = end_of_block(&lines, after)?;
            expected = lines[after + 1..end].join("\n");
            index = end + 1;
        }
        blocks.push(Block { line: start + 1, language, size, body, expected });
    }
    Ok(blocks)
}

/// The page that a page begins after, and the blocks of that one which have been run by then: those down to the end of a section. A page
/// says so with `<!-- begins after page.md#section -->`.
pub fn before(path: &Path, page: &str) -> anyhow::Result<Option<(PathBuf, Vec<Block>)>> {
    let comments = page.lines().filter_map(comment);
    let Some(link) = comments.filter_map(|comment| comment.strip_prefix("begins after")).next() else {
        return Ok(None);
    };
    let (file, section) = link.trim().split_once('#').context("`begins after` must name a page and its section")?;
    let path = path.parent().context("a page lies in a folder")?.join(file);
    let text = fs::read_to_string(&path).with_context(|| format!("could not read {}", path.display()))?;
    let end = end_of_section(&text, section)
        .with_context(|| format!("{} has no section {section}, which a page begins after", path.display()))?;
    let mut blocks = blocks(&text)?;
    blocks.retain(|block| block.line <= end);
    Ok(Some((path, blocks)))
}

/// Runs the blocks of a page that need a cluster, one after the other. `programs` are folders to find commands in.
pub fn run(page: &Path, blocks: &[Block], cluster: &Cluster, programs: &[&Path]) -> anyhow::Result<()> {
    // What a page writes is there for its next block, and gone with the page.
    let folder = tempfile::tempdir().context("could not make a folder for the page's files")?;
    for block in blocks.iter().filter(|block| block.language != Language::Expr) {
        compare(page, block, &run_block(block, cluster, programs, folder.path())?)?;
    }
    Ok(())
}

/// Evaluates the blocks of a page that hold expressions.
pub fn evaluate(page: &Path, blocks: &[Block], portal: &Path) -> anyhow::Result<()> {
    for block in blocks.iter().filter(|block| block.language == Language::Expr) {
        let mut actual = String::new();
        for line in block.body.lines().filter(|line| !line.trim().is_empty()) {
            let output = Command::new(portal).args(["eval", line]).output().context("could not run portal")?;
            let said = if output.status.success() { output.stdout } else { output.stderr };
            actual.push_str(&String::from_utf8(said)?);
        }
        compare(page, block, &actual)?;
    }
    Ok(())
}

fn compare(page: &Path, block: &Block, actual: &str) -> anyhow::Result<()> {
    if matches(&block.expected, actual) {
        return Ok(());
    }
    bail!(
        "{}:{}: the page says that this prints\n{}\nbut it prints\n{}",
        page.display(),
        block.line,
        indent(&block.expected),
        indent(actual)
    )
}

fn run_block(block: &Block, cluster: &Cluster, programs: &[&Path], folder: &Path) -> anyhow::Result<String> {
    if block.language == Language::Yaml {
        return cluster.kubectl_with_input(&["apply", "--filename", "-"], &block.body);
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = programs.iter().copied().chain([cluster.programs()]).map(Path::to_owned);
    let output = cluster
        .command("bash")
        // What goes to standard error is part of what a reader sees.
        .args(["-euo", "pipefail", "-c", &format!("exec 2>&1\n{}", block.body)])
        .env("PATH", std::env::join_paths(folders.chain(std::env::split_paths(&path)))?)
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .context("could not run bash")?;
    let mut text = String::from_utf8(output.stdout)?;
    if !output.status.success() && block.language == Language::Bash {
        text.push_str(&format!("({})\n", output.status));
    }
    Ok(text)
}

/// Whether the page's text describes what was printed.
fn matches(expected: &str, actual: &str) -> bool {
    let expected: Vec<&str> = expected.trim_end().lines().map(str::trim_end).collect();
    let actual: Vec<&str> = actual.trim_end().lines().map(str::trim_end).collect();
    matches_lines(&expected, &actual)
}

fn matches_lines(expected: &[&str], actual: &[&str]) -> bool {
    match expected.split_first() {
        None => actual.is_empty(),
        Some((&ANYTHING, rest)) => (0..=actual.len()).any(|skipped| matches_lines(rest, &actual[skipped..])),
        Some((line, rest)) => {
            actual.split_first().is_some_and(|(first, others)| matches_line(line, first) && matches_lines(rest, others))
        }
    }
}

fn matches_line(expected: &str, actual: &str) -> bool {
    let mut parts = expected.split(ANYTHING);
    let Some(mut remaining) = parts.next().and_then(|start| actual.strip_prefix(start)) else { return false };
    let mut parts: Vec<&str> = parts.collect();
    let Some(end) = parts.pop() else { return remaining.is_empty() };
    for part in parts {
        let Some(position) = remaining.find(part) else { return false };
        remaining = &remaining[position + part.len()..];
    }
    remaining.ends_with(end)
}

/// The size that a marker names: core unless it says more.
fn marker(line: &str) -> anyhow::Result<Option<Size>> {
    let Some(inner) = comment(line) else { return Ok(None) };
    match inner.strip_prefix("runnable") {
        Some("") => Ok(Some(Size::Core)),
        Some(rest) => match rest.strip_prefix(':') {
            Some(size) => Size::parse(size.trim()).map(Some),
            None => bail!("write `<!-- runnable -->` or `<!-- runnable: control -->`, not `{line}`"),
        },
        None => Ok(None),
    }
}

/// What a line says to those who read the source alone.
fn comment(line: &str) -> Option<&str> {
    line.trim().strip_prefix("<!--")?.strip_suffix("-->").map(str::trim)
}

/// The commands of a session: each begins with `$` and is followed by what it prints.
fn session(lines: &[&str], first: usize, size: Size) -> anyhow::Result<Vec<Block>> {
    let mut blocks: Vec<Block> = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        match (line.strip_prefix("$ "), blocks.last_mut()) {
            (Some(command), _) => blocks.push(Block {
                line: first + index,
                language: Language::Console,
                size,
                body: format!("{command}\n"),
                expected: String::new(),
            }),
            (None, Some(block)) => block.expected.push_str(&format!("{line}\n")),
            (None, None) => bail!("line {}: a session begins with `$` and a command", first + index),
        }
    }
    Ok(blocks)
}

/// The last line of a section, whose name is that of a link to it.
fn end_of_section(page: &str, section: &str) -> Option<usize> {
    let heading = |line: &str| {
        let name = line.trim_start_matches('#');
        let level = line.len() - name.len();
        let words = name.trim().to_lowercase();
        let slug: String = words.chars().filter(|letter| letter.is_alphanumeric() || " -_".contains(*letter)).collect();
        (level > 0 && name.starts_with(' ')).then(|| (level, slug.replace(' ', "-")))
    };
    // A comment of a script is no heading.
    let mut is_code = false;
    let mut headings = Vec::new();
    for (index, line) in page.lines().enumerate() {
        is_code ^= fence(line).is_some();
        headings.extend(heading(line).filter(|_| !is_code).map(|(level, name)| (index, level, name)));
    }
    let start = headings.iter().position(|(_, _, name)| name == section)?;
    let next = headings[start + 1..].iter().find(|(_, level, _)| *level <= headings[start].1);
    Some(next.map_or(usize::MAX, |(line, _, _)| *line))
}

/// The language of a block that opens on this line.
fn fence(line: &str) -> Option<&str> {
    line.trim_start().strip_prefix("```").map(str::trim)
}

fn end_of_block(lines: &[&str], start: usize) -> anyhow::Result<usize> {
    (start + 1..lines.len())
        .find(|line| fence(lines[*line]) == Some(""))
        .with_context(|| format!("line {}: this block never ends", start + 1))
}

/// The next line that is not empty.
fn next_line(lines: &[&str], from: usize) -> usize {
    (from..lines.len()).find(|line| !lines[*line].trim().is_empty()).unwrap_or(lines.len())
}

fn indent(text: &str) -> String {
    text.lines().map(|line| format!("    {line}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(page: &str, expected: expect_test::Expect) {
        let rendered = match blocks(page) {
            Ok(blocks) => blocks.iter().map(|block| format!("{block:?}\n")).collect(),
            Err(error) => format!("{error:#}"),
        };
        expected.assert_eq(&rendered);
    }

    #[test]
    fn marked_blocks_are_found_with_their_output_and_size() {
        check(
            "# Page\n\n```bash\nnot run\n```\n\n<!-- runnable -->\n```bash\necho hello\n```\n\n```text\nhello\n```\n\n\
             <!-- runnable: full -->\n\n```yaml\nkind: Pod\n```\n\nSome text.\n\n```text\nnot its output\n```\n",
            expect_test::expect![[r#"
                Block { line: 8, language: Bash, size: Core, body: "echo hello\n", expected: "hello" }
                Block { line: 18, language: Yaml, size: Full, body: "kind: Pod\n", expected: "" }
            "#]],
        );
    }

    #[test]
    fn a_marker_inside_another_block_is_an_example() {
        check("````\n```markdown\n<!-- runnable -->\n```\n", expect_test::expect![""]);
    }

    #[test]
    fn a_misplaced_or_misspelt_marker_is_an_error_with_its_line() {
        check(
            "\n<!-- runnable -->\ntext\n",
            expect_test::expect!["line 2: `runnable` must stand before a bash, console, yaml or expr block"],
        );
        check(
            "<!-- runnable: big -->\n```bash\n```\n",
            expect_test::expect![[
                r#"line 1: "big" is no size: choose core (etcd and the API server), control (with controllers) or full (with a node)"#
            ]],
        );
        check(
            "<!-- runnable big -->\n",
            expect_test::expect![
                "line 1: write `<!-- runnable -->` or `<!-- runnable: control -->`, not `<!-- runnable big -->`"
            ],
        );
        check("<!-- runnable -->\n```bash\necho\n", expect_test::expect!["line 2: this block never ends"]);
    }

    #[test]
    fn each_command_of_a_session_is_a_block_with_what_it_prints() {
        check(
            "<!-- runnable: full -->\n```console\n$ false\n$ kubectl get x\nError: no\n```\n\n```text\nnobody's\n```\n",
            expect_test::expect![[r#"
                Block { line: 3, language: Console, size: Full, body: "false\n", expected: "" }
                Block { line: 4, language: Console, size: Full, body: "kubectl get x\n", expected: "Error: no\n" }
            "#]],
        );
        check(
            "<!-- runnable -->\n```console\nno command\n```\n",
            expect_test::expect!["line 3: a session begins with `$` and a command"],
        );
    }

    #[test]
    fn a_page_that_begins_after_a_section_has_the_blocks_down_to_its_end() {
        let folder = tempfile::tempdir().unwrap();
        let block = |text: &str| format!("<!-- runnable -->\n```bash\n# comment\necho {text}\n```\n");
        let first = format!(
            "# Page\n\n{}\n## One rule\n\n{}\n### Below\n\n{}\n## The end\n\n{}",
            block("a"),
            block("b"),
            block("c"),
            block("d")
        );
        fs::write(folder.path().join("first.md"), first).unwrap();
        let second = folder.path().join("second.md");
        let before = |page: &str| before(&second, page).map(|found| found.map(|(_, blocks)| blocks.len()));
        assert_eq!(before("# Page\n").unwrap(), None);
        assert_eq!(before("<!-- begins after first.md#one-rule -->\n").unwrap(), Some(3));
        assert_eq!(before("<!-- begins after first.md#the-end -->\n").unwrap(), Some(4));
        let error = before("<!-- begins after first.md#nowhere -->\n").unwrap_err().to_string();
        assert!(error.ends_with("first.md has no section nowhere, which a page begins after"), "{error}");
        before("<!-- begins after first.md -->\n").unwrap_err();
    }

    #[test]
    fn output_is_compared_exactly_except_where_the_page_leaves_a_gap() {
        for (expected, actual, same) in [
            ("a\nb", "a\nb\n", true),
            ("a\nb", "a\n", false),
            ("a", "a\nb\n", false),
            ("", "", true),
            ("", "unsaid\n", false),
            ("pod/x   Running   …", "pod/x   Running   3s\n", true),
            ("pod/x   Running   …", "pod/x   Pending   3s\n", false),
            ("v…1 (…)", "v0.1 (abc)", true),
            ("v…1 (…)", "v0.1 (abc", false),
            ("a\n…\nz", "a\nb\nc\nz", true),
            ("a\n…\nz", "a\nz", true),
            ("a\n…\nz", "a\nb\n", false),
        ] {
            assert_eq!(matches(expected, actual), same, "{expected:?} against {actual:?}");
        }
    }
}
