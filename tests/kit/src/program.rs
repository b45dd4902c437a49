//! Programs from Go modules: downloaded and built once, cached by content, found again in no time.
//!
//! Building needs the network and happens in `make prepare`; tests only look programs up.

use std::fs;
use std::io::{BufRead as _, BufReader, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use sha2::{Digest as _, Sha256};

use crate::cache::Cache;

/// A program that is built from a Go module.
#[derive(Clone, Debug)]
pub struct Program {
    /// What the program is called, in messages and in the cache.
    pub name: String,
    /// The folder with `go.mod`.
    pub module: PathBuf,
    /// The package to build, as `go build` takes it.
    pub package: String,
    /// Further arguments of `go build`, such as tags.
    pub build_flags: Vec<String>,
    /// Names that the program is also known by: links beside it, for programs that look at the name they are called by.
    pub links: Vec<String>,
}

/// How many builds of one program are kept. More than one, so that going back and forth between branches is cheap.
const BUILDS_KEPT: usize = 3;

/// How often a build that is not watched on a terminal says how far it is.
const REPORT_INTERVAL: Duration = Duration::from_secs(15);

impl Program {
    /// The program in this Go module, with nothing special about it.
    pub fn new(name: &str, module: impl Into<PathBuf>) -> Self {
        Self {
            name: name.to_owned(),
            module: module.into(),
            package: ".".to_owned(),
            build_flags: Vec::new(),
            links: Vec::new(),
        }
    }

    /// The built program. An error tells how to build it.
    pub fn find(&self, cache: &Cache) -> anyhow::Result<PathBuf> {
        let folder = self.folder(cache)?;
        let path = folder.join(&self.name);
        if !path.exists() {
            bail!("{} is not built yet: run `make prepare`", self.name);
        }
        // The newest use decides what is pruned, so a build in use must not look old.
        fs::File::open(&folder)?.set_modified(std::time::SystemTime::now())?;
        Ok(path)
    }

    /// Builds the program unless the cache has it.
    pub fn build(&self, cache: &Cache) -> anyhow::Result<PathBuf> {
        if let Ok(path) = self.find(cache) {
            return Ok(path);
        }
        let _lock = cache.lock(&format!("build-{}", self.name))?;
        // Somebody else may have built it while this process waited.
        if let Ok(path) = self.find(cache) {
            return Ok(path);
        }
        let folder = self.folder(cache)?;
        // Built beside its place and moved there at the end: what is interrupted is never taken for whole.
        let unfinished = unfinished(&folder);
        if unfinished.exists() {
            fs::remove_dir_all(&unfinished)?;
        }
        fs::create_dir_all(&unfinished)?;
        self.compile(cache, &unfinished.join(&self.name))?;
        for link in &self.links {
            std::os::unix::fs::symlink(&self.name, unfinished.join(link))?;
        }
        fs::rename(&unfinished, &folder)?;
        self.prune(cache)?;
        self.find(cache)
    }

    fn compile(&self, cache: &Cache, output: &Path) -> anyhow::Result<()> {
        println!("building {}: finding out what it is made of, and downloading what is missing", self.name);
        let packages = self.packages(cache)?;
        println!("building {}: {packages} packages, those that the build cache has are skipped", self.name);
        let mut child = self
            .go(cache)?
            .args(["build", "-v", "-o"])
            .arg(output)
            .args(&self.build_flags)
            .arg(&self.package)
            .stderr(Stdio::piped())
            .spawn()
            .context("could not run `go build`")?;
        let stderr = child.stderr.take().expect("it was asked to be piped");
        let mut progress = Progress::new(&self.name, packages);
        let mut last_lines = Vec::new();
        for line in BufReader::new(stderr).lines() {
            let line = line?;
            progress.package();
            last_lines.push(line);
            if last_lines.len() > 20 {
                last_lines.remove(0);
            }
        }
        let status = child.wait()?;
        if !status.success() {
            bail!("`go build` of {} failed ({status}):\n{}", self.name, last_lines.join("\n"));
        }
        progress.finish();
        Ok(())
    }

    /// Lists the packages, which downloads every module that is needed.
    fn packages(&self, cache: &Cache) -> anyhow::Result<usize> {
        let output = self
            .go(cache)?
            .args(["list", "-deps"])
            .args(self.build_flags.iter().filter(|flag| flag.starts_with("-tags")))
            .arg(&self.package)
            .stderr(Stdio::inherit())
            .output()
            .context("could not run `go list`")?;
        if !output.status.success() {
            bail!("`go list` failed for {} in {}", self.name, self.module.display());
        }
        Ok(output.stdout.iter().filter(|byte| **byte == b'\n').count())
    }

    /// A `go` command in the module, with caches of ours and nothing left to the machine's settings.
    pub(crate) fn go(&self, cache: &Cache) -> anyhow::Result<Command> {
        let mut command = Command::new("go");
        command
            .current_dir(&self.module)
            .env("GOPATH", cache.folder("go")?)
            .env("GOCACHE", cache.folder("go/build")?)
            .env("GOMODCACHE", cache.folder("go/mod")?)
            .env("GOFLAGS", "-buildvcs=false -trimpath -modcacherw")
            .env("GOTOOLCHAIN", "local")
            .env("GOWORK", "off")
            .env("CGO_ENABLED", "0");
        Ok(command)
    }

    /// The place of this build: it changes with the sources, the flags and the compiler.
    fn folder(&self, cache: &Cache) -> anyhow::Result<PathBuf> {
        Ok(cache.folder("programs")?.join(format!("{}-{}", self.name, self.fingerprint(cache)?)))
    }

    fn fingerprint(&self, cache: &Cache) -> anyhow::Result<String> {
        let mut hasher = Sha256::new();
        let version =
            self.go(cache)?.arg("version").output().context("could not run `go version`: is Go installed?")?;
        hasher.update(&version.stdout);
        for part in [&self.package].into_iter().chain(&self.build_flags).chain(&self.links) {
            hasher.update(part);
            hasher.update([0]);
        }
        let mut files: Vec<PathBuf> = fs::read_dir(&self.module)
            .with_context(|| format!("could not read the module {}", self.module.display()))?
            .map(|entry| Ok(entry?.path()))
            .collect::<std::io::Result<_>>()?;
        files.sort();
        hasher.update(content_hash(files.iter().filter(|file| is_source(file)))?);
        Ok(short_hex(hasher))
    }

    /// Removes the builds that have not been used for longest.
    fn prune(&self, cache: &Cache) -> anyhow::Result<()> {
        let prefix = format!("{}-", self.name);
        let mut builds = Vec::new();
        for entry in fs::read_dir(cache.folder("programs")?)? {
            let entry = entry?;
            let name = entry.file_name();
            let hash = name.to_str().and_then(|name| name.strip_prefix(&prefix)).unwrap_or_default();
            // A longer name that begins alike is another program.
            if hash.len() == 12 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()) {
                builds.push((entry.metadata()?.modified()?, entry.path()));
            }
        }
        builds.sort();
        for (_, path) in builds.iter().rev().skip(BUILDS_KEPT) {
            fs::remove_dir_all(path)?;
        }
        Ok(())
    }
}

