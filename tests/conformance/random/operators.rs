//! The operators, with what goes on their sides and what comes out.

use super::sorts::Sort;

/// An operator between two operands: the sorts of those, and of the result.
pub(super) struct Operator {
    pub(super) name: &'static str,
    pub(super) left: Sort,
    pub(super) right: Sort,
    pub(super) result: Sort,
}

const fn row(name: &'static str, left: Sort, right: Sort, result: Sort) -> Operator {
    Operator { name, left, right, result }
}

/// Operators between two operands.
pub(super) const BINARY: [Operator; 61] = [
    row("==", Sort::Any, Sort::Any, Sort::Bool),
    row("==", Sort::Number, Sort::Number, Sort::Bool),
    row("==", Sort::Text, Sort::Text, Sort::Bool),
    row("==", Sort::List, Sort::List, Sort::Bool),
    row("!=", Sort::Any, Sort::Nil, Sort::Bool),
    row("!=", Sort::Map, Sort::Map, Sort::Bool),
    row("!=", Sort::Text, Sort::Any, Sort::Bool),
    row("<", Sort::Number, Sort::Number, Sort::Bool),
    row("<", Sort::Text, Sort::Text, Sort::Bool),
    row("<", Sort::Time, Sort::Time, Sort::Bool),
    row(">", Sort::Number, Sort::Number, Sort::Bool),
    row(">", Sort::Text, Sort::Text, Sort::Bool),
    row(">", Sort::Duration, Sort::Duration, Sort::Bool),
    row("<=", Sort::Number, Sort::Number, Sort::Bool),
    row("<=", Sort::Text, Sort::Text, Sort::Bool),
    row("<=", Sort::Time, Sort::Time, Sort::Bool),
    row(">=", Sort::Number, Sort::Number, Sort::Bool),
    row(">=", Sort::Text, Sort::Text, Sort::Bool),
    row("in", Sort::Any, Sort::List, Sort::Bool),
    row("in", Sort::Int, Sort::Ints, Sort::Bool),
    row("in", Sort::Text, Sort::Texts, Sort::Bool),
    row("in", Sort::Text, Sort::Map, Sort::Bool),
    row("not in", Sort::Text, Sort::Texts, Sort::Bool),
    row("not in", Sort::Any, Sort::List, Sort::Bool),
    row("contains", Sort::Text, Sort::Text, Sort::Bool),
    row("not contains", Sort::Text, Sort::Text, Sort::Bool),
    row("startsWith", Sort::Text, Sort::Text, Sort::Bool),
    row("not startsWith", Sort::Text, Sort::Text, Sort::Bool),
    row("endsWith", Sort::Text, Sort::Text, Sort::Bool),
    row("not endsWith", Sort::Text, Sort::Text, Sort::Bool),
    row("matches", Sort::Text, Sort::Pattern, Sort::Bool),
    row("not matches", Sort::Text, Sort::Pattern, Sort::Bool),
    row("&&", Sort::Bool, Sort::Bool, Sort::Bool),
    row("||", Sort::Bool, Sort::Bool, Sort::Bool),
    row("and", Sort::Bool, Sort::Bool, Sort::Bool),
    row("or", Sort::Bool, Sort::Bool, Sort::Bool),
    row("+", Sort::Int, Sort::Int, Sort::Int),
    row("+", Sort::Float, Sort::Number, Sort::Float),
    row("+", Sort::Text, Sort::Text, Sort::Text),
    row("+", Sort::Time, Sort::Duration, Sort::Time),
    row("+", Sort::Duration, Sort::Duration, Sort::Duration),
    row("-", Sort::Int, Sort::Int, Sort::Int),
    row("-", Sort::Number, Sort::Float, Sort::Float),
    row("-", Sort::Time, Sort::Time, Sort::Duration),
    row("-", Sort::Time, Sort::Duration, Sort::Time),
    row("-", Sort::Duration, Sort::Duration, Sort::Duration),
    row("*", Sort::Int, Sort::Int, Sort::Int),
    row("*", Sort::Float, Sort::Number, Sort::Float),
    row("*", Sort::Duration, Sort::Int, Sort::Duration),
    row("*", Sort::Int, Sort::Duration, Sort::Duration),
    row("/", Sort::Int, Sort::Int, Sort::Float),
    row("/", Sort::Number, Sort::Number, Sort::Float),
    row("/", Sort::Duration, Sort::Int, Sort::Float),
    row("%", Sort::Int, Sort::Int, Sort::Int),
    row("**", Sort::Number, Sort::Small, Sort::Float),
    row("^", Sort::Int, Sort::Small, Sort::Float),
    row("..", Sort::Small, Sort::Small, Sort::Ints),
    row("??", Sort::Any, Sort::Any, Sort::Any),
    row("??", Sort::Nil, Sort::Text, Sort::Text),
    row("??", Sort::Text, Sort::Text, Sort::Text),
    row("??", Sort::Number, Sort::Int, Sort::Number),
];

