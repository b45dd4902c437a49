//! Functions of lists.

use super::list_of;
use crate::{
    machine::{Buffer, Failure, Machine, deeper},
    operators::{equal, fetch, part_of_range, sort_by_keys, sort_order},
    value::{Value, sequence::Sequence},
};

type Arguments<'v, 'a> = &'v [Value<'a>];
type Answer<'a> = Result<Value<'a>, Failure>;

pub(super) fn len<'a>(machine: &Machine<'a>, arguments: Arguments<'_, 'a>) -> Answer<'a> {
    let [value] = arguments else { return Err(Failure::arguments()) };
    let length = match (*value, value.sequence(), value.fields()) {
        (_, Some(sequence), _) => sequence.len(),
        (_, _, Some(fields)) => fields.len(),
        (Value::Text(text), ..) => {
            machine.step_bytes(text.len())?;
            text.chars().count()
        }
        _ => return Err(Failure::expected("an array, a map or a string", *value)),
    };
    Ok(Value::Int(length as i64))
}

pub(super) fn first<'a>(machine: &Machine<'a>, arguments: Arguments<'_, 'a>) -> Answer<'a> {
    end(machine, arguments, 0)
}

pub(super) fn last<'a>(machine: &Machine<'a>, arguments: Arguments<'_, 'a>) -> Answer<'a> {
    end(machine, arguments, -1)
}

/// The element at an index, or nil if there is none for whatever reason.
fn end<'a>(machine: &Machine<'a>, arguments: Arguments<'_, 'a>, index: i64) -> Answer<'a> {
    let [value] = arguments else { return Err(Failure::arguments()) };
    match fetch(machine, *value, Value::Int(index)) {
        Err(failure) if failure.exceeded().is_none() => Ok(Value::Nil),
        found => found,
    }
}

pub(super) fn take<'a>(machine: &Machine<'a>, arguments: Arguments<'_, 'a>) -> Answer<'a> {
    let [value, count] = arguments else { return Err(Failure::arguments()) };
    let items = list_of(*value)?;
    let (Value::Int(count) | Value::Duration(count)) = *count else { return Err(Failure::expected("an int", *count)) };
    if count < 0 {
        return Err(Failure::new(format!("cannot take {count} elements")));
    }
    let count = usize::try_from(count).unwrap_or(usize::MAX).min(items.len());
    match items {
        _ if count == items.len() => Ok(*value),
        Sequence::Range { first, .. } => Ok(part_of_range(first, 0, count)),
        Sequence::Bytes(bytes) => Ok(Value::Bytes(bytes.get(..count).unwrap_or_default())),
        _ => items.part(machine, 0, count).map(Value::List),
    }
}

pub(super) fn reverse<'a>(machine: &Machine<'a>, arguments: Arguments<'_, 'a>) -> Answer<'a> {
    let [value] = arguments else { return Err(Failure::arguments()) };
    let items = list_of(*value)?;
    machine.count_elements(items.len() as u64)?;
    let reversed = machine.fill(items.len(), Value::Nil)?;
    for (place, item) in reversed.iter_mut().rev().zip(items.iter()) {
        *place = item;
    }
    Ok(Value::List(reversed))
}

pub(super) fn concat<'a>(machine: &Machine<'a>, arguments: Arguments<'_, 'a>) -> Answer<'a> {
    let mut joined = machine.buffer();
    for argument in arguments {
        let items = list_of(*argument)?;
        joined.reserve(items.len())?;
        for item in items.iter() {
            joined.push(item)?;
        }
    }
    machine.count_elements(joined.len() as u64)?;
    Ok(Value::List(joined.finish()))
}

pub(super) fn flatten<'a>(machine: &Machine<'a>, arguments: Arguments<'_, 'a>) -> Answer<'a> {
    let [value] = arguments else { return Err(Failure::arguments()) };
    let mut flat = machine.buffer();
    unfold(machine, list_of(*value)?, &mut flat, 0)?;
    machine.count_elements(flat.len() as u64)?;
    Ok(Value::List(flat.finish()))
}

fn unfold<'a>(
    machine: &Machine<'a>,
    items: Sequence<'a>,
    flat: &mut Buffer<'_, 'a, Value<'a>>,
    depth: u32,
) -> Result<(), Failure> {
    let depth = deeper(depth)?;
    for item in items.iter() {
        machine.step(1)?;
        match item.sequence() {
            Some(items) => unfold(machine, items, flat, depth)?,
            None => flat.push(item)?,
        }
    }
    Ok(())
}

pub(super) fn uniq<'a>(machine: &Machine<'a>, arguments: Arguments<'_, 'a>) -> Answer<'a> {
    let [value] = arguments else { return Err(Failure::arguments()) };
    let mut unique = machine.buffer();
    'items: for item in list_of(*value)?.iter() {
        for known in unique.items() {
            machine.step(1)?;
            if equal(machine, item, *known)? {
                continue 'items;
            }
        }
        unique.push(item)?;
    }
    Ok(Value::List(unique.finish()))
}

