//! The builtins that run a body for each element: `any`, `filter`, `reduce` and the others.

use portal_document::{Array, NoObject};

use crate::{
    evaluate::{Evaluation, Frame, Outcome, Stopped},
    machine::Failure,
    operators,
    program::{Kind, Op, Predicate},
    value::{Keys, Value, map::Duplicates, sequence::Sequence},
};

/// A body and the elements that it is run for.
struct Run<'a, 'e, 'm> {
    evaluation: &'e Evaluation<'a, 'm>,
    /// The place of the builtin, which its failures point at.
    at: u32,
    elements: Sequence<'a>,
    /// None where the element itself is the answer: `count(xs)`, `sum(xs)`.
    body: Option<&'a Op>,
}

impl<'a> Evaluation<'a, '_> {
    /// Whether the body has this answer for an element.
    pub(super) fn some(
        &self,
        at: u32,
        collection: &'a Op,
        body: Option<&'a Op>,
        frame: &Frame<'a>,
        answer: bool,
    ) -> Result<bool, Stopped> {
        // What nearly all are: a body over a list of the object or of an element.
        if let (Kind::Path { base, keys, .. }, Some(body)) = (&collection.kind, body)
            && let Some(Value::Node(node)) = self.place(base, frame)
        {
            match node.follow(keys) {
                Ok(None) => return Ok(false),
                Ok(Some(found)) => {
                    if let Some(array) = found.as_array() {
                        return self.some_of(array, at, body, answer);
                    }
                    if found.is_null() {
                        return Ok(false);
                    }
                }
                Err(NoObject) => {}
            }
        }
        self.over(at, collection, body, frame)?.some(answer)
    }

    fn some_of(&self, array: Array<'a>, at: u32, body: &'a Op, answer: bool) -> Result<bool, Stopped> {
        self.machine.step(2).map_err(|failure| self.fail(failure, at))?;
        for (index, item) in (0..).zip(array.iter()) {
            if self.truth(body, &Frame::of(Value::from_node(item), index), at)? == answer {
                return Ok(true);
            }
        }
        Ok(false)
    }

    pub(super) fn predicate(
        &self,
        at: u32,
        predicate: Predicate,
        collection: &'a Op,
        body: Option<&'a Op>,
        extra: Option<&'a Op>,
        frame: &Frame<'a>,
    ) -> Outcome<'a> {
        let run = self.over(at, collection, body, frame)?;
        match predicate {
            Predicate::Any => run.some(true).map(Value::Bool),
            Predicate::None => Ok(Value::Bool(!run.some(true)?)),
            Predicate::All => Ok(Value::Bool(!run.some(false)?)),
            Predicate::One => Ok(Value::Bool(run.count()? == 1)),
            Predicate::Count => Ok(Value::Int(run.count()?)),
            Predicate::Filter => run.filter(),
            Predicate::Map => run.map(),
            Predicate::Sum => run.sum(),
            Predicate::Find => Ok(run.find()?.map_or(Value::Nil, |(_, item)| item)),
            Predicate::FindIndex => Ok(run.find()?.map_or(Value::Nil, |(index, _)| Value::Int(index))),
            Predicate::FindLast => Ok(run.find_last()?.map_or(Value::Nil, |(_, item)| item)),
            Predicate::FindLastIndex => Ok(run.find_last()?.map_or(Value::Nil, |(index, _)| Value::Int(index))),
            Predicate::GroupBy => run.group_by(),
            Predicate::SortBy => {
                let order = extra.map(|extra| self.run(extra, frame)).transpose()?;
                run.sort_by(order)
            }
            Predicate::Reduce => {
                let initial = extra.map(|extra| self.run(extra, frame)).transpose()?;
                run.reduce(initial)
            }
        }
    }

    #[inline]
    fn over(
        &self,
        at: u32,
        collection: &'a Op,
        body: Option<&'a Op>,
        frame: &Frame<'a>,
    ) -> Result<Run<'a, '_, '_>, Stopped> {
        let collection = self.operand(collection, frame)?;
        let elements = self.machine.elements(collection).map_err(|failure| self.fail(failure, at))?;
        Ok(Run { evaluation: self, at, elements, body })
    }
}

impl<'a> Run<'a, '_, '_> {
    fn fail(&self, failure: Failure) -> Stopped {
        self.evaluation.fail(failure, self.at)
    }

