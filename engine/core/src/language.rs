//! The language that rules are written in, and the guard around whatever runs it. expr-lang is the one that ships; the types
//! here are those of any language over documents, so that another can stand beside it.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use portal_expr::{
    Arena, CallSite, Compared, Error, Facts, Host, Limits, Mode, Moment, Observation, Program, Schema, Value, Warning,
};

/// A language for rules.
pub trait ExpressionEngine: Send + Sync {
    /// The name by which an instance chooses it.
    fn name(&self) -> &'static str;

    /// Compiles an expression. Pure: the same source and schema give the same result, and it may be called from any thread.
    fn compile(&self, source: &str, schema: &Schema) -> Result<Box<dyn Expression>, Error>;

    /// Compiles an expression whose value must be true or false, as that of a rule is. Fails if it can never be.
    fn compile_condition(&self, source: &str, schema: &Schema) -> Result<Box<dyn Expression>, Error>;

    /// The same, and expressions behind the variables that it declares, as far as they can be compiled together. The others are compiled
    /// one by one: a language that cannot do it together leaves out all of them.
    fn compile_condition_and(&self, source: &str, behind: &[&str], schema: &Schema) -> Result<Together, Error> {
        Ok((self.compile_condition(source, schema)?, behind.iter().map(|_| None).collect()))
    }
}

/// A condition, and expressions that were compiled together with it.
pub type Together = (Box<dyn Expression>, Vec<Option<Box<dyn Expression>>>);

/// A compiled expression.
pub trait Expression: fmt::Debug + Send + Sync {
    /// Evaluates it within its limits. It does not block, and it may be called by many threads at once. What it makes
    /// lives in the arena.
    fn evaluate<'a>(
        &'a self,
        host: &'a dyn Host,
        arena: &'a Arena,
        limits: &Limits,
        now: Moment,
    ) -> Result<Value<'a>, Error>;

    /// What made it true, for a person. Evaluates again; an engine that cannot tell says nothing.
    fn explain<'a>(
        &'a self,
        host: &'a dyn Host,
        arena: &'a Arena,
        limits: &Limits,
        now: Moment,
    ) -> Vec<Observation<'a>>;

    /// What it reads and calls. Nothing that an evaluation does may be missing.
    fn facts(&self) -> &Facts;

    /// Where it calls the host. The host is told the place in this list.
    fn calls(&self) -> &[CallSite];

    /// What texts with computed fields, and those fields, are compared with, if the schema wants that. Whoever compiled it asks once;
    /// it is not kept. A language that cannot tell says nothing.
    fn take_compared(&mut self) -> Vec<Compared> {
        Vec::new()
    }

    /// What may be a mistake although it compiles.
    fn warnings(&self) -> &[Warning];

    /// The variables that it declares before anything else, as text in one line, so that a message behind it can use them. Empty
    /// for a language without any.
    fn declarations(&self) -> &str;
}

/// Why an evaluation gave no value.
#[derive(Clone, Debug, thiserror::Error)]
pub enum EvaluationError {
    /// The expression met values that it cannot work with, or took more than its share.
    #[error("{0}")]
    Failed(Error),
    /// The expression is a value that is neither true nor false: this one, after what kind of value it is.
    #[error("the rule is {0}, which is neither true nor false")]
    NotBool(String),
    /// Whether the rule's `match` fits could not be found out.
    #[error("{0}")]
    Unanswered(String),
    /// The rule is about an object, and the request has none.
    #[error("`request.{0}` is missing, and the rule needs the object")]
    NoObject(&'static str),
    /// The time for the request was over before it was the rule's turn.
    #[error("the time for the request was over")]
    TooLate,
    /// Something has a bug. The caller counts these; the process goes on.
    #[error("evaluation panicked, which is a bug in Portal: {0}")]
    Panicked(String),
}

/// The engine for expr-lang.
#[derive(Debug)]
pub struct ExprEngine;

/// The place of an expression in a rule that nobody evaluates.
#[derive(Debug, Default)]
pub(crate) struct Outline(Facts);

/// The engines that ship.
pub fn builtin() -> Vec<Box<dyn ExpressionEngine>> {
    vec![Box::new(ExprEngine)]
}

/// Evaluates an expression so that a panic costs this evaluation and nothing else.
pub fn evaluate<'a>(
    expression: &'a dyn Expression,
    host: &'a dyn Host,
    arena: &'a Arena,
    limits: &Limits,
    now: Moment,
) -> Result<Value<'a>, EvaluationError> {
    let outcome = guard(|| expression.evaluate(host, arena, limits, now)).map_err(EvaluationError::Panicked)?;
    outcome.map_err(EvaluationError::Failed)
}

