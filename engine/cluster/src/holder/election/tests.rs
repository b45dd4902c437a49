//! One process at a time: what it does next, told by what it sees.

use std::time::Duration;

use expect_test::{Expect, expect};
use jiff::Timestamp;

use super::{Answer, Election, Step};
use crate::holder::clock::BootTime;
use crate::holder::record::Record;
use crate::holder::timing::Timing;

/// A process called `me`, the answers that it gets, and the story that comes of it.
struct Story {
    election: Election,
    /// Seconds since the start.
    now: f64,
    wall: Timestamp,
    told: String,
}

fn record(holder: &str, duration_seconds: i32, renewed: i64) -> Record {
    let time = Timestamp::from_second(renewed).ok();
    let duration_seconds = Some(duration_seconds).filter(|seconds| *seconds > 0);
    Record { holder: holder.into(), duration_seconds, acquired: time, renewed: time, transitions: 7 }
}

fn found(holder: &str, duration_seconds: i32, renewed: i64) -> Answer {
    Answer::Found("uid".into(), record(holder, duration_seconds, renewed))
}

fn written() -> Answer {
    Answer::Written("uid".into())
}

impl Story {
    fn new() -> Self {
        let now = BootTime(Duration::ZERO);
        let election = Election::new("me".into(), Timing::default(), 1, now);
        Self { election, now: 0.0, wall: Timestamp::UNIX_EPOCH, told: String::new() }
    }

    /// A process whose term 8 began at 0.
    fn holding() -> Self {
        let mut story = Self::new();
        story.answer(found("", 1, 1)).answer(written());
        assert!(story.told.ends_with("0.0 put me, term 8, holds until 10\n"), "{}", story.told);
        story.told.clear();
        story
    }

    fn clock(&self) -> BootTime {
        BootTime(Duration::from_secs_f64(self.now))
    }

    /// Waits until there is a request, and answers it after this many seconds.
    fn answer_after(&mut self, seconds: f64, answer: Answer) -> &mut Self {
        self.answer_with(seconds, |_| answer)
    }

    fn answer(&mut self, answer: Answer) -> &mut Self {
        self.answer_after(0.0, answer)
    }

    /// The same, with an answer that is made of the request.
    fn answer_with(&mut self, seconds: f64, answer: impl FnOnce(&Step) -> Answer) -> &mut Self {
        let step = loop {
            match self.election.next(self.clock(), self.wall) {
                Step::Wait(until) => self.now = until.0.as_secs_f64(),
                step => break step,
            }
        };
        let told = match &step {
            Step::Get => "get".to_owned(),
            Step::Create(record) => format!("create {}, term {}", record.holder, record.transitions),
            Step::Put(record) if record.is_released() => "put a release".to_owned(),
            Step::Put(record) => format!("put {}, term {}", record.holder, record.transitions),
            Step::End => "end".to_owned(),
            Step::Wait(_) => unreachable!("it was waited for"),
        };
        self.told += &format!("{:.1} {told}", self.now);
        self.now += seconds;
        self.election.answered(self.clock(), answer(&step));
        match self.election.held() {
            Some(held) => self.told += &format!(", holds until {}\n", held.until.0.as_secs_f64()),
            None => self.told += "\n",
        }
        self
    }

    fn stop(&mut self) -> &mut Self {
        self.election.stop(self.clock());
        self
    }

    #[track_caller]
    fn check(&self, expected: Expect) {
        expected.assert_eq(&self.told);
    }
}

/// The Lease as a request wanted it to be.
fn as_sent(step: &Step) -> Answer {
    match step {
        Step::Put(record) | Step::Create(record) => Answer::Found("uid".into(), record.clone()),
        other => panic!("{other:?} writes nothing"),
    }
}

