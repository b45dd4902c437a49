//! The functions that rules have beside those of expr-lang. Strict mode has none of them.

mod yaml;

use super::{
    Builtin, Gives, Group, Run,
    check::{Check, Parameter, Refusal},
    quoted, text_of,
};
use crate::{
    glob::paid,
    machine::{Failure, Machine},
    operators,
    types::Type,
    value::{Network, Value, Version},
};

pub(crate) static OURS: &[Builtin] = &[
    Builtin {
        name: "quantity",
        group: Group::Kubernetes,
        signature: "quantity(text)",
        about: "the amount that a text or a number says, as Kubernetes writes it: it is compared and added by its value",
        example: ("quantity(\"1Gi\") > quantity(\"1G\")", "true"),
        check: Check::Parameters(&[Parameter::Any], 0, Type::QUANTITY),
        gives: Gives::Type,
        run: Run::Function(quantity),
    },
    Builtin {
        name: "isQuantity",
        group: Group::Kubernetes,
        signature: "isQuantity(value)",
        about: "whether `quantity` reads it",
        example: ("isQuantity(\"1GB\")", "false"),
        check: Check::Parameters(&[Parameter::Any], 0, Type::BOOL),
        gives: Gives::Type,
        run: Run::Function(is_quantity),
    },
    Builtin {
        name: "semver",
        group: Group::Kubernetes,
        signature: "semver(text)",
        about: "the version that a text says, with or without a `v` and all of its numbers: it is compared by its numbers, and is `in` a range",
        example: ("semver(\"v1.9\") < \"1.27\" && semver(\"1.9\") in \">=1.2 <2\"", "true"),
        check: Check::Parameters(&[Parameter::Text], 0, Type::VERSION),
        gives: Gives::Type,
        run: Run::Function(semver),
    },
    Builtin {
        name: "isSemver",
        group: Group::Kubernetes,
        signature: "isSemver(text)",
        about: "whether `semver` reads it",
        example: ("isSemver(\"latest\")", "false"),
        check: Check::With(asked),
        gives: Gives::Type,
        run: Run::Function(is_semver),
    },
    Builtin {
        name: "cidr",
        group: Group::Kubernetes,
        signature: "cidr(text or texts)",
        about: "the network that a text says, or those of a list of texts: addresses and other networks are `in` it",
        example: ("\"10.1.2.3\" in cidr(\"10.0.0.0/8\")", "true"),
        check: Check::With(networks),
        gives: Gives::Type,
        run: Run::Function(cidr),
    },
    Builtin {
        name: "isCIDR",
        group: Group::Kubernetes,
        signature: "isCIDR(text)",
        about: "whether `cidr` reads it",
        example: ("isCIDR(\"10.0.0.1\")", "false"),
        check: Check::With(asked),
        gives: Gives::Type,
        run: Run::Function(is_cidr),
    },
    Builtin {
        name: "isIP",
        group: Group::Kubernetes,
        signature: "isIP(text)",
        about: "whether it is an address of IPv4 or IPv6",
        example: ("isIP(\"fe80::1\")", "true"),
        check: Check::With(asked),
        gives: Gives::Type,
        run: Run::Function(is_ip),
    },
    Builtin {
        name: "glob",
        group: Group::Kubernetes,
        signature: "glob(text, pattern)",
        about: "whether the whole text is what a pattern means: `*` stands for any characters, `?` for one",
        example: ("glob(\"prod-eu\", \"prod-*\")", "true"),
        check: Check::Parameters(&[Parameter::Text, Parameter::Text], 0, Type::BOOL),
        gives: Gives::Type,
        run: Run::Function(glob),
    },
    Builtin {
        name: "fromYAML",
        group: Group::Kubernetes,
        signature: "fromYAML(text)",
        about: "the value that YAML has, as Kubernetes reads it: one document, or nil",
        example: ("fromYAML(\"replicas: 3\").replicas", "3"),
        check: Check::Parameters(&[Parameter::Text], 0, Type::UNKNOWN),
        gives: Gives::Type,
        run: Run::Function(from_yaml),
    },
];

/// A question about a text. Of what is missing the answer is no.
fn asked(types: &[Type]) -> Result<Type, Refusal> {
    match types {
        [Type::TEXT | Type::NIL] => Ok(Type::BOOL),
        [found] if found.is_unknown() => Ok(Type::BOOL),
        [found] => Err(Refusal::argument(0, format!("expects a string, got {found}"))),
        _ => Err(Refusal::call(format!("takes 1 argument, got {}", types.len()))),
    }
}

