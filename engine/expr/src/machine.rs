//! What one evaluation has: an arena, budgets, the time, and whether it is strict. Everything that works on values takes
//! its memory from here and pays here for what it does, so that no input can take more than its share.

mod buffer;
mod failure;

use std::cell::{Cell, RefCell};

use bumpalo::Bump;

use crate::{
    limits::Limits,
    regex::{Patterns, Regex},
    value::{Entry, Keys, Map, Moment, Time, Value, Zone, map::Duplicates, sequence::Sequence},
};

pub(crate) use self::buffer::{Buffer, Text};
pub use self::failure::{Failure, Limit};

/// Bytes that are compared, copied or searched in one step.
const BYTES_PER_STEP: u64 = 64;

/// How deep lists and maps may lie in each other where a function looks into all of them. Each level takes stack.
pub(crate) const MAX_DEPTH: u32 = 256;

/// Steps down into a list or a map.
pub(crate) fn deeper(depth: u32) -> Result<u32, Failure> {
    if depth < MAX_DEPTH { Ok(depth + 1) } else { Err(Failure::limit(Limit::Depth, u64::from(MAX_DEPTH))) }
}

/// The state of one evaluation.
pub struct Machine<'a> {
    arena: &'a Bump,
    limits: Limits,
    now: Moment,
    strict: bool,
    /// What is left. Each is written by the methods below alone.
    fuel: Cell<u64>,
    elements: Cell<u64>,
    bytes: Cell<usize>,
    /// Patterns that were not known to the compiler. Few evaluations have any.
    patterns: RefCell<Option<Box<Patterns>>>,
}

impl<'a> Machine<'a> {
    /// A machine with full budgets. Strict is exactly expr-lang; otherwise nil is false, empty, and has every field.
    #[inline]
    pub fn new(arena: &'a Bump, limits: &Limits, now: Moment, strict: bool) -> Machine<'a> {
        Machine {
            arena,
            limits: *limits,
            now,
            strict,
            fuel: Cell::new(limits.fuel),
            elements: Cell::new(limits.elements),
            bytes: Cell::new(limits.bytes),
            patterns: RefCell::default(),
        }
    }

    /// Whether nil is an error wherever it is one in Go.
    #[inline]
    pub(crate) fn is_strict(&self) -> bool {
        self.strict
    }

    /// When the evaluation takes place.
    pub(crate) fn now(&self) -> Moment {
        self.now
    }

    /// Steps that were taken.
    pub fn steps(&self) -> u64 {
        self.limits.fuel - self.fuel.get()
    }

    /// Pays for work.
    #[inline]
    pub fn step(&self, steps: u64) -> Result<(), Failure> {
        match self.fuel.get().checked_sub(steps) {
            Some(left) => {
                self.fuel.set(left);
                Ok(())
            }
            None => {
                self.fuel.set(0);
                Err(Failure::limit(Limit::Fuel, self.limits.fuel))
            }
        }
    }

    /// Pays for reading or writing bytes. Few bytes are part of the step that led here.
    #[inline]
    pub(crate) fn step_bytes(&self, bytes: usize) -> Result<(), Failure> {
        let steps = bytes as u64 / BYTES_PER_STEP;
        if steps == 0 { Ok(()) } else { self.step(steps) }
    }

    /// Pays for putting values in order, whose texts have so many bytes in all.
    pub(crate) fn step_sort(&self, count: usize, bytes: usize) -> Result<(), Failure> {
        let rounds = u64::from(count.checked_ilog2().unwrap_or_default()) + 1;
        self.step((count as u64 / 2 + bytes as u64 / BYTES_PER_STEP).saturating_mul(rounds))
    }

    /// Counts elements that are made. As in Go, the element that uses up the budget is already an error.
    pub(crate) fn count_elements(&self, count: u64) -> Result<(), Failure> {
        match self.elements.get().checked_sub(count) {
            Some(left) if left > 0 => {
                self.elements.set(left);
                Ok(())
            }
            _ => {
                self.elements.set(0);
                Err(Failure::limit(Limit::Elements, self.limits.elements))
            }
        }
    }

    fn count_bytes(&self, bytes: usize) -> Result<(), Failure> {
        match self.bytes.get().checked_sub(bytes) {
            Some(left) => {
                self.bytes.set(left);
                self.step_bytes(bytes)
            }
            None => Err(self.out_of_memory()),
        }
    }

    fn out_of_memory(&self) -> Failure {
        Failure::limit(Limit::Bytes, self.limits.bytes as u64)
    }

    /// Room for values, each the same to begin with.
    pub(crate) fn fill<T: Copy>(&self, count: usize, value: T) -> Result<&'a mut [T], Failure> {
        self.count_bytes(count.saturating_mul(size_of::<T>()))?;
        self.arena.try_alloc_slice_fill_copy(count, value).map_err(|_| self.out_of_memory())
    }

