//! Members, elements, slices and ranges.

use portal_document::Key;

use super::truncate;
use crate::{
    machine::{Failure, Machine},
    value::{Value, map::Found, sequence::Sequence},
};

/// `base[property]`. A missing key is nil. An index out of range, and a member of nil, are errors, and nil in rules.
pub(crate) fn fetch<'a>(machine: &Machine<'a>, base: Value<'a>, property: Value<'a>) -> Result<Value<'a>, Failure> {
    if property.is_nil() && !machine.is_strict() {
        return Ok(Value::Nil);
    }
    if let Some(fields) = base.fields() {
        return match fields.find(machine, property)? {
            Found::Value(value) | Found::Missing(value) => Ok(value),
            Found::Refused => Err(Failure::new(format!("cannot use {} as a key of this map", property.kind()))),
        };
    }
    let sequence = match base {
        Value::Nil if !machine.is_strict() => return Ok(Value::Nil),
        // Text has bytes for elements.
        Value::Text(text) => Sequence::Bytes(text.as_bytes()),
        _ => base.sequence().ok_or_else(|| no_member(base, property))?,
    };
    let index = truncate(property).map_err(|_| no_member(base, property))?;
    match place(index, sequence.len()) {
        Ok(index) => Ok(sequence.get(machine, index)?.unwrap_or(Value::Nil)),
        Err(_) if !machine.is_strict() => Ok(Value::Nil),
        Err(index) => Err(Failure::new(format!("index out of range: {index} (array length is {})", sequence.len()))),
    }
}

/// `base.name`, with a name that was prepared.
#[inline]
pub(crate) fn fetch_key<'a>(machine: &Machine<'a>, base: Value<'a>, key: &Key) -> Result<Value<'a>, Failure> {
    match base.fields() {
        Some(fields) => Ok(fields.get_key(machine, key)?.unwrap_or(fields.missing())),
        None if base.is_nil() && !machine.is_strict() => Ok(Value::Nil),
        None => Err(no_member(base, Value::Text(key.text()))),
    }
}

/// `base[from:to]`. Indexes count from the end when negative, and are cut to what is there.
pub(crate) fn slice<'a>(
    machine: &Machine<'a>,
    base: Value<'a>,
    from: Option<Value<'a>>,
    to: Option<Value<'a>>,
) -> Result<Value<'a>, Failure> {
    let length = match (base, base.sequence()) {
        (_, Some(sequence)) => sequence.len(),
        (Value::Text(text), _) => text.len(),
        (Value::Nil, _) if !machine.is_strict() => return Ok(Value::Nil),
        _ => return Err(Failure::new(format!("cannot slice {}", base.kind()))),
    };
    let bound = |bound: Option<Value<'a>>, default: usize| match bound {
        Some(bound) => Ok(match place(truncate(bound)?, length) {
            Ok(index) => index,
            Err(index) if index < 0 => 0,
            Err(_) => length,
        }),
        None => Ok(default),
    };
    let to = bound(to, length)?;
    let from = bound(from, 0)?.min(to);
    match base {
        Value::Text(_) if from == to => Ok(Value::Text("")),
        Value::Text(text) => match text.get(from..to) {
            Some(part) => Ok(Value::Text(part)),
            None => Err(Failure::new(format!("slice {from}:{to} cuts a character of the text in two"))),
        },
        Value::Bytes(bytes) => Ok(Value::Bytes(bytes.get(from..to).unwrap_or_default())),
        Value::Range { first, .. } => Ok(part_of_range(first, from, to)),
        _ if from == 0 && to == length => Ok(base),
        _ => match base.sequence() {
            Some(sequence) => sequence.part(machine, from, to).map(Value::List),
            None => Ok(Value::EMPTY),
        },
    }
}

/// `first..last`, which counts its elements as made although they are not.
pub(crate) fn range<'a>(machine: &Machine<'a>, first: Value<'a>, last: Value<'a>) -> Result<Value<'a>, Failure> {
    let (first, last) = (truncate(first)?, truncate(last)?);
    // Go's length wraps around like any integer, and a list of no length is empty.
    let length = last.wrapping_sub(first).wrapping_add(1);
    if length <= 0 {
        return Ok(Value::Range { first: 1, last: 0 });
    }
    machine.count_elements(length as u64)?;
    if first > last {
        return Err(Failure::new("range passes the largest int"));
    }
    Ok(Value::Range { first, last })
}

/// The numbers of a range from an index on, up to another.
pub(crate) fn part_of_range<'a>(first: i64, from: usize, to: usize) -> Value<'a> {
    if from >= to {
        return Value::Range { first: 1, last: 0 };
    }
    Value::Range { first: first.wrapping_add(from as i64), last: first.wrapping_add(to as i64 - 1) }
}