fn networks(types: &[Type]) -> Result<Type, Refusal> {
    match types {
        [Type::TEXT] => Ok(Type::NETWORK),
        [found] if found.is_unknown() => Ok(Type::UNKNOWN),
        [found] if found.is_array() && (found.element() == Type::TEXT || found.element().is_unknown()) => {
            Ok(Type::NETWORK.array())
        }
        [found] => Err(Refusal::argument(0, format!("expects a string or an array of strings, got {found}"))),
        _ => Err(Refusal::call(format!("takes 1 argument, got {}", types.len()))),
    }
}

type Arguments<'v, 'a> = &'v [Value<'a>];
type Answer<'a> = Result<Value<'a>, Failure>;

fn quantity<'a>(machine: &Machine<'a>, arguments: Arguments<'_, 'a>) -> Answer<'a> {
    match arguments {
        [value] if value.sequence().is_none() => operators::quantity(machine, *value),
        [value] => Err(Failure::expected("text or a number", *value)),
        _ => Err(Failure::arguments()),
    }
}

fn is_quantity<'a>(_: &Machine<'a>, arguments: Arguments<'_, 'a>) -> Answer<'a> {
    let [value] = arguments else { return Err(Failure::arguments()) };
    Ok(Value::Bool(operators::amount_of(*value).is_some()))
}

fn semver<'a>(machine: &Machine<'a>, arguments: Arguments<'_, 'a>) -> Answer<'a> {
    let [value] = arguments else { return Err(Failure::arguments()) };
    operators::version(machine, *value)
}

fn is_semver<'a>(machine: &Machine<'a>, arguments: Arguments<'_, 'a>) -> Answer<'a> {
    answer(machine, arguments, |text| Version::parse(text).is_some())
}

fn cidr<'a>(machine: &Machine<'a>, arguments: Arguments<'_, 'a>) -> Answer<'a> {
    let [value] = arguments else { return Err(Failure::arguments()) };
    let Some(items) = value.sequence() else { return network(machine, *value) };
    let list = machine.fill(items.len(), Value::Nil)?;
    for (place, item) in list.iter_mut().zip(items.iter()) {
        machine.step(1)?;
        *place = network(machine, item)?;
    }
    Ok(Value::List(list))
}

fn network<'a>(machine: &Machine<'a>, value: Value<'a>) -> Answer<'a> {
    let text = match value {
        Value::Network(_) => return Ok(value),
        _ => text_of(value)?,
    };
    match Network::parse(text) {
        Some(network) => machine.keep(network).map(Value::Network),
        None => Err(Failure::new(format!("{} is no network such as \"10.0.0.0/8\"", quoted(text)))),
    }
}

fn is_cidr<'a>(machine: &Machine<'a>, arguments: Arguments<'_, 'a>) -> Answer<'a> {
    answer(machine, arguments, |text| Network::parse(text).is_some())
}

fn is_ip<'a>(machine: &Machine<'a>, arguments: Arguments<'_, 'a>) -> Answer<'a> {
    answer(machine, arguments, |text| Network::parse_address(text).is_some())
}

/// The answer of a question about a text. Of anything else it is no.
fn answer<'a>(machine: &Machine<'a>, arguments: Arguments<'_, 'a>, asks: impl Fn(&str) -> bool) -> Answer<'a> {
    match arguments {
        [Value::Text(text)] => {
            machine.step_bytes(text.len())?;
            Ok(Value::Bool(asks(text)))
        }
        [_] => Ok(Value::Bool(false)),
        _ => Err(Failure::arguments()),
    }
}

fn glob<'a>(machine: &Machine<'a>, arguments: Arguments<'_, 'a>) -> Answer<'a> {
    let [text, pattern] = arguments else { return Err(Failure::arguments()) };
    paid(text_of(*pattern)?, text_of(*text)?, |steps| machine.step(steps)).map(Value::Bool)
}

fn from_yaml<'a>(machine: &Machine<'a>, arguments: Arguments<'_, 'a>) -> Answer<'a> {
    let [text] = arguments else { return Err(Failure::arguments()) };
    yaml::parse(machine, text_of(*text)?)
}

#[cfg(test)]
mod tests {
    use crate::{builtins::sample::check_with, limits::Limits};

    #[track_caller]
    fn check(table: &str) {
        check_with(table, &Limits::default(), false);
    }

