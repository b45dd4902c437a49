//! What the compiler knows of calls: how many arguments, of which types, and what comes back. Accepts and refuses as Go's
//! checker does where that knows no environment.

use crate::types::Type;

/// Why a call can never work.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Refusal {
    /// The argument that is wrong. Without one it is the call.
    pub(crate) argument: Option<usize>,
    /// Follows the name of the function.
    pub(crate) message: String,
}

/// How a call is checked.
pub(super) enum Check {
    /// Parameters, of which the last ones may be left out, and the type of the result.
    Parameters(&'static [Parameter], usize, Type),
    /// A function that checks the call, and says what it returns.
    With(fn(&[Type]) -> Result<Type, Refusal>),
}

/// What an argument may be.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Parameter {
    Any,
    Text,
    Int,
    /// An array of anything but bytes.
    List,
}

impl Refusal {
    pub(super) fn call(message: impl Into<String>) -> Refusal {
        Refusal { argument: None, message: message.into() }
    }

    pub(super) fn argument(argument: usize, message: impl Into<String>) -> Refusal {
        Refusal { argument: Some(argument), message: message.into() }
    }

    fn expected(argument: usize, what: &str, found: Type) -> Refusal {
        Refusal::argument(argument, format!("expects {what}, got {found}"))
    }
}

impl Check {
    pub(super) fn result(&self, name: &str, types: &[Type]) -> Result<Type, Refusal> {
        let checked = match self {
            Check::Parameters(parameters, optional, result) => {
                arguments(parameters, *optional, types).map(|()| *result)
            }
            Check::With(check) => check(types),
        };
        checked.map_err(|refusal| Refusal { message: format!("{name} {}", refusal.message), ..refusal })
    }
}

impl Parameter {
    fn accepts(self, found: Type) -> bool {
        match self {
            Parameter::Any => true,
            _ if found.is_unknown() => true,
            Parameter::Text => found == Type::TEXT,
            Parameter::Int => found == Type::INT,
            Parameter::List => found.is_array() && found != Type::BYTES,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Parameter::Any => "anything",
            Parameter::Text => "a string",
            Parameter::Int => "an int",
            Parameter::List => "an array",
        }
    }
}

fn arguments(parameters: &[Parameter], optional: usize, types: &[Type]) -> Result<(), Refusal> {
    let least = parameters.len() - optional;
    if !(least..=parameters.len()).contains(&types.len()) {
        return Err(count(least, parameters.len(), types.len()));
    }
    for (index, (parameter, found)) in parameters.iter().zip(types).enumerate() {
        if !parameter.accepts(*found) {
            return Err(Refusal::expected(index, parameter.name(), *found));
        }
    }
    Ok(())
}

fn count(least: usize, most: usize, found: usize) -> Refusal {
    let expected = match (least, most) {
        (1, 1) => "1 argument".to_owned(),
        _ if least == most => format!("{least} arguments"),
        _ => format!("{least} or {most} arguments"),
    };
    Refusal::call(format!("takes {expected}, got {found}"))
}

fn one(types: &[Type]) -> Result<Type, Refusal> {
    match types {
        [found] => Ok(*found),
        _ => Err(count(1, 1, types.len())),
    }
}

/// A duration is a number of nanoseconds to Go's checker, whatever happens when it runs.
fn is_numeric(found: Type) -> bool {
    found.is_number() || found == Type::DURATION || found.is_unknown()
}

pub(super) fn len(types: &[Type]) -> Result<Type, Refusal> {
    let found = one(types)?;
    if found.is_unknown() || found.is_array() || found.is_map() || found == Type::TEXT {
        return Ok(Type::INT);
    }
    Err(Refusal::expected(0, "an array, a map or a string", found))
}

pub(super) fn abs(types: &[Type]) -> Result<Type, Refusal> {
    let found = one(types)?;
    if is_numeric(found) { Ok(found) } else { Err(Refusal::expected(0, "a number", found)) }
}