/// Does work of an engine or of a lookup so that a panic costs this work and nothing else. What comes back then is the
/// panic's message.
pub(crate) fn guard<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    // Nothing is looked at after a panic but the message: what lies in the arena is not read, and programs are immutable.
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| {
        let message = panic.downcast_ref::<String>().cloned();
        let message = message.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        message.unwrap_or_else(|| "without a message".to_owned())
    })
}

impl ExpressionEngine for ExprEngine {
    fn name(&self) -> &'static str {
        "expr"
    }

    fn compile(&self, source: &str, schema: &Schema) -> Result<Box<dyn Expression>, Error> {
        Ok(Box::new(portal_expr::compile(source, schema, Mode::Rules)?))
    }

    fn compile_condition(&self, source: &str, schema: &Schema) -> Result<Box<dyn Expression>, Error> {
        Ok(Box::new(portal_expr::compile_condition(source, schema, Mode::Rules)?))
    }

    fn compile_condition_and(&self, source: &str, behind: &[&str], schema: &Schema) -> Result<Together, Error> {
        let (condition, behind) = portal_expr::compile_condition_and(source, behind, schema, Mode::Rules)?;
        let boxed = |program: Program| -> Box<dyn Expression> { Box::new(program) };
        Ok((Box::new(condition), behind.into_iter().map(|program| program.map(boxed)).collect()))
    }
}

impl Expression for Outline {
    fn evaluate<'a>(&'a self, _: &'a dyn Host, _: &'a Arena, _: &Limits, _: Moment) -> Result<Value<'a>, Error> {
        unreachable!("whoever keeps outlines asks no rule anything")
    }

    fn explain<'a>(&'a self, _: &'a dyn Host, _: &'a Arena, _: &Limits, _: Moment) -> Vec<Observation<'a>> {
        Vec::new()
    }

    fn facts(&self) -> &Facts {
        &self.0
    }

    fn calls(&self) -> &[CallSite] {
        &[]
    }

    fn warnings(&self) -> &[Warning] {
        &[]
    }

    fn declarations(&self) -> &str {
        ""
    }
}

impl Expression for Program {
    fn evaluate<'a>(
        &'a self,
        host: &'a dyn Host,
        arena: &'a Arena,
        limits: &Limits,
        now: Moment,
    ) -> Result<Value<'a>, Error> {
        Program::evaluate(self, host, arena, limits, now)
    }

    fn explain<'a>(
        &'a self,
        host: &'a dyn Host,
        arena: &'a Arena,
        limits: &Limits,
        now: Moment,
    ) -> Vec<Observation<'a>> {
        Program::explain(self, host, arena, limits, now)
    }

    fn facts(&self) -> &Facts {
        Program::facts(self)
    }

    fn calls(&self) -> &[CallSite] {
        Program::calls(self)
    }

    fn take_compared(&mut self) -> Vec<Compared> {
        Program::take_compared(self)
    }

    fn warnings(&self) -> &[Warning] {
        Program::warnings(self)
    }

    fn declarations(&self) -> &str {
        Program::declarations(self)
    }
}

#[cfg(test)]
mod tests {
    use portal_expr::{Failure, Machine, Shape, Slot};

    use super::*;

    struct Faulty;

    impl Host for Faulty {
        fn root(&self, _: Slot) -> Value<'_> {
            panic!("no value at hand")
        }

        fn call<'a>(&'a self, _: usize, _: &[Value<'a>], _: &Machine<'a>) -> Result<Value<'a>, Failure> {
            Ok(Value::Nil)
        }
    }

    fn check(source: &str, expected: &str) {
        let mut schema = Schema::new();
        schema.add_root("object", Shape::Any);
        let engines = builtin();
        let expression = engines[0].compile(source, &schema).expect("it compiles");
        let arena = Arena::new();
        let result = evaluate(&*expression, &Faulty, &arena, &Limits::default(), Moment::default());
        let text = result.map_or_else(|error| error.to_string(), |value| format!("{value:?}"));
        assert_eq!(text, expected);
    }

    #[test]
    fn a_panic_costs_one_evaluation() {
        check("object.spec == 1", "evaluation panicked, which is a bug in Portal: no value at hand");
        check("1 + 1 == 2", "Bool(true)");
    }

    #[test]
    fn a_failure_has_its_place() {
        check("int(\"x\" + \"y\") == 1", "1:1: \"xy\" is not an int\n | int(\"x\" + \"y\") == 1\n | ^");
    }
}