/// A short name for the content of these files.
pub(crate) fn content_hash<'path>(files: impl Iterator<Item = &'path PathBuf>) -> anyhow::Result<String> {
    let mut hasher = Sha256::new();
    for file in files {
        hasher.update(file.file_name().context("a file has a name")?.as_encoded_bytes());
        hasher.update([0]);
        hasher.update(fs::read(file).with_context(|| format!("could not read {}", file.display()))?);
    }
    Ok(short_hex(hasher))
}

fn short_hex(hasher: Sha256) -> String {
    hasher.finalize().iter().take(6).map(|byte| format!("{byte:02x}")).collect()
}

/// Where a build lies until it is whole.
pub(crate) fn unfinished(folder: &Path) -> PathBuf {
    let mut path = folder.as_os_str().to_owned();
    path.push(".unfinished");
    PathBuf::from(path)
}

/// What counts as the content of a module: Go files and the two lists of dependencies, without tests.
fn is_source(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name == "go.mod" || name == "go.sum" || (name.ends_with(".go") && !name.ends_with("_test.go"))
}

/// Says how far a build is: a line that moves on a terminal, a line now and then elsewhere.
struct Progress {
    name: String,
    total: usize,
    done: usize,
    started: Instant,
    reported: Instant,
    terminal: bool,
}

