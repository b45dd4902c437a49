//! Between the corpora that are committed and the folders that libFuzzer works with.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, bail};
use portal_fuzz::{corpus, dictionary, targets};

const USAGE: &str = "usage:
  portal-fuzz targets                  the names of all targets
  portal-fuzz unpack TARGET FOLDER     the committed inputs as files, and a dictionary
  portal-fuzz pack TARGET FOLDER       the files of a folder as the committed inputs
  portal-fuzz replay TARGET FILE       one input";

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["targets"] => targets::ALL.iter().for_each(|(name, _)| println!("{name}")),
        ["unpack", name, folder] => unpack(find(name)?.0, Path::new(folder))?,
        ["pack", name, folder] => pack(find(name)?.0, Path::new(folder))?,
        ["replay", name, file] => {
            let input = fs::read(file).with_context(|| format!("could not read {file}"))?;
            find(name)?.1(&input);
            println!("{} bytes: nothing is wrong", input.len());
        }
        _ => bail!("{USAGE}"),
    }
    Ok(())
}

fn find(name: &str) -> anyhow::Result<targets::Target> {
    targets::find(name).with_context(|| format!("there is no target {name}"))
}

fn unpack(name: &str, folder: &Path) -> anyhow::Result<()> {
    let file = corpus::file(name);
    let text = fs::read_to_string(&file).with_context(|| format!("could not read {}", file.display()))?;
    let inputs = folder.join("inputs");
    fs::create_dir_all(&inputs)?;
    for (number, input) in corpus::read(&text).map_err(anyhow::Error::msg)?.iter().enumerate() {
        fs::write(inputs.join(format!("{number:04}")), input)?;
    }
    fs::write(folder.join("dictionary"), dictionary::of(name))?;
    Ok(())
}

fn pack(name: &str, folder: &Path) -> anyhow::Result<()> {
    let inputs: Result<Vec<_>, _> = fs::read_dir(folder)?.map(|entry| fs::read(entry?.path())).collect();
    let inputs = inputs.with_context(|| format!("could not read {}", folder.display()))?;
    println!("{} inputs of {name}", inputs.len());
    fs::write(corpus::file(name), corpus::write(inputs))?;
    Ok(())
}
