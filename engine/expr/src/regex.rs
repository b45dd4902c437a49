//! Patterns of `matches`, with the syntax and meaning of Go's `regexp`: `\d`, `\w`, `\s` and `\b` know ASCII alone, while
//! `.` and classes know every character. Our own parser makes the tree, because Go and Rust differ in what they accept
//! and in what it means; `regex-automata` does the rest. A search looks at each byte of the text once, with a lazy
//! automaton. A pattern that makes this automaton too large is searched for state by state, and pays for each.

mod class;
mod syntax;

use std::{
    collections::VecDeque,
    fmt,
    panic::{RefUnwindSafe, UnwindSafe},
    sync::Arc,
};

use regex_automata::{
    Input, MatchKind,
    hybrid::dfa::{Cache, DFA},
    nfa::thompson::{self, WhichCaptures, pikevm::PikeVM},
    util::{pool::Pool, prefilter::Prefilter},
};

use crate::machine::{Failure, Machine};

/// How large a compiled pattern may be, in bytes.
const MAX_SIZE: usize = 512 << 10;

/// How large an automaton may become, in bytes.
const MAX_AUTOMATON: usize = 1 << 20;

/// Patterns that one evaluation keeps.
const MAX_PATTERNS: usize = 8;

/// What compiling a pattern costs for each of its bytes.
const STEPS_PER_BYTE: u64 = 64;

/// Bytes that an automaton passes in one step.
const BYTES_PER_STEP: u64 = 16;

/// Bytes for which the automaton may have to grow by a state.
const GROWING_BYTES: u64 = 4096;

/// How many states of the pattern one step pays for when the automaton grows.
const GROWN_STATES_PER_STEP: u64 = 64;

/// How many states one step pays for when a search goes state by state.
const STATES_PER_STEP: u64 = 16;

/// A compiled pattern.
pub(crate) struct Regex {
    automaton: Arc<DFA>,
    /// What the automaton learnt of texts, for each thread that uses it at the same time.
    caches: Pool<Cache, Box<dyn Fn() -> Cache + Send + Sync + UnwindSafe + RefUnwindSafe>>,
}

/// The patterns that an evaluation compiled, the last one it used first.
#[derive(Debug, Default)]
pub(crate) struct Patterns(VecDeque<(Box<str>, Regex)>);

impl Regex {
    /// Compiles a pattern, or says what is wrong with it.
    pub(crate) fn new(pattern: &str) -> Result<Regex, String> {
        let tree = syntax::parse(pattern)?;
        let too_large = || format!("pattern is too large: compiled it may take {MAX_SIZE} bytes");
        let config =
            thompson::Config::new().utf8(true).nfa_size_limit(Some(MAX_SIZE)).which_captures(WhichCaptures::None);
        let states = thompson::Compiler::new().configure(config).build_from_hir(&tree).map_err(|_| too_large())?;
        let config = DFA::config()
            .prefilter(Prefilter::from_hir_prefix(MatchKind::LeftmostFirst, &tree))
            .cache_capacity(MAX_AUTOMATON)
            .skip_cache_capacity_check(true)
            // It gives up when it has been full once and grows by a state for nearly every byte.
            .minimum_cache_clear_count(Some(1))
            .minimum_bytes_per_state(Some(10));
        let automaton = DFA::builder().configure(config).build_from_nfa(states).map_err(|_| too_large())?;
        let automaton = Arc::new(automaton);
        let template = Arc::clone(&automaton);
        let caches: Box<dyn Fn() -> Cache + Send + Sync + UnwindSafe + RefUnwindSafe> =
            Box::new(move || template.create_cache());
        Ok(Regex { automaton, caches: Pool::new(caches) })
    }

    /// Whether the pattern is somewhere in the text.
    pub(crate) fn is_match(&self, machine: &Machine<'_>, text: &[u8]) -> Result<bool, Failure> {
        // The price is the same whether or not the automaton has grown before: a rule must not pass the second time.
        let length = text.len() as u64;
        machine.step(length / BYTES_PER_STEP + length.min(GROWING_BYTES) * self.states() / GROWN_STATES_PER_STEP)?;
        let input = Input::new(text).earliest(true);
        match self.automaton.try_search_fwd(&mut self.caches.get(), &input) {
            Ok(found) => Ok(found.is_some()),
            Err(_) => self.is_match_by_states(machine, input),
        }
    }

    #[cold]
    fn is_match_by_states(&self, machine: &Machine<'_>, input: Input<'_>) -> Result<bool, Failure> {
        machine.step((input.haystack().len() as u64).saturating_mul(self.states()) / STATES_PER_STEP)?;
        match PikeVM::new_from_nfa(self.automaton.get_nfa().clone()) {
            Ok(pattern) => Ok(pattern.is_match(&mut pattern.create_cache(), input)),
            Err(_) => Err(Failure::new("pattern is too large to search for")),
        }
    }

    fn states(&self) -> u64 {
        self.automaton.get_nfa().states().len() as u64
    }
}

