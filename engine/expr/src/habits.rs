//! What people write who come from CEL, Rego, JMESPath, JavaScript, Python or SQL, and what it is here. Whoever meets another
//! habit adds it to a table: nothing else has to know.

#[cfg(test)]
mod messages;
mod rewrite;

use crate::{
    ast::Binary,
    value::{Network, version::Range},
};

pub(crate) use self::rewrite::{MAX_SHOWN, Receiver, over_keys, rewritten, with_outer, without_variable, written_here};

/// How something is said here.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Ours {
    /// A builtin, with the same arguments.
    Builtin(&'static str),
    /// A builtin that runs a body for each element.
    Predicate(&'static str),
    /// An operator between the two arguments.
    Operator(Binary),
    /// An operator with the second argument on its left.
    Flipped(Binary),
    /// `in` a list or a map, `contains` of a text.
    Holds,
    /// `x != nil`
    Present,
    /// `x == nil`
    Absent,
    /// `len(x) == 0`
    Empty,
    /// `x[from:to]`
    Slice,
    /// `x[index]`
    Element,
    /// `x[key] ?? default`, or `x[key]` where the default says only that nothing is there.
    ElementOr,
    /// The argument itself.
    Itself,
    /// A function with the arguments of these places.
    Arranged(&'static str, &'static [usize]),
    /// An operator between two arguments, each with a function around it, or with none.
    Between(Around, Binary, Around),
    /// `x < y`, where -1, 0 or 1 says how they compare: the number behind it says which operator is meant.
    Compared(&'static str),
    /// What is asked of the elements of one argument is whether the other one has them: `any(xs, # in ys)`.
    Members(Members),
    /// One of a list of texts stands in an operator with the first argument: `any(texts, x startsWith #)`.
    AnyOf(Binary),
    /// `type(x) == "…"`
    IsOf(&'static str),
    /// `x in cidr([…])`
    Within(&'static [&'static str]),
    /// A text with the other arguments in the places that it has for them: `"a " + x`.
    Filled,
    /// `let x = y; z`
    Bound,
}

/// Which elements are asked for, and where.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Members {
    /// Whether all or any of them must be there, or not be there.
    pub(crate) predicate: &'static str,
    pub(crate) are_absent: bool,
    /// The places of the list that they are of, and of the one that is to have them.
    pub(crate) of: usize,
    pub(crate) whole: usize,
}

/// Networks that have a name elsewhere.
const PRIVATE: Ours = Ours::Within(&["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7"]);
const LOOPBACK: Ours = Ours::Within(&["127.0.0.0/8", "::1/128"]);
const LINK_LOCAL: Ours = Ours::Within(&["169.254.0.0/16", "fe80::/10"]);
const MULTICAST: Ours = Ours::Within(&["224.0.0.0/4", "ff00::/8"]);
const UNSPECIFIED: Ours = Ours::Within(&["0.0.0.0/32", "::/128"]);

const fn members(predicate: &'static str, are_absent: bool, of: usize, whole: usize) -> Ours {
    Ours::Members(Members { predicate, are_absent, of, whole })
}

/// The place of an argument, and the function around it.
type Around = (&'static str, usize);

/// Names that are values elsewhere.
pub(crate) const NAMES: [(&str, &str); 14] = [
    ("null", "nil"),
    ("Null", "nil"),
    ("NULL", "nil"),
    ("None", "nil"),
    ("Nil", "nil"),
    ("NIL", "nil"),
    ("undefined", "nil"),
    ("True", "true"),
    ("TRUE", "true"),
    ("False", "false"),
    ("FALSE", "false"),
    ("now", "now()"),
    ("_index", "#index"),
    ("_acc", "#acc"),
];

/// Words that are operators elsewhere, where the parser expects one.
pub(crate) const SIGNS: [(&str, &str); 26] = [
    ("AND", "and"),
    ("OR", "or"),
    ("NOT", "not"),
    ("IN", "in"),
    ("LIKE", "matches"),
    ("like", "matches"),
    ("is", "=="),
    ("IS", "=="),
    ("eq", "=="),
    ("ne", "!="),
    ("gt", ">"),
    ("ge", ">="),
    ("gte", ">="),
    ("lt", "<"),
    ("le", "<="),
    ("lte", "<="),
    ("Equal", "=="),
    ("Equals", "=="),
    ("NotEqual", "!="),
    ("NotEquals", "!="),
    ("In", "in"),
    ("NotIn", "not in"),
    ("GreaterThan", ">"),
    ("GreaterThanOrEquals", ">="),
    ("LessThan", "<"),
    ("LessThanOrEquals", "<="),
];

/// Names that are values elsewhere, and nothing here, with what is done instead: by the name and the field that must follow, if there is one.
const NOWHERE: [(&str, &str, &str); 9] = [
    (
        "authorizer",
        "",
        "nobody is asked what a user may do: write `\"system:masters\" in request.userInfo.groups`, with the group that may",
    ),
    (
        "params",
        "",
        "a rule has no parameters: write the value itself, or keep it in a ConfigMap and read `cluster.configmaps.byName(…, …).data`",
    ),
    (
        "input",
        "parameters",
        "a rule has no parameters: write the value itself, or keep it in a ConfigMap and read `cluster.configmaps.byName(…, …).data`",
    ),
    ("variables", "", "a variable is declared before by `let name = …;`, and read by its name alone"),
    (
        "data",
        "inventory",
        "other objects are looked up by `cluster.<plural>.list(\"*\")`, such as `cluster.ingresses.list(\"*\")`",
    ),
    ("element", "", "a list is asked by `any(list, …)`, where `#` is the element and `.name` its field"),
    ("elementIndex", "", "a list is asked by `any(list, …)`, where `#` is the element: there is no way to its place"),
    (
        "images",
        "",
        "a rule that reads `container` is asked of each container: write `container.image`, which has `registry`, `name` and `tag`",
    ),
    (
        "globalContext",
        "",
        "other objects are looked up by `cluster.<plural>`, and nothing outside of the cluster is asked",
    ),
];

/// Fields that are the length of a list or a text elsewhere.
pub(crate) const LENGTHS: [&str; 4] = ["length", "size", "count", "len"];

/// Functions of other languages by their names, and by the names of what they belong to.
const FUNCTIONS: [(&str, Ours); 146] = [
    ("has", Ours::Present),
    ("defined", Ours::Present),
    ("isDefined", Ours::Present),
    ("is_null", Ours::Absent),
    ("isNull", Ours::Absent),
    ("isNil", Ours::Absent),
    ("empty", Ours::Empty),
    ("isEmpty", Ours::Empty),
    ("size", Ours::Builtin("len")),
    ("length", Ours::Builtin("len")),
    ("strlen", Ours::Builtin("len")),
    ("exists", Ours::Predicate("any")),
    ("some", Ours::Predicate("any")),
    ("every", Ours::Predicate("all")),
    ("forall", Ours::Predicate("all")),
    ("exists_one", Ours::Predicate("one")),
    ("existsOne", Ours::Predicate("one")),
    ("contains", Ours::Holds),
    ("Contains", Ours::Holds),
    ("includes", Ours::Holds),
    ("startsWith", Ours::Operator(Binary::StartsWith)),
    ("StartsWith", Ours::Operator(Binary::StartsWith)),
    ("startswith", Ours::Operator(Binary::StartsWith)),
    ("starts_with", Ours::Operator(Binary::StartsWith)),
    ("endsWith", Ours::Operator(Binary::EndsWith)),
    ("EndsWith", Ours::Operator(Binary::EndsWith)),
    ("endswith", Ours::Operator(Binary::EndsWith)),
    ("ends_with", Ours::Operator(Binary::EndsWith)),
    ("matches", Ours::Operator(Binary::Matches)),
    ("Matches", Ours::Operator(Binary::Matches)),
    ("regex_match", Ours::Flipped(Binary::Matches)),
    ("re_match", Ours::Flipped(Binary::Matches)),
    ("regex.match", Ours::Flipped(Binary::Matches)),
    ("re.match", Ours::Flipped(Binary::Matches)),
    ("not_null", Ours::Operator(Binary::Coalesce)),
    ("coalesce", Ours::Operator(Binary::Coalesce)),
    ("lowercase", Ours::Builtin("lower")),
    ("to_lower", Ours::Builtin("lower")),
    ("toLower", Ours::Builtin("lower")),
    ("uppercase", Ours::Builtin("upper")),
    ("to_upper", Ours::Builtin("upper")),
    ("toUpper", Ours::Builtin("upper")),
    ("trim_space", Ours::Builtin("trim")),
    ("trim_prefix", Ours::Builtin("trimPrefix")),
    ("trim_suffix", Ours::Builtin("trimSuffix")),
    ("to_number", Ours::Builtin("float")),
    ("parseInt", Ours::Builtin("int")),
    ("parseFloat", Ours::Builtin("float")),
    ("Number", Ours::Builtin("float")),
    ("double", Ours::Builtin("float")),
    ("uint", Ours::Builtin("int")),
    ("to_string", Ours::Builtin("string")),
    ("toString", Ours::Builtin("string")),
    ("String", Ours::Builtin("string")),
    ("str", Ours::Builtin("string")),
    ("timestamp", Ours::Builtin("date")),
    ("typeof", Ours::Builtin("type")),
    ("type_of", Ours::Builtin("type")),
    ("dyn", Ours::Itself),
    ("object.get", Ours::ElementOr),
    ("Object.keys", Ours::Builtin("keys")),
    ("Object.values", Ours::Builtin("values")),
    ("Object.entries", Ours::Builtin("toPairs")),
    ("JSON.parse", Ours::Builtin("fromJSON")),
    ("JSON.stringify", Ours::Builtin("toJSON")),
    ("json.unmarshal", Ours::Builtin("fromJSON")),
    ("parse_json", Ours::Builtin("fromJSON")),
    ("parse_yaml", Ours::Builtin("fromYAML")),
    ("yaml.unmarshal", Ours::Builtin("fromYAML")),
    ("base64_decode", Ours::Builtin("fromBase64")),
    ("base64.decode", Ours::Builtin("fromBase64")),
    ("base64_encode", Ours::Builtin("toBase64")),
    ("base64.encode", Ours::Builtin("toBase64")),
    ("wildcard", Ours::Arranged("glob", &[1, 0])),
    ("pattern_match", Ours::Arranged("glob", &[1, 0])),
    ("glob.match", Ours::Arranged("glob", &[2, 0])),
    ("semver_compare", Ours::Between(("semver", 0), Binary::In, ("", 1))),
    ("semverCompare", Ours::Between(("semver", 1), Binary::In, ("", 0))),
    ("semver.compare", Ours::Compared("semver")),
    ("semver.is_valid", Ours::Builtin("isSemver")),
    ("net.cidr_contains", Ours::Between(("", 1), Binary::In, ("cidr", 0))),
    ("net.cidr_is_valid", Ours::Builtin("isCIDR")),
    ("ip", Ours::Itself),
    ("units.parse", Ours::Builtin("quantity")),
    ("units.parse_bytes", Ours::Builtin("quantity")),
    ("parseQuantity", Ours::Builtin("quantity")),
    ("parse_quantity", Ours::Builtin("quantity")),
    ("toBytes", Ours::Builtin("quantity")),
    ("cidrContains", Ours::Between(("", 1), Binary::In, ("cidr", 0))),
    ("cidr_contains", Ours::Between(("", 1), Binary::In, ("cidr", 0))),
    ("default", Ours::Operator(Binary::Coalesce)),
    ("strings.HasPrefix", Ours::Operator(Binary::StartsWith)),
    ("strings.HasSuffix", Ours::Operator(Binary::EndsWith)),
    ("strings.Contains", Ours::Operator(Binary::Contains)),
    ("strings.ToLower", Ours::Builtin("lower")),
    ("strings.ToUpper", Ours::Builtin("upper")),
    ("eq", Ours::Operator(Binary::Equal)),
    ("ne", Ours::Operator(Binary::NotEqual)),
    ("gt", Ours::Operator(Binary::Greater)),
    ("ge", Ours::Operator(Binary::GreaterOrEqual)),
    ("lt", Ours::Operator(Binary::Less)),
    ("le", Ours::Operator(Binary::LessOrEqual)),
    ("add", Ours::Operator(Binary::Add)),
    ("subtract", Ours::Operator(Binary::Subtract)),
    ("multiply", Ours::Operator(Binary::Multiply)),
    ("divide", Ours::Operator(Binary::Divide)),
    ("modulo", Ours::Operator(Binary::Modulo)),
    ("test", Ours::Operator(Binary::Matches)),
    ("ascii_downcase", Ours::Builtin("lower")),
    ("ascii_upcase", Ours::Builtin("upper")),
    ("ltrimstr", Ours::Builtin("trimPrefix")),
    ("rtrimstr", Ours::Builtin("trimSuffix")),
    ("tonumber", Ours::Builtin("float")),
    ("tostring", Ours::Builtin("string")),
    ("to_entries", Ours::Builtin("toPairs")),
    ("fromjson", Ours::Builtin("fromJSON")),
    ("tojson", Ours::Builtin("toJSON")),
    ("array.concat", Ours::Builtin("concat")),
    ("object.keys", Ours::Builtin("keys")),
    ("math.greatest", Ours::Builtin("max")),
    ("math.least", Ours::Builtin("min")),
    ("time.now_ns", Ours::Builtin("now")),
    ("time_now", Ours::Builtin("now")),
    ("time_now_utc", Ours::Builtin("now")),
    ("time.parse_rfc3339_ns", Ours::Builtin("date")),
    ("time.parse_duration_ns", Ours::Builtin("duration")),
    ("is_string", Ours::IsOf("string")),
    ("is_boolean", Ours::IsOf("bool")),
    ("is_array", Ours::IsOf("array")),
    ("is_object", Ours::IsOf("map")),
    ("AnyIn", members("any", false, 0, 1)),
    ("AllIn", members("all", false, 0, 1)),
    ("AnyNotIn", members("any", true, 0, 1)),
    ("AllNotIn", members("all", true, 0, 1)),
    ("sets.contains", members("all", false, 1, 0)),
    ("sets.intersects", members("any", false, 0, 1)),
    ("strings.any_prefix_match", Ours::AnyOf(Binary::StartsWith)),
    ("strings.any_suffix_match", Ours::AnyOf(Binary::EndsWith)),
    ("sprintf", Ours::Filled),
    ("format", Ours::Filled),
    ("fmt.Sprintf", Ours::Filled),
    ("cel.bind", Ours::Bound),
    ("isPrivate", PRIVATE),
    ("isPrivateIP", PRIVATE),
    ("isLoopback", LOOPBACK),
    ("isLinkLocal", LINK_LOCAL),
];

/// Methods of other languages. Beside these, every builtin that is called as a method is meant as a function.
const METHODS: [(&str, Ours); 66] = [
    ("size", Ours::Builtin("len")),
    ("length", Ours::Builtin("len")),
    ("isEmpty", Ours::Empty),
    ("exists", Ours::Predicate("any")),
    ("some", Ours::Predicate("any")),
    ("every", Ours::Predicate("all")),
    ("exists_one", Ours::Predicate("one")),
    ("existsOne", Ours::Predicate("one")),
    ("contains", Ours::Holds),
    ("includes", Ours::Holds),
    ("has", Ours::Flipped(Binary::In)),
    ("hasOwnProperty", Ours::Flipped(Binary::In)),
    ("containsKey", Ours::Flipped(Binary::In)),
    ("startsWith", Ours::Operator(Binary::StartsWith)),
    ("startswith", Ours::Operator(Binary::StartsWith)),
    ("endsWith", Ours::Operator(Binary::EndsWith)),
    ("endswith", Ours::Operator(Binary::EndsWith)),
    ("matches", Ours::Operator(Binary::Matches)),
    ("match", Ours::Operator(Binary::Matches)),
    ("test", Ours::Flipped(Binary::Matches)),
    ("equals", Ours::Operator(Binary::Equal)),
    ("isGreaterThan", Ours::Operator(Binary::Greater)),
    ("isLessThan", Ours::Operator(Binary::Less)),
    ("compareTo", Ours::Compared("")),
    ("containsIP", Ours::Flipped(Binary::In)),
    ("containsCIDR", Ours::Flipped(Binary::In)),
    ("orValue", Ours::Operator(Binary::Coalesce)),
    ("getOrDefault", Ours::Operator(Binary::Coalesce)),
    ("hasValue", Ours::Present),
    ("value", Ours::Itself),
    ("toLowerCase", Ours::Builtin("lower")),
    ("lowerAscii", Ours::Builtin("lower")),
    ("toLower", Ours::Builtin("lower")),
    ("toUpperCase", Ours::Builtin("upper")),
    ("upperAscii", Ours::Builtin("upper")),
    ("toUpper", Ours::Builtin("upper")),
    ("strip", Ours::Builtin("trim")),
    ("removePrefix", Ours::Builtin("trimPrefix")),
    ("removeprefix", Ours::Builtin("trimPrefix")),
    ("removeSuffix", Ours::Builtin("trimSuffix")),
    ("removesuffix", Ours::Builtin("trimSuffix")),
    ("replaceAll", Ours::Builtin("replace")),
    ("toString", Ours::Builtin("string")),
    ("parseInt", Ours::Builtin("int")),
    ("substring", Ours::Slice),
    ("slice", Ours::Slice),
    ("charAt", Ours::Element),
    ("at", Ours::Element),
    ("distinct", Ours::Builtin("uniq")),
    ("unique", Ours::Builtin("uniq")),
    ("sorted", Ours::Builtin("sort")),
    ("flat", Ours::Builtin("flatten")),
    ("entries", Ours::Builtin("toPairs")),
    ("items", Ours::Builtin("toPairs")),
    ("sortedBy", Ours::Predicate("sortBy")),
    ("collect", Ours::Predicate("map")),
    ("select", Ours::Predicate("filter")),
    ("hasPrefix", Ours::Operator(Binary::StartsWith)),
    ("hasSuffix", Ours::Operator(Binary::EndsWith)),
    ("format", Ours::Filled),
    ("isPrivate", PRIVATE),
    ("isLoopback", LOOPBACK),
    ("isLinkLocalUnicast", LINK_LOCAL),
    ("isLinkLocalMulticast", MULTICAST),
    ("isMulticast", MULTICAST),
    ("isUnspecified", UNSPECIFIED),
];

/// Functions of other languages that are not here, and what is done instead.
const ABSENT: [(&str, &str); 3] = [
    ("cidrOverlaps", "write `cidr(a) in cidr(b) || cidr(b) in cidr(a)`"),
    ("url", "write `text startsWith \"https://\"`, or take the host by `split(text, \"/\")[2]`"),
    ("isURL", "write `text startsWith \"https://\"`"),
];

/// What is done instead of a function that is not here.
pub(crate) fn absent(name: &str) -> Option<&'static str> {
    ABSENT.iter().find(|(theirs, _)| *theirs == name).map(|(_, instead)| *instead)
}

/// What is done instead of a value of other languages that is nothing here.
pub(crate) fn nowhere(name: &str, field: Option<&str>) -> Option<&'static str> {
    let is_meant =
        |(theirs, below, _): &&(&str, &str, &str)| *theirs == name && (below.is_empty() || field == Some(*below));
    NOWHERE.iter().find(is_meant).map(|(.., instead)| *instead)
}