impl Progress {
    fn new(name: &str, total: usize) -> Self {
        let now = Instant::now();
        let terminal = std::io::stdout().is_terminal();
        Self { name: name.to_owned(), total, done: 0, started: now, reported: now, terminal }
    }

    fn package(&mut self) {
        self.done += 1;
        if self.terminal {
            print!("\r{}", self.line());
            let _ = std::io::stdout().flush();
        } else if self.reported.elapsed() >= REPORT_INTERVAL {
            self.reported = Instant::now();
            println!("{}", self.line());
        }
    }

    fn line(&self) -> String {
        let seconds = self.started.elapsed().as_secs();
        format!("building {}: {} of {} packages, {seconds} s", self.name, self.done.min(self.total), self.total)
    }

    fn finish(&self) {
        let start = if self.terminal { "\r" } else { "" };
        println!("{start}building {}: done after {} s            ", self.name, self.started.elapsed().as_secs());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A cache of the test's own, but for Go's: compiling Go's library each time would only take time.
    fn cache(folder: &Path) -> Cache {
        let cache = Cache::at(folder.join("cache")).unwrap();
        std::os::unix::fs::symlink(Cache::open().unwrap().folder("go").unwrap(), folder.join("cache/go")).unwrap();
        cache
    }

    fn module(folder: &Path, source: &str) -> Program {
        let module = folder.join("module");
        fs::create_dir_all(&module).unwrap();
        fs::write(module.join("go.mod"), "module example.org/hello\n\ngo 1.24\n").unwrap();
        fs::write(module.join("main.go"), format!("package main\n\nfunc main() {{ println({source:?}) }}\n")).unwrap();
        Program { links: vec!["greet".to_owned()], ..Program::new("hello-1.2", module) }
    }

    #[test]
    fn a_program_is_built_once_and_again_only_when_its_source_changes() {
        let folder = tempfile::tempdir().unwrap();
        let cache = cache(folder.path());
        let first = module(folder.path(), "one");
        assert_eq!(first.find(&cache).unwrap_err().to_string(), "hello-1.2 is not built yet: run `make prepare`");
        let built = first.build(&cache).unwrap();
        let written = built.metadata().unwrap().modified().unwrap();
        assert_eq!(first.build(&cache).unwrap(), built);
        assert_eq!(built.metadata().unwrap().modified().unwrap(), written);
        assert!(built.with_file_name("greet").exists());

        let second = module(folder.path(), "two").build(&cache).unwrap();
        assert_ne!(second, built);
        let output = Command::new(second).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stderr), "two\n");
    }

    #[test]
    fn a_half_built_program_is_built_anew() {
        let folder = tempfile::tempdir().unwrap();
        let cache = cache(folder.path());
        let program = module(folder.path(), "whole");
        let unfinished = unfinished(&program.folder(&cache).unwrap());
        fs::create_dir_all(&unfinished).unwrap();
        fs::write(unfinished.join("hello-1.2"), "half").unwrap();
        let built = program.build(&cache).unwrap();
        assert!(fs::metadata(built).unwrap().len() > 1000);
        assert!(!unfinished.exists());
    }

    #[test]
    fn a_failed_build_shows_what_the_compiler_said() {
        let folder = tempfile::tempdir().unwrap();
        let cache = cache(folder.path());
        let program = module(folder.path(), "one");
        fs::write(program.module.join("main.go"), "package main\n\nfunc main() { missing() }\n").unwrap();
        let error = program.build(&cache).unwrap_err().to_string();
        assert!(error.contains("undefined: missing"), "{error}");
        assert!(program.find(&cache).is_err());
    }

    #[test]
    fn only_the_latest_builds_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let cache = cache(folder.path());
        let builds: Vec<_> =
            ["1", "2", "3", "4"].map(|source| module(folder.path(), source).build(&cache).unwrap()).to_vec();
        assert_eq!(builds.iter().map(|build| build.exists()).collect::<Vec<_>>(), [false, true, true, true]);
    }
}
