//! The engine beside a server on the same stack that decides nothing, and one that also makes a `serde_json::Value` of the body. All
//! are asked in turns. The engine is asked twice in each round: what lies between those two is what no ratio can be trusted beyond.

use anyhow::Context as _;

use super::stage::{Outcome, SERVERS, Stage};
use super::{Samples, row};
use crate::bench::table::{Goal, Row, number};

const ROUNDS: usize = 5;

/// As many as an API server keeps open.
const CONNECTIONS: &str = "25";

/// A server has two seconds of its processor in this time, at least.
const FULL_LOAD: [&str; 4] = ["--connections", CONNECTIONS, "--seconds", "2.5"];
const WARM: [&str; 4] = ["--connections", CONNECTIONS, "--seconds", "1"];

/// Of so many answers the hundredth part is still two hundred.
const ANSWERS: &str = "20000";

/// After so many requests the engine's memory is looked at.
const MANY: f64 = 1_000_000.0;

/// One who is asked.
struct Contestant {
    address: String,
    process: u32,
}

/// What the contestants did in the rounds of one measurement: the engine and the engine again, nothing, nothing but parsing.
struct Race {
    engine: Vec<[Outcome; 2]>,
    echo: Vec<Outcome>,
    parse: Vec<Outcome>,
}

pub(super) fn measure(stage: &Stage) -> anyhow::Result<Vec<Row>> {
    let webhook = stage.webhook(Some(SERVERS))?;
    let (echo, parse) = (stage.echo(SERVERS, &[])?, stage.echo(SERVERS, &["--parse"])?);
    let engine = Contestant { address: webhook.address.clone(), process: webhook.engine.process.id() };
    let echo = (Contestant { address: echo.address.clone(), process: echo.process.id() }, echo);
    let parse = (Contestant { address: parse.address.clone(), process: parse.process.id() }, parse);
    let mut rates = [0.0; 3];
    for (rate, contestant) in rates.iter_mut().zip([&engine, &echo.0, &parse.0]) {
        *rate = contestant.ask(stage, &WARM)?.per_second;
    }
    let full = race(stage, [&engine, &echo.0, &parse.0], [&FULL_LOAD; 3])?;
    let alone = ["--connections", "1", "--requests", ANSWERS];
    let alone = race(stage, [&engine, &echo.0, &parse.0], [&alone; 3])?;
    let half = rates.map(|rate| (rate / 2.0).to_string());
    let half = half.each_ref().map(|rate| ["--connections", CONNECTIONS, "--requests", ANSWERS, "--rate", rate]);
    let half = race(stage, [&engine, &echo.0, &parse.0], half.each_ref().map(|flags| &flags[..]))?;

    let mut rows = costs(&full);
    rows.extend(times(&alone, "one at a time", None));
    rows.extend(times(&half, "at half load", Some(Goal::AtMost(1.0))));
    let most = Samples::new(full.engine.iter().flatten().map(|outcome| outcome.milliseconds.p99));
    let what = "99 of 100 answers, at full load";
    rows.push(Row { must: Some(Goal::AtMost(20.0)), ..row(what, "", &most, "ms") });

    let answered = || webhook.engine.metric("portal_admission_requests_total{decision=\"allowed\"}");
    let rest = (MANY - answered()).max(1.0).to_string();
    engine.ask(stage, &["--connections", CONNECTIONS, "--requests", &rest])?;
    let memory = webhook.engine.process.memory()?;
    rows.push(Row {
        what: "memory after 1,000,000 requests".to_owned(),
        value: memory,
        unit: "MB".to_owned(),
        worst: format!("{:.1} at most", webhook.engine.process.most_memory()?),
        must: Some(Goal::AtMost(30.0)),
        aim: Some(Goal::AtMost(20.0)),
        ..Row::default()
    });
    webhook.engine.process.stop()?;
    Ok(rows)
}