/// What a name is here that is a value elsewhere.
pub(crate) fn value(name: &str) -> Option<&'static str> {
    NAMES.iter().find(|(theirs, _)| *theirs == name).map(|(_, ours)| *ours)
}

/// What a function of another language is here.
pub(crate) fn function(name: &str) -> Option<Ours> {
    FUNCTIONS.iter().find(|(theirs, _)| *theirs == name).map(|(_, ours)| *ours)
}

/// The same for one that belongs to a name, with so many arguments: `object.get(x, "a", "b")` is a function of Rego, and
/// `object.get("a", "b")` a method of Python.
pub(crate) fn function_of(owner: &str, name: &str, arguments: usize) -> Option<Ours> {
    function(&format!("{owner}.{name}")).filter(|ours| *ours != Ours::ElementOr || arguments == 3)
}

/// What a method with so many arguments is here.
pub(crate) fn method(name: &str, arguments: usize) -> Option<Ours> {
    // `count` without a body counts what is true, which nobody means by it.
    if name == "count" && arguments == 0 {
        return Some(Ours::Builtin("len"));
    }
    if name == "get" && arguments == 1 {
        return Some(Ours::Element);
    }
    if name == "get" && arguments == 2 {
        return Some(Ours::ElementOr);
    }
    METHODS.iter().find(|(theirs, _)| *theirs == name).map(|(_, ours)| *ours).or_else(|| {
        let builtin = crate::builtins::find(name)?;
        let runs_body = matches!(builtin.run, crate::builtins::Run::Predicate(_)) && arguments > 0;
        Some(if runs_body { Ours::Predicate(builtin.name) } else { Ours::Builtin(builtin.name) })
    })
}

