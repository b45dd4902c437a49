//! What it costs to know the pods of a large cluster, and to ask for them: `lookups [--details]`.
//!
//! An API double in this process tells 100,000 pods. Those who listen are measured in processes of their own:
//! `lookups NAME KUBECONFIG` runs one, and `lookups serve KUBECONFIG` is a double for it that writes this file, for whoever wants
//! to look into one with a profiler. `lookups pods COUNT` prints pods, for a real API server.

#[cfg(feature = "jemalloc")]
use tikv_jemallocator::Jemalloc;

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use portal_bench::lookups::sides::{Outcome, builtin};
use portal_bench::lookups::{Double, FEW, Offer, PODS, ask};
use portal_bench::measure::Samples;
use portal_bench::objects::crowd;
use portal_bench::row::{self, Goal, Row};

#[cfg(feature = "jemalloc")]
#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

/// A round takes some twenty seconds.
const ROUNDS: usize = 5;

/// Where those who listen are started.
struct Stage {
    double: Double,
    folder: PathBuf,
    details: bool,
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match &arguments[..] {
        [name, kubeconfig] if name == "ask" => ask(Path::new(kubeconfig)),
        [name, kubeconfig] if name == "serve" => {
            Double::start(PODS)?.kubeconfig(Offer::Stream(PODS), Path::new(kubeconfig))?;
            loop {
                std::thread::park();
            }
        }
        [name, count] if name == "pods" => {
            crowd(count.parse()?).for_each(|pod| println!("{pod}"));
            Ok(())
        }
        [name, kubeconfig] => {
            let side = builtin().into_iter().find(|side| side.name == name).ok_or("nobody is called so")?;
            println!("{}", serde_json::to_string(&(side.run)(Path::new(kubeconfig))?)?);
            Ok(())
        }
        _ => {
            let folder = std::env::temp_dir().join(format!("portal-lookups-{}", std::process::id()));
            std::fs::create_dir_all(&folder)?;
            let details = arguments.iter().any(|argument| argument == "--details");
            let stage = Stage { double: Double::start(PODS)?, folder, details };
            let measured = stage.measure();
            std::fs::remove_dir_all(&stage.folder)?;
            measured
        }
    }
}

impl Stage {
    fn measure(&self) -> Result<(), Box<dyn Error>> {
        let lists = self.lists()?;
        self.memory(&lists)?;
        self.changes()?;
        let status = self.command("ask", Offer::Stream(PODS))?.stdout(Stdio::inherit()).status()?;
        if status.success() { Ok(()) } else { Err(format!("asking failed ({status})").into()) }
    }

    /// What a list costs, against values. Returns what came of the lists into the cache.
    fn lists(&self) -> Result<Vec<Outcome>, Box<dyn Error>> {
        let rounds = self.rounds("cache", "kept-values", Offer::Stream(FEW))?;
        compare("list 10,000 pods until they are cached: CPU", "cached as serde_json::Value", &rounds, false);
        let rounds = self.rounds("cache", "values", Offer::Stream(PODS))?;
        let what = "list 100,000 pods until they are cached: CPU";
        compare(what, "as serde_json::Value, and thrown away", &rounds, true);
        let nothing = self.rounds("cache", "nothing", Offer::Stream(PODS))?;
        let each = nothing.iter().map(|(_, nothing)| nothing.processor * 1e6 / nothing.pods as f64);
        let each = Samples::new(each.collect());
        row::print(&Row {
            what: "list 100,000 pods and make nothing of them: CPU of one".to_owned(),
            value: each.median(),
            unit: "µs",
            spread: Some(each.spread()),
            ..Row::default()
        });
        let ours: Vec<Outcome> = rounds.iter().flat_map(|(ours, _)| *ours).collect();
        let seconds = Samples::new(ours.iter().map(|outcome| outcome.seconds).collect());
        row::print(&Row {
            what: "list 100,000 pods until they are cached".to_owned(),
            value: seconds.median(),
            unit: "s",
            spread: Some(seconds.spread()),
            ..Row::default()
        });
        let rounds = self.rounds("cache-of-bytes", "values-of-bytes", Offer::Stream(0))?;
        let what = "the same without a server, 10,000 pods: CPU";
        compare(what, "as serde_json::Value, and thrown away", &rounds, false);
        let pages = self.run("cache", Offer::Pages(PODS))?;
        row::print(&Row {
            what: "list 100,000 pods in pages: CPU".to_owned(),
            value: pages.processor,
            unit: "s",
            worst: format!("{:.1} s, {:.0} MB", pages.seconds, pages.resident / 1e6),
            ..Row::default()
        });
        Ok(ours)
    }

    /// Runs one of ours and another by turns. Ours twice, because what lies between two runs of one program is what the ratio cannot be
    /// trusted beyond.
    fn rounds(&self, ours: &str, theirs: &str, offer: Offer) -> Result<Vec<([Outcome; 2], Outcome)>, Box<dyn Error>> {
        let round = || {
            let first = self.run(ours, offer)?;
            let other = self.run(theirs, offer)?;
            Ok(([first, self.run(ours, offer)?], other))
        };
        (0..ROUNDS).map(|_| round()).collect()
    }