#[test]
fn a_released_lease_is_taken_at_once_and_renewed() {
    Story::new().answer(found("", 1, 1)).answer(written()).answer_after(0.5, written()).answer(written()).check(
        expect![[r#"
            0.0 get
            0.0 put me, term 8, holds until 10
            2.0 put me, term 8, holds until 12
            4.0 put me, term 8, holds until 14
        "#]],
    );
}

#[test]
fn a_lease_that_somebody_emptied_is_waited_out() {
    let mut story = Story::new();
    for _ in 0..9 {
        story.answer(found("", 15, 1));
    }
    story.check(expect![[r#"
        0.0 get
        2.3 get
        4.5 get
        6.6 get
        8.9 get
        10.9 get
        13.2 get
        15.0 get
        15.0 put me, term 8
    "#]]);
}

#[test]
fn a_holder_is_waited_out_from_the_last_change_that_was_seen() {
    let mut story = Story::new();
    // The times in the record are of no interest, and the answer counts from when it was there.
    for renewed in [5000, 10, 10, 20] {
        story.answer(found("other", 15, renewed));
    }
    story.answer_after(3.0, found("other", 15, 30));
    for _ in 0..8 {
        story.answer(found("other", 15, 30));
    }
    story.check(expect![[r#"
        0.0 get
        2.3 get
        4.5 get
        6.6 get
        8.9 get
        11.9 get
        14.2 get
        16.5 get
        18.8 get
        21.1 get
        23.1 get
        25.2 get
        26.9 get
    "#]]);
}

#[test]
fn a_record_is_waited_out_for_as_long_as_it_asks() {
    let mut story = Story::new();
    story.answer(found("other", 60, 1));
    story.now = 59.0;
    story.answer(found("other", 60, 1)).answer(found("other", 60, 1)).answer(written());
    story.check(expect![[r#"
        0.0 get
        59.0 get
        60.0 get
        60.0 put me, term 8, holds until 70
    "#]]);
}

#[test]
fn a_first_look_that_finds_no_lease_is_followed_by_more() {
    let mut story = Story::new();
    for _ in 0..3 {
        story.answer(Answer::Missing);
    }
    story.answer(written()).answer(written()).check(expect![[r#"
        0.0 get
        2.3 get
        4.0 get
        4.0 create me, term 0, holds until 14
        6.0 put me, term 0, holds until 16
    "#]]);
}

#[test]
fn a_lease_that_vanished_is_waited_out_from_then_on_and_its_terms_go_on() {
    let mut story = Story::new();
    story.answer(found("other", 15, 1));
    story.now = 14.0;
    for _ in 0..8 {
        story.answer(Answer::Missing);
    }
    story.answer(written()).check(expect![[r#"
        0.0 get
        14.0 get
        16.2 get
        18.3 get
        20.6 get
        22.6 get
        24.9 get
        27.2 get
        29.0 get
        29.0 create me, term 8, holds until 39
    "#]]);
}

#[test]
fn a_missing_lease_that_was_not_looked_at_for_long_is_waited_out_anew() {
    let mut story = Story::new();
    story.answer(found("other", 15, 1)).answer(Answer::Missing);
    // In between somebody may have made one, held it, and lost it.
    story.now = 17.0;
    for _ in 0..9 {
        story.answer(Answer::Missing);
    }
    story.check(expect![[r#"
        0.0 get
        2.3 get
        17.0 get
        19.1 get
        21.4 get
        23.4 get
        25.7 get
        28.0 get
        30.4 get
        32.0 get
        32.0 create me, term 8
    "#]]);
}

#[test]
fn a_holder_writes_a_deleted_lease_again_at_once_in_the_same_term() {
    Story::holding().answer(Answer::Conflict).answer(Answer::Missing).answer(written()).check(expect![[r#"
        2.0 put me, term 8, holds until 10
        2.0 get, holds until 10
        2.0 create me, term 8, holds until 12
    "#]]);
}

#[test]
fn a_holder_that_sees_another_one_stops_at_once() {
    let mut story = Story::holding();
    story.answer(Answer::Conflict).answer(found("other", 15, 2)).answer(found("other", 15, 2));
    story.check(expect![[r#"
        2.0 put me, term 8, holds until 10
        2.0 get
        4.3 get
    "#]]);
}

#[test]
fn a_holder_whose_record_was_edited_carries_on() {
    Story::holding().answer(Answer::Conflict).answer(found("me", 3, 99)).answer(written()).check(expect![[r#"
        2.0 put me, term 8, holds until 10
        2.0 get, holds until 10
        2.0 put me, term 8, holds until 12
    "#]]);
}

#[test]
fn a_holder_whose_writes_always_meet_others_does_not_ask_without_a_pause() {
    let mut story = Story::holding();
    for _ in 0..3 {
        story.answer(Answer::Conflict).answer(found("me", 15, 99));
    }
    story.check(expect![[r#"
        2.0 put me, term 8, holds until 10
        2.0 get, holds until 10
        2.0 put me, term 8, holds until 10
        4.3 get, holds until 10
        4.3 put me, term 8, holds until 10
        4.3 get, holds until 10
    "#]]);
}

#[test]
fn a_renewal_without_an_answer_does_not_count_but_its_record_is_known() {
    let mut story = Story::holding();
    let mut sent = None;
    story.answer_with(3.3, |step| {
        sent = Some(as_sent(step));
        Answer::Lost
    });
    story.answer(sent.unwrap()).answer_after(0.2, written()).check(expect![[r#"
        2.0 put me, term 8, holds until 10
        5.3 get, holds until 10
        5.3 put me, term 8, holds until 15.3
    "#]]);
}

#[test]
fn a_holder_without_answers_stops_and_takes_its_own_record_back_in_a_new_term() {
    let mut story = Story::holding();
    let mut sent = None;
    story.answer_with(3.3, |step| {
        sent = Some(as_sent(step));
        Answer::Lost
    });
    for _ in 0..3 {
        story.answer_after(3.3, Answer::Lost);
    }
    story.answer(sent.unwrap()).answer(written()).check(expect![[r#"
        2.0 put me, term 8, holds until 10
        5.3 get, holds until 10
        8.6 get, holds until 10
        11.9 get
        15.2 get
        15.2 put me, term 9, holds until 25.2
    "#]]);
}

#[test]
fn a_lease_that_was_made_without_an_answer_is_waited_out() {
    let mut story = Story::new();
    for _ in 0..3 {
        story.answer(Answer::Missing);
    }
    let mut sent = None;
    story.answer_with(3.3, |step| {
        sent = Some(as_sent(step));
        Answer::Lost
    });
    for _ in 0..9 {
        story.answer(sent.clone().unwrap());
    }
    story.check(expect![[r#"
        0.0 get
        2.3 get
        4.0 get
        4.0 create me, term 0
        7.3 get
        9.6 get
        11.6 get
        13.9 get
        16.2 get
        18.6 get
        20.8 get
        22.3 get
        22.3 put me, term 1
    "#]]);
}

#[test]
fn a_record_that_names_us_by_somebody_elses_hand_is_waited_out() {
    let mut story = Story::new();
    for _ in 0..9 {
        story.answer(found("me", 15, 1));
    }
    story.check(expect![[r#"
        0.0 get
        2.3 get
        4.5 get
        6.6 get
        8.9 get
        10.9 get
        13.2 get
        15.0 get
        15.0 put me, term 8
    "#]]);
}

#[test]
fn a_wall_clock_that_stands_does_not_make_two_renewals_look_like_one() {
    let mut story = Story::holding();
    let mut renewed = Vec::new();
    for _ in 0..3 {
        story.answer_with(0.0, |step| {
            let Step::Put(record) = step else { panic!("{step:?} is no renewal") };
            renewed.push(record.renewed.unwrap().to_string());
            written()
        });
    }
    assert_eq!(renewed, ["1970-01-01T00:00:00.000001Z", "1970-01-01T00:00:00.000002Z", "1970-01-01T00:00:00.000003Z"]);
}

#[test]
fn who_stops_lets_go_of_what_it_holds_and_of_nothing_else() {
    Story::holding().stop().answer(written()).answer(Answer::Lost).check(expect![[r#"
        0.0 put a release
        0.0 end
    "#]]);
    let mut story = Story::holding();
    story.stop().answer(Answer::Conflict).answer(found("me", 15, 0)).answer(written()).answer(Answer::Lost);
    story.check(expect![[r#"
        0.0 put a release
        0.0 get
        0.0 put a release
        0.0 end
    "#]]);
    Story::holding().stop().answer(Answer::Conflict).answer(found("other", 15, 9)).answer(Answer::Lost).check(expect![
        [r#"
        0.0 put a release
        0.0 get
        0.0 end
    "#]
    ]);
    let mut story = Story::new();
    story.answer(found("me", 15, 1)).stop().answer(Answer::Lost);
    story.check(expect![[r#"
        0.0 get
        0.0 end
    "#]]);
}

#[test]
fn who_stops_does_not_let_go_a_second_time_of_what_others_hold_since_the_first() {
    let mut story = Story::holding();
    // The answer to the release is lost, another process begins a term, and somebody writes our name into its record.
    story.stop().answer(Answer::Lost).answer(found("me", 15, 9)).answer(Answer::Lost).check(expect![[r#"
        0.0 put a release
        2.3 get
        2.3 end
    "#]]);
}