/// `ceil`, `floor` and `round`.
pub(super) fn rounded(types: &[Type]) -> Result<Type, Refusal> {
    abs(types).map(|_| Type::FLOAT)
}

pub(super) fn int(types: &[Type]) -> Result<Type, Refusal> {
    number_or_text(types).map(|()| Type::INT)
}

pub(super) fn float(types: &[Type]) -> Result<Type, Refusal> {
    number_or_text(types).map(|()| Type::FLOAT)
}

fn number_or_text(types: &[Type]) -> Result<(), Refusal> {
    let found = one(types)?;
    if is_numeric(found) || found == Type::TEXT {
        return Ok(());
    }
    Err(Refusal::expected(0, "a number or a string", found))
}

/// `max`, `min`, `mean` and `median`: numbers, and arrays, of which nothing more is known.
pub(super) fn aggregate(types: &[Type]) -> Result<Type, Refusal> {
    let [first, ..] = types else { return Err(Refusal::call("takes at least 1 argument, got 0")) };
    for (index, found) in types.iter().enumerate() {
        if found.is_unknown() || found.is_array() {
            return Ok(Type::ANY);
        }
        if !is_numeric(*found) {
            return Err(Refusal::expected(index, "numbers or arrays", *found));
        }
    }
    Ok(*first)
}

/// `first` and `last`.
pub(super) fn end(types: &[Type]) -> Result<Type, Refusal> {
    let found = seen(list(types)?);
    Ok(if found.is_unknown() { Type::ANY } else { found.element() })
}

/// `reverse`, `uniq` and `flatten`.
pub(super) fn relisted(types: &[Type]) -> Result<Type, Refusal> {
    list(types).map(|_| Type::ARRAY)
}

pub(super) fn sort(types: &[Type]) -> Result<Type, Refusal> {
    arguments(&[Parameter::List, Parameter::Text], 1, types).map(|()| Type::ARRAY)
}

pub(super) fn from_pairs(types: &[Type]) -> Result<Type, Refusal> {
    list(types).map(|_| Type::ANY_KEY_MAP)
}

fn list(types: &[Type]) -> Result<Type, Refusal> {
    let found = one(types)?;
    if found.is_unknown() || found.is_array() { Ok(found) } else { Err(Refusal::expected(0, "an array", found)) }
}

/// What is left of the type of an array: Go forgets what the elements are, unless the array is of a type of its own. What a
/// schema says is kept.
fn seen(found: Type) -> Type {
    let keeps = matches!(found, Type::BYTES | Type::TEXTS) || found.element().as_object().is_some();
    if keeps || found.is_unknown() { found } else { Type::ARRAY }
}

pub(super) fn concat(types: &[Type]) -> Result<Type, Refusal> {
    if types.is_empty() {
        return Err(Refusal::call("takes at least 1 argument, got 0"));
    }
    match types.iter().position(|found| !found.is_unknown() && !found.is_array()) {
        Some(index) => Err(Refusal::expected(index, "arrays", types[index])),
        None => Ok(Type::ARRAY),
    }
}

pub(super) fn take(types: &[Type]) -> Result<Type, Refusal> {
    let [found, count_type] = types else { return Err(count(2, 2, types.len())) };
    if !found.is_unknown() && !found.is_array() {
        return Err(Refusal::expected(0, "an array", *found));
    }
    if !count_type.is_unknown() && !matches!(*count_type, Type::INT | Type::DURATION) {
        return Err(Refusal::expected(1, "an int", *count_type));
    }
    Ok(seen(*found))
}

/// `keys`, `values` and `toPairs`.
pub(super) fn entries(types: &[Type]) -> Result<Type, Refusal> {
    let found = one(types)?;
    if found.is_unknown() || found.is_map() { Ok(Type::ARRAY) } else { Err(Refusal::expected(0, "a map", found)) }
}