/// The place that an index means, or the index from the start if there is none.
fn place(index: i64, length: usize) -> Result<usize, i64> {
    let index = if index < 0 { index.saturating_add(length as i64) } else { index };
    usize::try_from(index).ok().filter(|index| *index < length).ok_or(index)
}

#[cold]
fn no_member(base: Value<'_>, property: Value<'_>) -> Failure {
    match property {
        Value::Text(name) => Failure::new(format!("cannot fetch {name} from {}", base.kind())),
        Value::Int(index) => Failure::new(format!("cannot fetch {index} from {}", base.kind())),
        _ => Failure::new(format!("cannot fetch {} from {}", property.kind(), base.kind())),
    }
}

#[cfg(test)]
mod tests {
    use crate::{
        builtins::sample::{check, check_with},
        limits::Limits,
    };

    #[test]
    fn members_are_missing_elements_are_out_of_range() {
        check(
            r#"
            {a: 1}.a => 1
            {a: 1}.b => nil
            {a: 1}["a"] => 1
            {a: 1}[1] => error: cannot use int as a key of this map
            {"": 5}[nil] => 5
            doc('{"a":{"b":[1]}}').a.b[0] => 1
            doc('{"a":1}').zz => nil
            doc('{"a":1}').a.b => error: cannot fetch b from int
            doc('{"a":null}').a => nil
            [1, 2, 3][0] => 1
            [1, 2, 3][-1] => 3
            [1, 2, 3][3] => error: index out of range: 3 (array length is 3)
            [1, 2, 3][-4] => error: index out of range: -1 (array length is 3)
            [1, 2, 3][1.9] => 2
            [1, 2, 3]["a"] => error: cannot fetch a from array
            [1].a => error: cannot fetch a from array
            (5..9)[2] => 7
            "abc"[1] => 98
            "abc"[-1] => 99
            "abc"[3] => error: index out of range: 3 (array length is 3)
            "abc".a => error: cannot fetch a from string
            b"abc"[0] => 97
            fromPairs([[1, 2]])[1] => 2
            fromPairs([[1, 2]])[[1]] => error: cannot use array as a key of this map
            (nil).a => error: cannot fetch a from nil
            (nil)[0] => error: cannot fetch 0 from nil
            (true).a => error: cannot fetch a from bool
            (1)[0] => error: cannot fetch 0 from int
            "#,
        );
    }

    #[test]
    fn slices_are_cut_to_what_is_there() {
        check(
            r#"
            [1, 2, 3, 4][1:3] => [2, 3]
            [1, 2, 3][:2] => [1, 2]
            [1, 2, 3][-2:] => [2, 3]
            [1, 2, 3][5:9] => []
            [1, 2, 3][2:1] => []
            [1, 2, 3][-9:-1] => [1, 2]
            [1, 2, 3][:] => [1, 2, 3]
            [1, 2, 3]["a":] => error: expected a number, got string
            (1..9)[2:4] => [3, 4]
            (1..9)[9:] => []
            "abcdef"[2:4] => "cd"
            "aé"[1:3] => "é"
            "aé"[0:2] => error: slice 0:2 cuts a character of the text in two
            "aé"[2:2] => ""
            b"abc"[1:] => [98, 99]
            doc('[1,2,3]')[1:] => [2, 3]
            {a: 1}[1:] => error: cannot slice map
            (nil)[1:] => error: cannot slice nil
            (5)[:1] => error: cannot slice int
            "#,
        );
    }

    #[test]
    fn a_range_counts_as_many_elements_as_it_has() {
        check(
            r#"
            1..4 => [1, 2, 3, 4]
            3..1 => []
            -2..1 => [-2, -1, 0, 1]
            1..2.9 => [1, 2]
            (1..999999)[-1] => 999999
            1..1000000 => error: too many elements: an evaluation may make fewer than 1000000
            1..nil => error: expected a number, got nil
            "a".."b" => error: expected a number, got string
            0..9223372036854775807 => []
            -9223372036854775807..9223372036854775807 => []
            "#,
        );
    }

    #[test]
    fn in_rules_nil_has_every_member_and_they_are_nil() {
        check_with(
            r#"
            (nil).a => nil
            (nil)["a"][0] => nil
            doc('{"a":null}').a.b.c => nil
            doc('{"a":1}').a.b => error: cannot fetch b from int
            [1][1] => nil
            [1][nil] => nil
            (nil)[1:] => nil
            "#,
            &Limits::default(),
            false,
        );
    }
}