    /// A value that lives as long as the evaluation.
    pub(crate) fn keep<T: Copy>(&self, value: T) -> Result<&'a T, Failure> {
        self.count_bytes(size_of::<T>())?;
        self.arena.try_alloc(value).map(|value| &*value).map_err(|_| self.out_of_memory())
    }

    /// A copy of text.
    pub fn text(&self, text: &str) -> Result<&'a str, Failure> {
        self.count_bytes(text.len())?;
        self.arena.try_alloc_str(text).map(|text| &*text).map_err(|_| self.out_of_memory())
    }

    /// A moment, in UTC.
    pub fn time(&self, moment: Moment) -> Result<Value<'a>, Failure> {
        self.keep(Time { moment, zone: Zone::Utc }).map(Value::Time)
    }

    /// A list of these values.
    pub fn list(&self, values: &[Value<'a>]) -> Result<Value<'a>, Failure> {
        self.count_bytes(size_of_val(values))?;
        let list = self.arena.try_alloc_slice_copy(values).map_err(|_| self.out_of_memory())?;
        Ok(Value::List(list))
    }

    /// A map of these entries. Of entries with the same key the first one stays.
    pub fn map(&self, entries: &[Entry<'a>]) -> Result<Value<'a>, Failure> {
        self.count_bytes(size_of_val(entries))?;
        let entries = self.arena.try_alloc_slice_copy(entries).map_err(|_| self.out_of_memory())?;
        self.sort_map(entries, Keys::Text, Duplicates::First)
    }

    /// A map of entries that are in the arena already.
    pub(crate) fn sort_map(
        &self,
        entries: &'a mut [Entry<'a>],
        keys: Keys,
        duplicates: Duplicates,
    ) -> Result<Value<'a>, Failure> {
        let bytes = entries.iter().map(|(key, _)| if let Value::Text(text) = key { text.len() } else { 0 }).sum();
        self.step_sort(entries.len(), bytes)?;
        Ok(Value::Map(Map::new(entries, keys, duplicates)))
    }

    /// A list that grows.
    pub(crate) fn buffer<T: Copy>(&self) -> Buffer<'_, 'a, T> {
        Buffer::new(self)
    }

    /// Text that grows.
    pub(crate) fn writer(&self) -> Text<'_, 'a> {
        Text::new(self)
    }

    /// The elements that a predicate such as `any` runs over. Like Go's, it takes bytes of text and an empty map too; nil
    /// is empty in rules.
    pub(crate) fn elements(&self, value: Value<'a>) -> Result<Sequence<'a>, Failure> {
        if let Some(sequence) = value.sequence() {
            return Ok(sequence);
        }
        match value {
            Value::Nil if !self.strict => Ok(Sequence::List(&[])),
            Value::Text(text) => Ok(Sequence::Bytes(text.as_bytes())),
            _ if value.fields().is_some_and(|fields| fields.len() == 0) => Ok(Sequence::List(&[])),
            _ => Err(Failure::expected("an array", value)),
        }
    }

    /// What a boolean position takes the value for. Nil is false in rules.
    #[inline]
    pub(crate) fn truth(&self, value: Value<'a>) -> Result<bool, Failure> {
        match value {
            Value::Bool(value) => Ok(value),
            Value::Nil if !self.strict => Ok(false),
            _ if self.strict => Err(Failure::expected("a bool", value)),
            _ => Err(Failure::not_bool(value)),
        }
    }

    /// Does something with a pattern that is compiled now, or was before.
    pub(crate) fn with_pattern<R>(&self, pattern: &str, then: impl FnOnce(&Regex) -> R) -> Result<R, Failure> {
        self.step_bytes(pattern.len())?;
        // Nothing that runs inside can come back here: a match runs no expression.
        match self.patterns.try_borrow_mut() {
            Ok(mut patterns) => patterns.get_or_insert_default().get(self, pattern).map(then),
            Err(_) => Regex::new(pattern).map(|regex| then(&regex)).map_err(Failure::new),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(limits: Limits, run: impl FnOnce(&Machine<'_>) -> Result<(), Failure>, expected: Result<(), &str>) {
        let arena = Bump::new();
        let machine = Machine::new(&arena, &limits, Moment::default(), true);
        assert_eq!(run(&machine).map_err(|failure| failure.to_string()), expected.map_err(str::to_owned));
    }

    #[test]
    fn over_a_limit_is_a_failure_that_names_it() {
        let limits = Limits { fuel: 10, elements: 10, bytes: 1000 };
        check(limits, |machine| machine.step(10), Ok(()));
        check(limits, |machine| machine.step(11), Err("out of fuel: an evaluation may take 10 steps"));
        check(limits, |machine| machine.count_elements(9), Ok(()));
        check(
            limits,
            |machine| machine.count_elements(10),
            Err("too many elements: an evaluation may make fewer than 10"),
        );
        check(limits, |machine| machine.fill(500, 0_u8).map(drop), Ok(()));
        check(
            limits,
            |machine| machine.fill(1001, 0_u8).map(drop),
            Err("out of memory: an evaluation may make 1000 bytes of text, lists and maps"),
        );
        check(
            limits,
            |machine| machine.fill(usize::MAX, 0_u64).map(drop),
            Err("out of memory: an evaluation may make 1000 bytes of text, lists and maps"),
        );
        check(limits, |machine| machine.step(u64::MAX), Err("out of fuel: an evaluation may take 10 steps"));
    }

    #[track_caller]
    fn check_nil(strict: bool, truth: Result<bool, &str>, elements: Result<usize, &str>) {
        let arena = Bump::new();
        let machine = Machine::new(&arena, &Limits::default(), Moment::default(), strict);
        let text = |failure: Failure| failure.to_string();
        assert_eq!(machine.truth(Value::Nil).map_err(text), truth.map_err(str::to_owned));
        let found = machine.elements(Value::Nil).map(Sequence::len);
        assert_eq!(found.map_err(text), elements.map_err(str::to_owned));
    }

    #[test]
    fn in_rules_nil_is_false_and_empty() {
        check_nil(false, Ok(false), Ok(0));
        check_nil(true, Err("expected a bool, got nil"), Err("expected an array, got nil"));
    }

    #[test]
    fn what_is_no_bool_is_told_with_how_to_ask_for_it() {
        let arena = Bump::new();
        for (strict, expected) in [
            (false, "expected a bool, got string: ask whether it is there by `!= nil` or `== nil`"),
            (true, "expected a bool, got string"),
        ] {
            let machine = Machine::new(&arena, &Limits::default(), Moment::default(), strict);
            let told = machine.truth(Value::Text("a")).map_err(|failure| failure.to_string());
            assert_eq!(told, Err(expected.to_owned()));
        }
    }

    #[test]
    fn a_predicate_takes_bytes_of_text_and_an_empty_map_as_in_go() {
        let arena = Bump::new();
        let machine = Machine::new(&arena, &Limits::default(), Moment::default(), true);
        let length = |value| machine.elements(value).map(Sequence::len).ok();
        assert_eq!(length(Value::Text("\u{e9}")), Some(2));
        assert_eq!(length(Value::EMPTY_MAP), Some(0));
        assert_eq!(length(Value::Int(1)), None);
    }
}