pub(super) fn get(types: &[Type]) -> Result<Type, Refusal> {
    let [base, property] = types else { return Err(count(2, 2, types.len())) };
    if base.is_unknown() {
        return Ok(Type::UNKNOWN);
    }
    if base.is_array() {
        if *property != Type::INT && !property.is_unknown() {
            return Err(Refusal::expected(1, "an int", *property));
        }
        return Ok(base.element());
    }
    if base.is_map() {
        if !property.is_assignable(base.key()) && !property.is_unknown() {
            return Err(Refusal::expected(1, "a string", *property));
        }
        return Ok(base.element());
    }
    Err(Refusal::expected(0, "an array or a map", *base))
}

/// The array that a predicate runs over, and what its body returns.
fn predicate(types: &[Type], most: usize) -> Result<(Type, Type), Refusal> {
    let [collection, body, ..] = types else { return Err(count(2, most, types.len())) };
    if types.len() > most {
        return Err(count(2, most, types.len()));
    }
    elements(*collection)?;
    if body.is_nil() {
        return Err(Refusal::argument(1, "needs a predicate that returns something"));
    }
    Ok((*collection, *body))
}

fn elements(collection: Type) -> Result<(), Refusal> {
    if collection.is_unknown() || collection.is_array() {
        return Ok(());
    }
    Err(Refusal::expected(0, "an array", collection))
}

/// The array of a predicate that answers yes or no.
fn question(types: &[Type]) -> Result<Type, Refusal> {
    let (collection, body) = predicate(types, 2)?;
    if body == Type::BOOL || body.is_unknown() {
        return Ok(collection);
    }
    Err(Refusal::argument(1, format!("needs a predicate that returns a bool, got {body}")))
}

/// `all`, `none`, `any` and `one`.
pub(super) fn quantifier(types: &[Type]) -> Result<Type, Refusal> {
    question(types).map(|_| Type::BOOL)
}

pub(super) fn filter(types: &[Type]) -> Result<Type, Refusal> {
    let collection = question(types)?;
    Ok(if collection.is_unknown() { Type::ARRAY } else { collection.element().array() })
}

pub(super) fn find(types: &[Type]) -> Result<Type, Refusal> {
    question(types).map(Type::element)
}

pub(super) fn find_index(types: &[Type]) -> Result<Type, Refusal> {
    question(types).map(|_| Type::INT)
}

pub(super) fn map(types: &[Type]) -> Result<Type, Refusal> {
    predicate(types, 2).map(|(_, body)| body.array())
}

pub(super) fn count_of(types: &[Type]) -> Result<Type, Refusal> {
    match types {
        [collection] => elements(*collection).map(|()| Type::INT),
        _ => question(types).map(|_| Type::INT),
    }
}

pub(super) fn sum(types: &[Type]) -> Result<Type, Refusal> {
    match types {
        [collection] => elements(*collection).map(|()| collection.element()),
        _ => predicate(types, 2).map(|(_, body)| body),
    }
}

pub(super) fn group_by(types: &[Type]) -> Result<Type, Refusal> {
    predicate(types, 2).map(|_| Type::GROUPS)
}

pub(super) fn sort_by(types: &[Type]) -> Result<Type, Refusal> {
    let (collection, _) = predicate(types, 3)?;
    match types.get(2) {
        Some(order) if *order != Type::TEXT && !order.is_unknown() => Err(Refusal::expected(2, "a string", *order)),
        _ => Ok(collection),
    }
}

