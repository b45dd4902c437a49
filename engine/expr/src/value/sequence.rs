//! One view of everything that has elements in a row.

use portal_document::{Array, Elements};

use super::Value;
use crate::machine::{Failure, Machine};

/// Elements in a row.
#[derive(Clone, Copy)]
pub(crate) enum Sequence<'a> {
    List(&'a [Value<'a>]),
    Array(Array<'a>),
    Range { first: i64, last: i64 },
    Bytes(&'a [u8]),
}

/// Iterates over the elements of a [`Sequence`].
#[derive(Clone)]
pub(crate) enum Items<'a> {
    List(std::slice::Iter<'a, Value<'a>>),
    Array(Elements<'a>),
    Range(std::ops::RangeInclusive<i64>),
    Bytes(std::slice::Iter<'a, u8>),
}

impl<'a> Value<'a> {
    /// The elements, if it is a list, a range or bytes.
    #[inline]
    pub(crate) fn sequence(self) -> Option<Sequence<'a>> {
        match self {
            Value::List(list) => Some(Sequence::List(list)),
            Value::Node(node) => node.as_array().map(Sequence::Array),
            Value::Range { first, last } => Some(Sequence::Range { first, last }),
            Value::Bytes(bytes) => Some(Sequence::Bytes(bytes)),
            _ => None,
        }
    }
}

impl<'a> Sequence<'a> {
    #[inline]
    pub(crate) fn len(self) -> usize {
        match self {
            Sequence::List(list) => list.len(),
            Sequence::Array(array) => array.len(),
            Sequence::Range { first, last } if first <= last => last.wrapping_sub(first) as usize + 1,
            Sequence::Range { .. } => 0,
            Sequence::Bytes(bytes) => bytes.len(),
        }
    }

    /// The element at an index. A document is walked up to it: iterate, or ask for a list, to see many.
    pub(crate) fn get(self, machine: &Machine<'_>, index: usize) -> Result<Option<Value<'a>>, Failure> {
        if index >= self.len() {
            return Ok(None);
        }
        Ok(match self {
            Sequence::List(list) => list.get(index).copied(),
            Sequence::Array(array) => {
                machine.step(index as u64 / 16)?;
                array.iter().nth(index).map(Value::from_node)
            }
            Sequence::Range { first, .. } => Some(Value::Int(first.wrapping_add(index as i64))),
            Sequence::Bytes(bytes) => bytes.get(index).map(|byte| Value::Int(i64::from(*byte))),
        })
    }

    #[inline]
    pub(crate) fn iter(self) -> Items<'a> {
        match self {
            Sequence::List(list) => Items::List(list.iter()),
            Sequence::Array(array) => Items::Array(array.iter()),
            Sequence::Range { first, last } => Items::Range(first..=last),
            Sequence::Bytes(bytes) => Items::Bytes(bytes.iter()),
        }
    }

    /// The elements as a list, which may be read in any order. Costs nothing if they are one.
    pub(crate) fn list(self, machine: &Machine<'a>) -> Result<&'a [Value<'a>], Failure> {
        match self {
            Sequence::List(list) => Ok(list),
            _ => self.part(machine, 0, self.len()),
        }
    }

    /// The elements from an index on, up to another, as a list.
    pub(crate) fn part(self, machine: &Machine<'a>, from: usize, to: usize) -> Result<&'a [Value<'a>], Failure> {
        if let Sequence::List(list) = self {
            return Ok(list.get(from..to).unwrap_or_default());
        }
        machine.step(to as u64 / 16)?;
        let part = machine.fill(to.saturating_sub(from), Value::Nil)?;
        for (place, item) in part.iter_mut().zip(self.iter().skip(from)) {
            *place = item;
        }
        Ok(part)
    }
}

impl<'a> Iterator for Items<'a> {
    type Item = Value<'a>;

    #[inline]
    fn next(&mut self) -> Option<Value<'a>> {
        match self {
            Items::List(items) => items.next().copied(),
            Items::Array(items) => items.next().map(Value::from_node),
            Items::Range(items) => items.next().map(Value::Int),
            Items::Bytes(items) => items.next().map(|byte| Value::Int(i64::from(*byte))),
        }
    }
}
