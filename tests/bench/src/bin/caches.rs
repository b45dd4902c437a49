//! What a cached pod takes, in our form and in kube's store: `caches [--details]`.
//!
//! Caches are measured as the system sees them, each in a process of its own that reads its pods from another one, so that
//! nothing else is in its memory.

use std::collections::HashMap;
use std::error::Error;
use std::io::{self, BufRead as _, BufReader, BufWriter, Write as _};
use std::process::{Command, Stdio};
use std::sync::Arc;

use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use kube::runtime::{reflector::store::Writer, watcher::Event};
use portal_bench::measure;
use portal_bench::objects::{cache_drops, pods};
use portal_bench::row::{self, Goal, Row};
use portal_document::{Document, Options, Path};

const PODS: usize = 10_000;

/// A cache that is filled with pods.
trait Store {
    fn add(&mut self, pod: &[u8]);
    fn len(&self) -> usize;
}

/// Our objects by their identity.
struct PortalStore {
    objects: HashMap<u64, Arc<Document>>,
    drops: [Path; 2],
}

struct KubeStore(Writer<DynamicObject>);

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        Some("portal") => cache(PortalStore { objects: HashMap::new(), drops: cache_drops() }),
        Some("kube") => cache(KubeStore::new()),
        Some("pods") => {
            let mut out = BufWriter::new(io::stdout().lock());
            Ok(pods(PODS).try_for_each(|pod| writeln!(out, "{pod}"))?)
        }
        _ => compare(arguments.iter().any(|argument| argument == "--details")),
    }
}

/// Runs each cache in a process of its own.
fn compare(details: bool) -> Result<(), Box<dyn Error>> {
    let run = |name: &str| -> Result<f64, Box<dyn Error>> {
        let output = Command::new(std::env::current_exe()?).arg(name).stderr(Stdio::inherit()).output()?;
        Ok(String::from_utf8(output.stdout)?.trim().parse()?)
    };
    let (portal, kube) = (run("portal")?, run("kube")?);
    if details {
        eprintln!("a pod takes {portal:.0} bytes in our cache and {kube:.0} in kube's");
    }
    let what = || "memory of a cached pod of 11 KB".to_owned();
    row::print(&Row { what: what(), value: portal, unit: "B", ..Row::default() });
    row::print(&Row {
        what: what(),
        against: "DynamicObject in kube's store".to_owned(),
        value: kube / portal,
        unit: "× smaller",
        must: Some(Goal::AtLeast(30.0)),
        aim: Some(Goal::AtLeast(50.0)),
        ..Row::default()
    });
    Ok(())
}

/// Fills a cache, and prints what a pod takes of the process's memory.
fn cache(mut store: impl Store) -> Result<(), Box<dyn Error>> {
    let mut source = Command::new(std::env::current_exe()?).arg("pods").stdout(Stdio::piped()).spawn()?;
    let mut lines = BufReader::new(source.stdout.take().ok_or("no output")?);
    let mut line = Vec::with_capacity(64 << 10);
    let before = measure::resident()?;
    while lines.read_until(b'\n', &mut line)? > 0 {
        store.add(&line);
        line.clear();
    }
    let taken = measure::resident()? - before;
    source.wait()?;
    assert_eq!(store.len(), PODS, "every pod is in the cache");
    println!("{}", taken as f64 / PODS as f64);
    Ok(())
}

impl Store for PortalStore {
    fn add(&mut self, pod: &[u8]) {
        // In place of a hash of the object's identity.
        let origin = self.objects.len() as u64;
        let options = Options { drop: &self.drops, origin: Some(origin), ..Options::default() };
        let document = Document::parse(pod, &options).expect("the bench's own pods are JSON");
        self.objects.insert(origin, Arc::new(document));
    }

    fn len(&self) -> usize {
        self.objects.len()
    }
}

impl KubeStore {
    fn new() -> Self {
        Self(Writer::new(ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", "Pod"))))
    }
}

impl Store for KubeStore {
    fn add(&mut self, pod: &[u8]) {
        let pod = serde_json::from_slice(pod).expect("the bench's own pods are JSON");
        self.0.apply_watcher_event(&Event::Apply(pod));
    }

    fn len(&self) -> usize {
        self.0.as_reader().len()
    }
}