pub(super) fn reduce(types: &[Type]) -> Result<Type, Refusal> {
    predicate(types, 3).map(|(_, body)| body)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtins::find;

    #[track_caller]
    fn check(name: &str, types: &[Type], expected: Result<Type, (Option<usize>, &str)>) {
        let found = find(name).expect(name).check(types);
        let expected = expected.map_err(|(argument, message)| Refusal { argument, message: message.to_owned() });
        assert_eq!(found, expected);
    }

    #[test]
    fn arguments_are_counted() {
        check("upper", &[], Err((None, "upper takes 1 argument, got 0")));
        check("split", &[Type::TEXT], Err((None, "split takes 2 or 3 arguments, got 1")));
        check("get", &[Type::MAP], Err((None, "get takes 2 arguments, got 1")));
        check("max", &[], Err((None, "max takes at least 1 argument, got 0")));
        check("concat", &[], Err((None, "concat takes at least 1 argument, got 0")));
        check("now", &[Type::UNKNOWN], Err((None, "now takes no argument but a timezone")));
        check("date", &[Type::TEXT; 4], Err((None, "date takes a date, a layout and the name of a timezone")));
    }

    #[test]
    fn arguments_that_can_never_fit_are_refused() {
        check("upper", &[Type::INT], Err((Some(0), "upper expects a string, got int")));
        check("upper", &[Type::NIL], Err((Some(0), "upper expects a string, got nil")));
        check("split", &[Type::TEXT, Type::TEXT, Type::FLOAT], Err((Some(2), "split expects an int, got float")));
        check("join", &[Type::BYTES], Err((Some(0), "join expects an array, got bytes")));
        check("len", &[Type::INT], Err((Some(0), "len expects an array, a map or a string, got int")));
        check("first", &[Type::TEXT], Err((Some(0), "first expects an array, got string")));
        check("keys", &[Type::TEXT.array()], Err((Some(0), "keys expects a map, got array of string")));
        check("get", &[Type::MAP, Type::INT], Err((Some(1), "get expects a string, got int")));
        check("max", &[Type::INT, Type::TEXT], Err((Some(1), "max expects numbers or arrays, got string")));
        check("any", &[Type::MAP, Type::BOOL], Err((Some(0), "any expects an array, got map")));
        check("any", &[Type::ARRAY, Type::INT], Err((Some(1), "any needs a predicate that returns a bool, got int")));
        check("map", &[Type::ARRAY, Type::NIL], Err((Some(1), "map needs a predicate that returns something")));
        check("sortBy", &[Type::ARRAY, Type::INT, Type::INT], Err((Some(2), "sortBy expects a string, got int")));
    }

    #[test]
    fn results_are_known_as_far_as_arguments_are() {
        check("upper", &[Type::UNKNOWN], Ok(Type::TEXT));
        check("string", &[Type::NIL], Ok(Type::TEXT));
        check("split", &[Type::TEXT, Type::TEXT], Ok(Type::TEXTS));
        check("first", &[Type::INT.array()], Ok(Type::ANY));
        check("first", &[Type::TEXTS], Ok(Type::TEXT));
        check("last", &[Type::object(1).array()], Ok(Type::object(1)));
        check("first", &[Type::UNKNOWN], Ok(Type::ANY));
        check("take", &[Type::TEXTS, Type::INT], Ok(Type::TEXTS));
        check("take", &[Type::INT.array(), Type::INT], Ok(Type::ARRAY));
        check("max", &[Type::INT, Type::FLOAT], Ok(Type::INT));
        check("max", &[Type::INT, Type::ARRAY, Type::TEXT], Ok(Type::ANY));
        check("abs", &[Type::DURATION], Ok(Type::DURATION));
        check("filter", &[Type::INT.array(), Type::BOOL], Ok(Type::INT.array()));
        check("filter", &[Type::UNKNOWN, Type::UNKNOWN], Ok(Type::ARRAY));
        check("map", &[Type::UNKNOWN, Type::TEXT], Ok(Type::TEXT.array()));
        check("sum", &[Type::FLOAT.array()], Ok(Type::FLOAT));
        check("sum", &[Type::UNKNOWN, Type::INT], Ok(Type::INT));
        check("find", &[Type::MAP.array(), Type::BOOL], Ok(Type::MAP));
        check("groupBy", &[Type::ARRAY, Type::TEXT], Ok(Type::GROUPS));
        check("reduce", &[Type::ARRAY, Type::INT, Type::INT], Ok(Type::INT));
        check("date", &[Type::ZONE, Type::TEXT], Ok(Type::TIME));
        check("now", &[Type::ZONE], Ok(Type::TIME));
    }
}