    fn answer(&self, item: Value<'a>, index: i64, accumulator: Value<'a>) -> Outcome<'a> {
        match self.body {
            Some(body) => self.evaluation.run(body, &Frame { item, index, accumulator }),
            None => self.evaluation.machine.step(1).map(|()| item).map_err(|failure| self.fail(failure)),
        }
    }

    /// Each element with its index and what the body answers.
    fn answers(&self) -> impl Iterator<Item = Result<(i64, Value<'a>, Value<'a>), Stopped>> + use<'a, '_> {
        (0..).zip(self.elements.iter()).map(|(index, item)| Ok((index, item, self.answer(item, index, Value::Nil)?)))
    }

    fn truth(&self, value: Value<'a>) -> Result<bool, Stopped> {
        self.evaluation.truth_of(value, self.at)
    }

    /// Whether the body is true for an element.
    #[inline]
    fn holds(&self, item: Value<'a>, index: i64) -> Result<bool, Stopped> {
        match self.body {
            Some(body) => self.evaluation.truth(body, &Frame::of(item, index), self.at),
            None => self.truth(self.answer(item, index, Value::Nil)?),
        }
    }

    /// Whether an element has this answer: `any` looks for true, `all` for false.
    fn some(&self, answer: bool) -> Result<bool, Stopped> {
        for (index, item) in (0..).zip(self.elements.iter()) {
            if self.holds(item, index)? == answer {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn count(&self) -> Result<i64, Stopped> {
        let mut count = 0;
        for (index, item) in (0..).zip(self.elements.iter()) {
            count += i64::from(self.holds(item, index)?);
        }
        Ok(count)
    }

    fn filter(&self) -> Outcome<'a> {
        let mut kept = self.evaluation.machine.buffer();
        for (index, item) in (0..).zip(self.elements.iter()) {
            if self.holds(item, index)? {
                kept.push(item).map_err(|failure| self.fail(failure))?;
            }
        }
        self.list(kept.finish())
    }

    fn map(&self) -> Outcome<'a> {
        let mut answers = self.evaluation.machine.buffer();
        for answer in self.answers() {
            answers.push(answer?.2).map_err(|failure| self.fail(failure))?;
        }
        self.list(answers.finish())
    }

    fn list(&self, values: &'a [Value<'a>]) -> Outcome<'a> {
        let counted = self.evaluation.machine.count_elements(values.len() as u64);
        counted.map(|()| Value::List(values)).map_err(|failure| self.fail(failure))
    }

    fn sum(&self) -> Outcome<'a> {
        let mut sum = Value::Int(0);
        for answer in self.answers() {
            sum = operators::add(self.evaluation.machine, answer?.2, sum).map_err(|failure| self.fail(failure))?;
        }
        Ok(sum)
    }

    fn find(&self) -> Result<Option<(i64, Value<'a>)>, Stopped> {
        for (index, item) in (0..).zip(self.elements.iter()) {
            if self.holds(item, index)? {
                return Ok(Some((index, item)));
            }
        }
        Ok(None)
    }

    fn find_last(&self) -> Result<Option<(i64, Value<'a>)>, Stopped> {
        let items = self.elements.list(self.evaluation.machine).map_err(|failure| self.fail(failure))?;
        for (index, item) in items.iter().enumerate().rev() {
            if self.holds(*item, index as i64)? {
                return Ok(Some((index as i64, *item)));
            }
        }
        Ok(None)
    }

    /// A map from what the body answers to the elements that it answered so for, in their order.
    fn group_by(&self) -> Outcome<'a> {
        let machine = self.evaluation.machine;
        let mut keyed = machine.buffer();
        for answer in self.answers() {
            let (_, item, key) = answer?;
            if !key.is_key() {
                return Err(self.fail(Failure::new(format!("groupBy cannot use {} as a key", key.kind()))));
            }
            keyed.push((key, item)).map_err(|failure| self.fail(failure))?;
        }
        let group = || {
            let keyed: &mut [(Value<'a>, Value<'a>)] = keyed.finish();
            let bytes = keyed.iter().map(|(key, _)| if let Value::Text(text) = key { text.len() } else { 0 }).sum();
            machine.step_sort(keyed.len(), bytes)?;
            keyed.sort_by(|(one, _), (other, _)| one.compare_keys(*other));
            let mut groups = machine.buffer();
            for group in keyed.chunk_by(|(one, _), (other, _)| one.compare_keys(*other).is_eq()) {
                let items = machine.fill(group.len(), Value::Nil)?;
                for (place, (_, item)) in items.iter_mut().zip(group) {
                    *place = *item;
                }
                groups.push((group[0].0, Value::List(items)))?;
            }
            machine.sort_map(groups.finish(), Keys::Groups, Duplicates::Last)
        };
        group().map_err(|failure| self.fail(failure))
    }

    fn sort_by(&self, order: Option<Value<'a>>) -> Outcome<'a> {
        let machine = self.evaluation.machine;
        let descending = operators::sort_order(order).map_err(|failure| self.fail(failure))?;
        let mut keyed = machine.buffer();
        for answer in self.answers() {
            let (_, item, key) = answer?;
            keyed.push((key, item)).map_err(|failure| self.fail(failure))?;
        }
        let sorted =
            operators::sort_by_keys(machine, keyed.finish(), descending).map_err(|failure| self.fail(failure))?;
        self.list(sorted)
    }

    fn reduce(&self, initial: Option<Value<'a>>) -> Outcome<'a> {
        let mut elements = (0..).zip(self.elements.iter());
        let mut accumulator = match initial {
            Some(initial) => initial,
            None => match elements.next() {
                Some((_, first)) => first,
                None if !self.evaluation.machine.is_strict() => return Ok(Value::Nil),
                None => return Err(self.fail(Failure::new("reduce of an empty array needs an initial value"))),
            },
        };
        for (index, item) in elements {
            accumulator = self.answer(item, index, accumulator)?;
        }
        Ok(accumulator)
    }
}
