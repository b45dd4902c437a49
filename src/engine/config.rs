//! The file of settings. Its keys are the flags in camel case: there is one list of settings, that of the flags.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::{ArgAction, ArgMatches, Command, parser::ValueSource};
use portal_document::{Document, Node, Options, View, from_yaml};
use tracing::{info, warn};

use crate::logs::Logs;

/// How often the file is looked at for another `log`. In a cluster a file changes a minute late anyway.
const INTERVAL: Duration = Duration::from_secs(2);

/// The largest file that is read.
const MAX_BYTES: u64 = 1 << 20;

/// The command line with what the file of `--config` says, for settings that neither a flag nor the environment gives.
pub(crate) fn with_file(command: &Command, matches: &ArgMatches, line: Vec<OsString>) -> anyhow::Result<Vec<OsString>> {
    let Some(("engine", engine)) = matches.subcommand() else { return Ok(line) };
    let Some(path) = engine.get_one::<PathBuf>("config") else { return Ok(line) };
    let flags = command.find_subcommand("engine").context("there is a subcommand `engine`")?;
    let file = read(path)?;
    let mut line = line;
    for (key, value) in file.root().as_object().into_iter().flat_map(|object| object.iter()) {
        let place = || format!("{}: `{key}`", path.display());
        let flag = kebab(key);
        let Some(argument) = flags.get_arguments().find(|argument| argument.get_long() == Some(&flag)) else {
            let names = flags.get_arguments().filter_map(|argument| argument.get_long()).map(camel);
            let names: Vec<String> = names.filter(|name| name != "help" && name != "config").collect();
            let near = portal_expr::nearest(key, names.iter().map(String::as_str));
            let hint =
                near.map_or_else(|| format!("there is {}", names.join(", ")), |near| format!("did you mean `{near}`?"));
            bail!("{} is no setting: {hint}", place());
        };
        let given = engine.value_source(argument.get_id().as_str());
        if matches!(given, Some(ValueSource::CommandLine | ValueSource::EnvVariable)) {
            continue;
        }
        let word = match (value.view(), argument.get_action()) {
            (View::Bool(true), ArgAction::SetTrue) => format!("--{flag}"),
            (View::Bool(false), ArgAction::SetTrue) => continue,
            (_, ArgAction::SetTrue) => bail!("{} is true or false", place()),
            (View::Str(text), _) => format!("--{flag}={text}"),
            (View::Int(number), _) => format!("--{flag}={number}"),
            _ => bail!("{} is a text or a number", place()),
        };
        // Each setting is parsed alone, so that a mistake in it is reported with its place in the file.
        if let Err(error) = flags.clone().no_binary_name(true).try_get_matches_from([&word]) {
            let error = error.to_string();
            let first = error.lines().next().unwrap_or_default();
            bail!("{}: {}", place(), first.trim_start_matches("error: "));
        }
        // `log` is read from the file where it is followed: as a flag it would look as if the user gave it, and not be followed.
        if flag != "log" {
            line.push(word.into());
        }
    }
    Ok(line)
}

/// Follows the `log` of the file. `known` is what it was when the engine began to log.
pub(crate) async fn follow_log(path: PathBuf, mut known: Option<String>, logs: Logs) {
    loop {
        tokio::time::sleep(INTERVAL).await;
        let found = match levels(&path) {
            Ok(found) => found,
            // The file is being written, or is gone for a moment: the levels stay as they are.
            Err(_) => continue,
        };
        if found == known {
            continue;
        }
        known.clone_from(&found);
        match logs.change(found.as_deref()) {
            Ok(()) => info!(levels = found, "What is logged has changed"),
            Err(error) => warn!(error = format!("{error:#}"), file = %path.display(), "What is logged stays as it was"),
        }
    }
}

/// The `log` of the file.
pub(crate) fn levels(path: &Path) -> anyhow::Result<Option<String>> {
    Ok(read(path)?.root().get_str("log").and_then(Node::as_str).map(str::to_owned))
}

fn read(path: &Path) -> anyhow::Result<Document> {
    let cannot = || format!("{} cannot be read", path.display());
    if std::fs::metadata(path).with_context(cannot)?.len() > MAX_BYTES {
        bail!("{} is larger than {MAX_BYTES} bytes: it is no file of settings", path.display());
    }
    let text = std::fs::read_to_string(path).with_context(cannot)?;
    let documents = from_yaml(&text, &Options::default()).map_err(|error| {
        let place = error.position().map(|place| format!(":{}:{}", place.line, place.column)).unwrap_or_default();
        anyhow::anyhow!("{}{place}: {}", path.display(), error.reason())
    })?;
    let mut documents = documents.into_iter().map(|found| found.document);
    match (documents.next(), documents.next()) {
        (Some(document), None) if document.root().as_object().is_some() => Ok(document),
        _ => bail!("{} is one YAML map of settings, such as `rulesFromCluster: true`", path.display()),
    }
}

fn kebab(key: &str) -> String {
    let mut flag = String::new();
    for letter in key.chars() {
        if letter.is_ascii_uppercase() {
            flag.push('-');
        }
        flag.push(letter.to_ascii_lowercase());
    }
    flag
}

fn camel(flag: &str) -> String {
    let mut words = flag.split('-');
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |key, word| {
        let mut letters = word.chars();
        key + &letters.next().map(|letter| letter.to_ascii_uppercase()).into_iter().collect::<String>()
            + letters.as_str()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_flags_in_camel_case() {
        for (key, flag) in
            [("log", "log"), ("rulesFolder", "rules-folder"), ("leaseRenewDeadline", "lease-renew-deadline")]
        {
            assert_eq!(kebab(key), flag);
            assert_eq!(camel(flag), key);
        }
    }
}