/// A duration in units that the language does not have, in hours: `30d`, `1 week`.
pub(crate) fn in_hours(text: &str) -> Option<String> {
    let text = text.trim();
    let digits = text.find(|character: char| !character.is_ascii_digit())?;
    let number: u32 = text[..digits].parse().ok()?;
    let hours = match text[digits..].trim().to_ascii_lowercase().as_str() {
        "h" | "hour" | "hours" => 1,
        "d" | "day" | "days" => 24,
        "w" | "week" | "weeks" => 24 * 7,
        "y" | "year" | "years" => 24 * 365,
        "mo" | "month" | "months" => 24 * 30,
        "m" | "min" | "minute" | "minutes" => return Some(format!("{number}m")),
        "s" | "sec" | "second" | "seconds" => return Some(format!("{number}s")),
        _ => return None,
    };
    Some(format!("{}h", u64::from(number) * hours))
}

/// What is to be written instead of a constant that a builtin cannot read.
pub(crate) fn constant(builtin: &str, text: &str) -> String {
    match builtin {
        "duration" => match in_hours(text) {
            Some(hours) => format!("write `duration({hours:?})`, in hours, minutes and seconds"),
            None => "write hours, minutes and seconds, such as `duration(\"1h30m\")`".to_owned(),
        },
        "date" => match text {
            "now" | "today" => "write `now()`".to_owned(),
            "yesterday" => "write `now() - duration(\"24h\")`".to_owned(),
            "tomorrow" => "write `now() + duration(\"24h\")`".to_owned(),
            _ => "write a date such as `date(\"2026-01-31\")` or `date(\"2026-01-31T12:00:00Z\")`".to_owned(),
        },
        "timezone" => "write a name of the IANA database, such as `timezone(\"Europe/Berlin\")`".to_owned(),
        "quantity" => match text.trim().strip_suffix(['B', 'b']) {
            Some(amount) if amount.ends_with(['K', 'k', 'M', 'G', 'T', 'P', 'i']) => {
                let amount = amount.replace(' ', "").replace('K', "k").replace("ki", "Ki");
                format!("write `quantity({amount:?})`, without `B`")
            }
            _ => "write a quantity such as `quantity(\"100m\")` or `quantity(\"1Gi\")`".to_owned(),
        },
        "semver" if Range::parse(text).is_ok() => {
            format!("a range stands behind `in`, write `semver(…) in {text:?}`")
        }
        "semver" => "write a version such as `semver(\"1.2.3\")`".to_owned(),
        "cidr" if Network::parse_address(text).is_some() => {
            format!("write `cidr(\"{text}/{}\")` for one address", if text.contains(':') { 128 } else { 32 })
        }
        "cidr" => "write a network such as `cidr(\"10.0.0.0/8\")`".to_owned(),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtins;

    #[test]
    fn every_habit_is_a_function_that_there_is() {
        for (theirs, ours) in FUNCTIONS.iter().chain(&METHODS) {
            if let Ours::Builtin(name) | Ours::Predicate(name) = ours {
                let builtin = builtins::find(name).or_else(|| builtins::find_ours(name)).expect(theirs);
                let is_predicate = matches!(builtin.run, builtins::Run::Predicate(_));
                assert_eq!(is_predicate, matches!(ours, Ours::Predicate(_)), "{theirs}");
            }
        }
    }

    #[test]
    fn no_habit_is_a_function_that_there_is_already() {
        for (theirs, _) in FUNCTIONS {
            assert!(builtins::find(theirs).is_none() && builtins::find_ours(theirs).is_none(), "{theirs}");
        }
    }

    #[test]
    fn days_and_weeks_are_hours() {
        for (text, expected) in [
            ("30d", Some("720h")),
            ("1 week", Some("168h")),
            ("2 Hours", Some("2h")),
            ("5 min", Some("5m")),
            ("1 fortnight", None),
            ("d", None),
            ("", None),
            ("99999999999d", None),
        ] {
            assert_eq!(in_hours(text).as_deref(), expected, "{text}");
        }
    }
}