fn race(stage: &Stage, contestants: [&Contestant; 3], flags: [&[&str]; 3]) -> anyhow::Result<Race> {
    let [engine, echo, parse] = contestants;
    let mut race = Race { engine: Vec::new(), echo: Vec::new(), parse: Vec::new() };
    for _ in 0..ROUNDS {
        let first = engine.ask(stage, flags[0])?;
        race.echo.push(echo.ask(stage, flags[1])?);
        race.parse.push(parse.ask(stage, flags[2])?);
        race.engine.push([first, engine.ask(stage, flags[0])?]);
    }
    if stage.details {
        let outcomes = race.engine.iter().flatten().map(|outcome| ("engine", outcome));
        let outcomes = outcomes.chain(race.echo.iter().map(|outcome| ("echo", outcome)));
        for (name, outcome) in outcomes.chain(race.parse.iter().map(|outcome| ("echo and Value", outcome))) {
            eprintln!(
                "{name:<16}{:>8.0} requests{:>8.0} /s{:>8.1} µs of processor{:>8.3} ms half{:>8.3} ms 99 of 100",
                outcome.requests,
                outcome.per_second,
                outcome.processor_microseconds(),
                outcome.milliseconds.p50,
                outcome.milliseconds.p99,
            );
        }
    }
    Ok(race)
}

/// What a request takes of the processor, and how many a processor answers.
fn costs(race: &Race) -> Vec<Row> {
    let what = "judge a pod of 10 KB by 15 rules";
    let cost = Outcome::processor_microseconds;
    let mut rows = vec![row(&format!("{what}: CPU"), "", &race.engine(cost), "µs")];
    let echo = race.compared(&race.echo, cost, "µs", &format!("{what}: CPU"), "a server that answers");
    rows.push(Row { must: Some(Goal::AtMost(4.0)), aim: Some(Goal::AtMost(2.0)), ..echo });
    let parse = race.compared(&race.parse, cost, "µs", &format!("{what}: CPU"), "the same with serde_json::Value");
    rows.push(Row { must: Some(Goal::AtMost(1.0)), ..parse });
    let rate = |outcome: &Outcome| outcome.per_second / 1000.0;
    rows.push(row(&format!("{what}: a core"), "", &race.engine(rate), "k/s"));
    let time = |outcome: &Outcome| 1e6 / outcome.per_second;
    let echo = race.compared(&race.echo, time, "µs", &format!("{what}: time of a core"), "a server that answers");
    rows.push(Row { aim: Some(Goal::AtMost(2.0)), ..echo });
    rows
}

/// How long answers take.
fn times(race: &Race, when: &str, must: Option<Goal>) -> [Row; 2] {
    let what = format!("99 of 100 answers, {when}");
    let time = |outcome: &Outcome| outcome.milliseconds.p99;
    let half = race.engine(|outcome| outcome.milliseconds.p50).median();
    let ours =
        Row { must, worst: format!("half of them {}", number(half)), ..row(&what, "", &race.engine(time), "ms") };
    let echo = race.compared(&race.echo, time, "ms", &what, "a server that answers");
    [ours, Row { aim: Some(Goal::AtMost(2.0)), ..echo }]
}

impl Contestant {
    fn ask(&self, stage: &Stage, flags: &[&str]) -> anyhow::Result<Outcome> {
        let process = self.process.to_string();
        let outcome = stage.ask(&self.address, "review.json", &[flags, &["--pid", &process]].concat());
        outcome.and_then(Outcome::all_allowed).with_context(|| format!("asking {}", self.address))
    }
}

impl Race {
    fn engine(&self, value: impl Fn(&Outcome) -> f64) -> Samples {
        Samples::new(self.engine.iter().flatten().map(value))
    }

    /// How much more the engine has than another, with both values and how far the engine is from itself.
    fn compared(
        &self,
        others: &[Outcome],
        value: impl Fn(&Outcome) -> f64 + Copy,
        unit: &str,
        what: &str,
        against: &str,
    ) -> Row {
        let rounds = self.engine.iter().zip(others);
        let ratios = rounds.flat_map(|(ours, other)| ours.each_ref().map(|ours| value(ours) / value(other)));
        let (least, most) = Samples::new(self.engine.iter().map(|[one, other]| value(one) / value(other))).spread();
        let other = Samples::new(others.iter().map(value)).median();
        let ours = self.engine(value).median();
        Row {
            worst: format!("{} to {} {unit}; with itself {least:.2}–{most:.2}", number(ours), number(other)),
            ..row(what, against, &Samples::new(ratios), "×")
        }
    }
}