pub(super) fn sort<'a>(machine: &Machine<'a>, arguments: Arguments<'_, 'a>) -> Answer<'a> {
    let (value, descending) = match arguments {
        [value] => (*value, false),
        [value, order] => (*value, sort_order(Some(*order))?),
        _ => return Err(Failure::arguments()),
    };
    let items = match value.sequence() {
        // What is no list is an empty one to Go.
        None | Some(Sequence::Bytes(_)) => return Ok(Value::EMPTY),
        Some(items) => items,
    };
    machine.count_elements(items.len() as u64)?;
    let keyed = machine.fill(items.len(), (Value::Nil, Value::Nil))?;
    for (place, item) in keyed.iter_mut().zip(items.iter()) {
        *place = (item, item);
    }
    sort_by_keys(machine, keyed, descending).map(Value::List)
}

#[cfg(test)]
mod tests {
    use crate::builtins::sample::check;

    #[test]
    fn length_counts_elements_entries_and_characters() {
        check(
            r#"
            len([1, 2, 3]) => 3
            len([]) => 0
            len(1..1000) => 1000
            len({a: 1, b: 2}) => 2
            len("é!") => 2
            len(b"\xc3\xa9") => 2
            len(doc('{"a":1,"b":2}')) => 2
            len(doc('[1,2]')) => 2
            len(fromPairs([])) => 0
            len(nil) => error: expected an array, a map or a string, got nil
            len(1) => error: expected an array, a map or a string, got int
            "#,
        );
    }

    #[test]
    fn ends_of_lists_are_nil_where_there_are_none() {
        check(
            r#"
            first([1, 2]) => 1
            first([]) => nil
            first(nil) => nil
            first(3..5) => 3
            first("abc") => 97
            first({a: 1}) => nil
            last([1, 2]) => 2
            last(doc('[1,[2]]')) => [2]
            last([]) => nil
            last(5) => nil
            take([1, 2, 3], 2) => [1, 2]
            take([1, 2], 9) => [1, 2]
            take([1, 2], 0) => []
            take(1..5, 2) => [1, 2]
            take(b"abc", 2) => [97, 98]
            take(doc('["a","b","c"]'), 2) => ["a", "b"]
            take([1], -1) => error: cannot take -1 elements
            take(nil, 1) => error: expected an array, got nil
            take([1], "1") => error: expected an int, got string
            "#,
        );
    }

    #[test]
    fn lists_are_made_of_lists() {
        check(
            r#"
            reverse([1, 2, 3]) => [3, 2, 1]
            reverse([]) => []
            reverse(1..3) => [3, 2, 1]
            reverse("abc") => error: expected an array, got string
            concat([1], [2, 3]) => [1, 2, 3]
            concat([1], 2..3, b"a") => [1, 2, 3, 97]
            concat([]) => []
            concat([1], 2) => error: expected an array, got int
            flatten([1, [2, [3, []]]]) => [1, 2, 3]
            flatten(doc('[[1],[[2]],3]')) => [1, 2, 3]
            flatten([{a: [1]}]) => [{"a": [1]}]
            flatten(nil) => error: expected an array, got nil
            uniq([1, 2, 1]) => [1, 2]
            uniq([1, 1.0, "1", nil, nil]) => [1, "1", nil]
            uniq([[1], [1.0], {a: 1}, {a: 1.0}]) => [[1], {"a": 1}, {"a": 1.0}]
            uniq(doc('["a","b","a"]')) => ["a", "b"]
            uniq("aa") => error: expected an array, got string
            "#,
        );
    }

    #[test]
    fn lists_are_sorted_when_their_elements_have_one_order() {
        check(
            r#"
            sort([3, 1, 2]) => [1, 2, 3]
            sort([3, 1.5, 2]) => [1.5, 2, 3]
            sort(["b", "a", "C"]) => ["C", "a", "b"]
            sort([1, 2, 3], "desc") => [3, 2, 1]
            sort([2, 1], "asc") => [1, 2]
            sort([2, 1], "up") => error: unknown order "up", use "asc" or "desc"
            sort([2, 1], 1) => error: expected a string for the order, got int
            sort([1, "a"]) => error: cannot put int and string in order
            sort([nil, 1]) => error: nil has no order
            sort([nil]) => [nil]
            sort([true, false]) => error: bool has no order
            sort([]) => []
            sort(nil) => []
            sort(5) => []
            sort(3..5, "desc") => [5, 4, 3]
            sort(doc('[3,1,2]')) => [1, 2, 3]
            sort([duration("2h"), duration("1h")]) => [3600000000000ns, 7200000000000ns]
            sort([[1], [0]]) => error: array has no order
            "#,
        );
    }
}