/// Everything else that puts expressions together. `~` is where they go, and the sorts are theirs; the result is of the
/// last of them if it is `Any`.
pub(super) const FORMS: [(&str, &[Sort], Sort); 34] = [
    ("!~", &[Sort::Bool], Sort::Bool),
    ("not ~", &[Sort::Bool], Sort::Bool),
    ("-~", &[Sort::Int], Sort::Int),
    ("-~", &[Sort::Float], Sort::Float),
    ("+~", &[Sort::Number], Sort::Number),
    ("~ < ~ < ~", &[Sort::Number, Sort::Number, Sort::Number], Sort::Bool),
    ("~ <= ~ > ~", &[Sort::Int, Sort::Int, Sort::Int], Sort::Bool),
    ("~ ? ~ : ~", &[Sort::Bool, Sort::Any, Sort::Any], Sort::Any),
    ("~ ?: ~", &[Sort::Bool, Sort::Bool], Sort::Bool),
    ("if ~ { ~ } else { ~ }", &[Sort::Bool, Sort::Any, Sort::Any], Sort::Any),
    ("if ~ { ~ } else if ~ { ~ } else { ~ }", &[Sort::Bool, Sort::Any, Sort::Bool, Sort::Any, Sort::Any], Sort::Any),
    ("(~; ~)", &[Sort::Any, Sort::Any], Sort::Any),
    ("(~; ~; ~)", &[Sort::Any, Sort::Any, Sort::Any], Sort::Any),
    ("(~)", &[Sort::Any], Sort::Any),
    ("/* c */ ~ // c\n", &[Sort::Any], Sort::Any),
    ("{a: ~}.a", &[Sort::Any], Sort::Any),
    ("{a: {\"b c\": ~}}?.a[\"b c\"]", &[Sort::Any], Sort::Any),
    ("[~, ~][1]", &[Sort::Any, Sort::Any], Sort::Any),
    ("[~, ~][-1]", &[Sort::Any, Sort::Any], Sort::Any),
    ("{a: nil}.a?.b.c ?? ~", &[Sort::Any], Sort::Any),
    ("~?.missing", &[Sort::Map], Sort::Nil),
    ("~?.[~]", &[Sort::Map, Sort::Text], Sort::Any),
    ("~[~]", &[Sort::Map, Sort::Text], Sort::Any),
    ("~[~:~]", &[Sort::List, Sort::Small, Sort::Small], Sort::List),
    ("~[~:]", &[Sort::Texts, Sort::Small], Sort::Texts),
    ("~[:~]", &[Sort::Ints, Sort::Int], Sort::Ints),
    ("~[~:~]", &[Sort::Text, Sort::Small, Sort::Small], Sort::Text),
    ("[~, ~, ~]", &[Sort::Any, Sort::Any, Sort::Any], Sort::List),
    ("[~, ~]", &[Sort::Int, Sort::Int], Sort::Ints),
    ("[~, ~]", &[Sort::Text, Sort::Text], Sort::Texts),
    ("[~, ~]", &[Sort::Map, Sort::Map], Sort::Maps),
    ("{a: ~, \"b\": ~, (~): ~}", &[Sort::Any, Sort::Any, Sort::Text, Sort::Any], Sort::Map),
    // The order of keys is random in Go, so that only what does not depend on it is asked.
    ("sort(keys(~))", &[Sort::Map], Sort::Texts),
    ("fromPairs(toPairs(~))", &[Sort::Map], Sort::Map),
];

/// Whether a form is as loose as an operator: it starts or ends with a place, or it goes on to its end.
pub(super) fn is_loose(form: &str) -> bool {
    let closed = form.ends_with([')', ']', '}']) && !form.starts_with("if");
    !(closed || form.ends_with(".a") || form.ends_with(".missing"))
}