    /// What pods take in memory, against kube's store.
    fn memory(&self, lists: &[Outcome]) -> Result<(), Box<dyn Error>> {
        let bytes = Samples::new(lists.iter().map(|outcome| outcome.resident).collect());
        let few = self.run("cache", Offer::Stream(FEW))?;
        let theirs = self.run("reflector", Offer::Stream(FEW))?;
        let each = |outcome: &Outcome| outcome.resident / outcome.pods as f64;
        row::print(&Row {
            what: "memory of 100,000 cached pods of 11 KB".to_owned(),
            value: bytes.median() / 1e6,
            unit: "MB",
            spread: Some((bytes.spread().0 / 1e6, bytes.spread().1 / 1e6)),
            ..Row::default()
        });
        let ratios = Samples::new(lists.iter().map(|ours| each(&theirs) / each(ours)).collect());
        row::print(&Row {
            what: "memory of one of 100,000 cached pods".to_owned(),
            against: "one of 10,000 DynamicObjects in kube's reflector".to_owned(),
            value: ratios.median(),
            unit: "× smaller",
            worst: format!(
                "{:.0} B to {:.0} B; among 10,000 {:.0} B",
                bytes.median() / PODS as f64,
                each(&theirs),
                each(&few)
            ),
            spread: Some(ratios.spread()),
            must: Some(Goal::AtLeast(25.0)),
            aim: Some(Goal::AtLeast(50.0)),
            ..Row::default()
        });
        Ok(())
    }

    /// What changes cost the whole way from a server, and what they leave in memory.
    fn changes(&self) -> Result<(), Box<dyn Error>> {
        let outcomes: Vec<Outcome> =
            (0..ROUNDS).map(|_| self.run("cache-and-changes", Offer::Changes)).collect::<Result<_, _>>()?;
        let changes = || outcomes.iter().filter_map(|outcome| outcome.changes);
        let (times, grown) = (changes().map(|(_, seconds)| seconds * 1e6), changes().map(|(bytes, _)| bytes / 1e6));
        let times = Samples::new(times.collect());
        row::print(&Row {
            what: "an event into 100,000 cached pods, from a server: CPU".to_owned(),
            value: times.median(),
            unit: "µs",
            worst: format!("{:.0} MB after 20,000", Samples::new(grown.collect()).median()),
            spread: Some(times.spread()),
            ..Row::default()
        });
        Ok(())
    }

    /// Runs one who listens, to the end.
    fn run(&self, name: &str, offer: Offer) -> Result<Outcome, Box<dyn Error>> {
        let output = self.command(name, offer)?.output()?;
        if !output.status.success() {
            return Err(format!("{name} failed ({})", output.status).into());
        }
        let outcome: Outcome = serde_json::from_slice(&output.stdout)?;
        if self.details {
            let Outcome { pods, seconds, processor, resident, .. } = outcome;
            let each = resident / pods as f64;
            eprintln!("{name:<18}{pods:>8} pods {seconds:>7.2} s {processor:>7.2} s of processors {each:>8.0} B each");
        }
        let wanted = match offer {
            Offer::Stream(0) => FEW,
            Offer::Stream(count) | Offer::Pages(count) => count,
            Offer::Changes => PODS,
        };
        if outcome.pods == wanted { Ok(outcome) } else { Err(format!("{name} has {} pods", outcome.pods).into()) }
    }

    fn command(&self, name: &str, offer: Offer) -> Result<Command, Box<dyn Error>> {
        let kubeconfig = self.folder.join("kubeconfig");
        self.double.kubeconfig(offer, &kubeconfig)?;
        let mut command = Command::new(std::env::current_exe()?);
        command.arg(name).arg(kubeconfig).stderr(Stdio::inherit());
        Ok(command)
    }
}

/// Prints how much less of processors the cache takes than another.
fn compare(what: &str, against: &str, rounds: &[([Outcome; 2], Outcome)], has_goals: bool) {
    let ratios = rounds
        .iter()
        .flat_map(|(ours, theirs)| ours.iter().map(move |ours| theirs.processor / ours.processor))
        .collect();
    let ratios = Samples::new(ratios);
    let itself = rounds.iter().map(|([one, other], _)| one.processor / other.processor);
    let (least, most) = Samples::new(itself.collect()).spread();
    let each = |outcome: &Outcome| outcome.processor * 1e6 / outcome.pods as f64;
    let ours = Samples::new(rounds.iter().flat_map(|(ours, _)| ours.iter().map(each)).collect());
    let theirs = Samples::new(rounds.iter().map(|(_, theirs)| each(theirs)).collect());
    row::print(&Row {
        what: what.to_owned(),
        against: against.to_owned(),
        value: ratios.median(),
        unit: "× less",
        worst: format!("{:.1} to {:.1} µs a pod; with itself {least:.2}–{most:.2}", ours.median(), theirs.median()),
        spread: Some(ratios.spread()),
        must: has_goals.then_some(Goal::AtLeast(3.0)),
        aim: has_goals.then_some(Goal::AtLeast(5.0)),
        ..Row::default()
    });
}