    #[test]
    fn a_version_is_read_and_compared() {
        check(
            r#"
            semver("v1.27") => v1.27
            semver("v1.27") > semver("1.9.3") => true
            semver("1.27.0") == semver("v1.27+build") => true
            semver("1.0.0-rc.1") < semver("1") => true
            semver(semver("1")) => 1
            semver("latest") => error: "latest" is no version such as "1.2.3" or "v1.27"
            semver("") => error: "" is no version such as "1.2.3" or "v1.27"
            semver(nil) => error: expected a version such as "1.2.3", got nil
            semver(1.27) => error: expected a version such as "1.2.3", got float
            semver("1.9") < "1.27" => true
            semver("1.9") == "1.9.0" => true
            semver("1.9") == "latest" => false
            semver("1.9") == 1.9 => false
            semver("1.9") < "latest" => error: cannot use < with version and string
            semver("1.9") < nil => false
            semver("1.9") in ["1.8", "1.9.0"] => true
            semver("1.9") in ">=1.2 <2" => true
            semver("1.9") in "2 ||" => error: a range has a version such as "1.2" on each side of `||`
            semver("1.9") in nil => false
            sort([semver("1.10"), semver("1.9"), semver("1.9-a")]) => [1.9-a, 1.9, 1.10]
            max([semver("1.10"), semver("1.9")]) => 1.10
            uniq([semver("1.10"), semver("v1.10.0")]) => [1.10]
            string(semver("v1.9")) => "v1.9"
            toJSON(semver("v1.9")) => "\"v1.9\""
            type(semver("v1.9")) => "version"
            isSemver("1.2.3-rc.1+b") => true
            isSemver("1.2.3.4") => false
            isSemver(nil) => false
            isSemver(1) => false
            "#,
        );
    }

    #[test]
    fn addresses_are_in_networks() {
        check(
            r#"
            "10.1.2.3" in cidr("10.0.0.0/8") => true
            "11.1.2.3" in cidr("10.0.0.0/8") => false
            "::ffff:10.1.2.3" in cidr("10.0.0.0/8") => true
            "10.1.0.0/16" in cidr("10.0.0.0/8") => true
            "10.0.0.0/7" in cidr("10.0.0.0/8") => false
            cidr("10.1.0.0/16") in cidr("10.0.0.0/8") => true
            nil in cidr("10.0.0.0/8") => false
            "web" in cidr("10.0.0.0/8") => error: "web" is no address such as "10.0.0.1" and no network such as "10.0.0.0/8"
            5 in cidr("10.0.0.0/8") => error: expected an address such as "10.0.0.1", got int
            "10.1.2.3" in cidr(["192.168.0.0/16", "10.0.0.0/8"]) => true
            "10.1.2.3" in [cidr("192.168.0.0/16"), cidr("10.0.0.0/8")] => true
            "172.16.0.1" in cidr(["192.168.0.0/16", "10.0.0.0/8"]) => false
            nil in cidr(["10.0.0.0/8"]) => false
            "10.1.2.3" in cidr([]) => false
            cidr("10.0.0.0/8") == cidr("10.9.9.9/8") => true
            cidr("10.0.0.0/8") == "10.0.0.0/8" => true
            cidr("10.0.0.0/8") == "10.0.0.0/9" => false
            cidr("10.0.0.0/8") == "web" => false
            cidr("10.0.0.0/8") < cidr("10.0.0.0/9") => error: cannot use < with network and network
            cidr("10.0.0.1") => error: "10.0.0.1" is no network such as "10.0.0.0/8"
            cidr(nil) => error: expected a string, got nil
            cidr(["10.0.0.0/8", nil]) => error: expected a string, got nil
            string(cidr("10.1.0.0/8")) => "10.1.0.0/8"
            toJSON(cidr("10.0.0.0/8")) => "\"10.0.0.0/8\""
            type(cidr("10.0.0.0/8")) => "network"
            uniq([cidr("10.0.0.0/8"), cidr("10.0.0.1/8")]) => [10.0.0.0/8]
            sort([cidr("10.0.0.0/8"), cidr("10.0.0.1/8")]) => error: network has no order
            isCIDR("10.0.0.0/8") => true
            isCIDR("10.0.0.1") => false
            isCIDR(nil) => false
            isIP("10.0.0.1") => true
            isIP("::1") => true
            isIP("010.0.0.1") => false
            isIP("10.0.0.0/8") => false
            isIP(nil) => false
            isIP(["10.0.0.1"]) => false
            "#,
        );
    }

    #[test]
    fn amounts_and_patterns_are_asked_for() {
        check(
            r#"
            isQuantity("1Gi") => true
            isQuantity(5) => true
            isQuantity("1GB") => false
            isQuantity(nil) => false
            isQuantity([1]) => false
            glob("prod-eu", "prod-*") => true
            glob("prod", "prod-*") => false
            glob("é", "?") => true
            glob(nil, "*") => error: expected a string, got nil
            glob("a", 1) => error: expected a string, got int
            "#,
        );
    }
}