impl fmt::Debug for Regex {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Regex").field("states", &self.states()).finish_non_exhaustive()
    }
}

impl Patterns {
    /// The compiled form of a pattern, which takes the place of another when there are too many.
    pub(crate) fn get(&mut self, machine: &Machine<'_>, pattern: &str) -> Result<&Regex, Failure> {
        match self.0.iter().position(|(known, _)| **known == *pattern) {
            Some(0) => {}
            Some(place) => self.0.swap(0, place),
            None => {
                machine.step(pattern.len() as u64 * STEPS_PER_BYTE)?;
                let regex = Regex::new(pattern).map_err(Failure::new)?;
                // It is made before its size is known. The limit bounds what that can cost.
                machine.step(regex.states())?;
                self.0.truncate(MAX_PATTERNS - 1);
                self.0.push_front((pattern.into(), regex));
            }
        }
        self.0.front().map(|(_, regex)| regex).ok_or_else(|| Failure::new("no pattern"))
    }
}

#[cfg(test)]
mod tests {
    use crate::builtins::sample::check;

    #[test]
    fn patterns_know_ascii_classes_and_every_character() {
        check(
            r#"
            "x1" matches "\\d" => true
            "x٣" matches "\\d" => false
            "é" matches "\\w" => false
            "é" matches "\\W" => true
            "\u00a0" matches "\\s" => false
            "a b" matches "a\\sb" => true
            "aéb" matches "a\\b" => true
            "éa" matches "\\Ba" => false
            "aéa" matches "\\B" => false
            "aéb" matches "^a.b$" => true
            "a\nb" matches "a.b" => false
            "a\nb" matches "(?s)a.b" => true
            "a\nb" matches "^b" => false
            "a\nb" matches "(?m)^b$" => true
            "É" matches "(?i)é" => true
            "K" matches "(?i)k" => true
            "ς" matches "(?i)Σ" => true
            "ß" matches "(?i)ẞ" => true
            "α" matches "\\p{Greek}" => true
            "α" matches "\\p{greek}" => true
            "ก" matches "\\p{Thai}" => true
            "a" matches "\\p{cased_letter}" => true
            "a" matches "\\p{Greek}" => false
            "a" matches "\\P{Greek}" => true
            "A" matches "[[:upper:]]" => true
            "é" matches "[[:alpha:]]" => false
            "_" matches "[^[:^word:]]" => true
            "-" matches "[a-]" => true
            "]" matches "[]a]" => true
            "&" matches "[a&&b]" => true
            "[" matches "[a[b]" => true
            "<" matches "\\<" => true
            "a.b" matches "^\\Qa.b\\E$" => true
            "A" matches "^\\x41\\x{41}?\\101?$" => true
            "{" matches "^{$" => true
            "a{,2}" matches "^a{,2}$" => true
            "aaa" matches "^a{2,3}$" => true
            "a" matches "^(?P<n>a)(?<m>b)?$" => true
            "" matches "" => true
            "abc" matches "b*" => true
            "#,
        );
    }

    #[test]
    fn patterns_that_go_refuses_are_refused() {
        check(
            r#"
            "" matches "a**" => error: repetition * follows another repetition in pattern
            "" matches "*" => error: nothing to repeat before * in pattern
            "" matches "a|*" => error: nothing to repeat before * in pattern
            "" matches "(" => error: missing closing ) in pattern
            "" matches ")" => error: unexpected ) in pattern
            "" matches "[" => error: missing closing ] in pattern
            "" matches "[z-a]" => error: range of a class in pattern is from more to less
            "" matches "[[:foo:]]" => error: unknown class [:foo:] in pattern
            "" matches "\\p{Foo}" => error: unknown class \p{Foo} in pattern
            "" matches "\\p{IsGreek}" => error: unknown class \p{IsGreek} in pattern
            "" matches "\\p{is_L}" => error: unknown class \p{is_L} in pattern
            "" matches "\\p{Grek}" => error: unknown class \p{Grek} in pattern
            "" matches "\\p{_}" => error: unknown class \p{_} in pattern
            "" matches "\\1" => error: unknown escape \1 in pattern
            "" matches "\\C" => error: unknown escape \C in pattern
            "" matches "\\Z" => error: unknown escape \Z in pattern
            "" matches "\\" => error: trailing backslash in pattern
            "" matches "(?=a)" => error: unknown group (?… in pattern
            "" matches "(?<!a)" => error: bad name of a group in pattern
            "" matches "(?x)a" => error: unknown group (?… in pattern
            "" matches "(?P<n" => error: bad name of a group in pattern
            "" matches "a{1001}" => error: repeat count {1001} in pattern is over 1000
            "" matches "a{2,1}" => error: repeat count {2,1} in pattern is from more to less
            "" matches "(a{30}){34}" => error: repeat counts in pattern are over 1000 together
            "" matches "\\x{110000}" => error: unknown escape \x in pattern
            "#,
        );
    }
}
