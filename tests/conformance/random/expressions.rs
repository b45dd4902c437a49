//! Expressions of the whole language, made for an environment.

use serde_json::{Map, Value};

use super::environments::environment;
use super::functions::Function;
use super::literals::literal;
use super::operators::{BINARY, FORMS, Operator, is_loose};
use super::sorts::{PLAIN, Sort};
use super::trees::Tree;
use crate::chance::Random;

/// An expression, and what it is evaluated on.
#[derive(Clone, Debug)]
pub(super) struct Question {
    /// What it was made from.
    pub(super) seed: u64,
    pub(super) expression: Tree,
    pub(super) environment: Map<String, Value>,
    /// What is certainly evaluated in it: the function or the operator of the whole expression.
    pub(super) head: Option<String>,
}

/// Something that has a name in the expression, and what it is.
#[derive(Clone, Debug)]
struct Reading<'e> {
    text: String,
    sort: Sort,
    sample: Option<&'e Value>,
}

struct Composer<'e> {
    random: Random,
    functions: &'e [Function],
    /// Names of the environment and of `let`.
    names: Vec<Reading<'e>>,
    /// What begins with `#`, and is another thing in every predicate.
    pointers: Vec<Reading<'e>>,
    /// How many names `let` has given.
    lets: usize,
}

/// How many levels of an object are read.
const LEVELS: usize = 6;

/// Functions that are seldom called within other expressions.
const RARE: [&str; 4] = ["findLast", "findLastIndex", "Month", "Weekday"];

/// The question of a seed.
pub(super) fn question(seed: u64, functions: &[Function]) -> Question {
    let mut random = Random::new(seed);
    let environment = environment(&mut random);
    let mut composer = Composer { random, functions, names: Vec::new(), pointers: Vec::new(), lets: 0 };
    for (name, value) in &environment {
        let form = ["$env.", "$env?.", "", "", "", "", "", "", "", "", "", ""];
        let text = format!("{}{name}", composer.random.pick(&form));
        let readings = composer.readings(text, value, 0);
        composer.names.extend(readings);
    }
    let depth = 1 + composer.random.below(4);
    let (expression, head) = composer.whole(depth);
    Question { seed, expression, environment, head }
}

impl<'e> Composer<'e> {
    /// An expression whose outermost function or operator is chosen from all of them alike.
    fn whole(&mut self, depth: usize) -> (Tree, Option<String>) {
        match self.random.below(100) {
            0..35 => {
                let functions = self.functions;
                let function = self.random.pick(functions);
                (self.call(function, depth), Some(format!("{}()", function.name)))
            }
            35..60 => {
                let operator = self.random.pick(&BINARY);
                let sides = [operator.left, operator.right].map(|sort| self.compose(sort, depth - 1).tight());
                (self.operation(operator, sides), Some(operator.name.to_owned()))
            }
            60..75 => {
                let (form, sorts, _) = *self.random.pick(&FORMS);
                let children: Vec<Tree> = sorts.iter().map(|sort| self.compose(*sort, depth - 1).tight()).collect();
                (Tree::loose(form, children), Some(form.to_owned()))
            }
            _ => (self.compose(Sort::Any, depth), None),
        }
    }

    /// An expression that probably is of this sort.
    fn compose(&mut self, sort: Sort, depth: usize) -> Tree {
        let sort = match sort {
            Sort::Body => sort,
            // As it stands: a choice could be one between other maps.
            Sort::OneEntry if depth == 0 => return self.leaf(sort),
            Sort::OneEntry => return Tree::new("{k: ~}", [self.compose(Sort::Any, depth - 1)]),
            // No large numbers, with which Go would be busy for hours.
            Sort::Small if self.random.percent(2) => Sort::Text,
            Sort::Small => sort,
            _ if self.random.percent(2) => *self.random.pick(&PLAIN),
            Sort::Any => *self.random.pick(&PLAIN),
            _ => sort,
        };
        if depth == 0 || self.random.percent(20) {
            return self.leaf(sort);
        }
        let tree = match self.random.below(10) {
            0..4 => self.some_call(sort, depth),
            4..7 => self.some_operation(sort, depth),
            7 => self.binding(sort, depth),
            _ => self.some_form(sort, depth),
        };
        tree.unwrap_or_else(|| self.leaf(sort))
    }

    fn leaf(&mut self, sort: Sort) -> Tree {
        match self.reading(sort) {
            Some(reading) if self.random.percent(70) => Tree::literal(reading.text),
            _ => Tree::literal(literal(sort, &mut self.random)),
        }
    }

    /// Something with a name that is of this sort.
    fn reading(&mut self, sort: Sort) -> Option<Reading<'e>> {
        let fits = |from: &[Reading<'_>]| -> Vec<usize> {
            (0..from.len()).filter(|index| sort.takes(from[*index].sort)).collect()
        };
        let (pointers, names) = (fits(&self.pointers), fits(&self.names));
        if !pointers.is_empty() && (names.is_empty() || self.random.percent(75)) {
            return Some(self.pointers[*self.random.pick(&pointers)].clone());
        }
        (!names.is_empty()).then(|| self.names[*self.random.pick(&names)].clone())
    }

    /// A value and what is in it, each with the text that reads it.
    fn readings(&mut self, text: String, value: &'e Value, level: usize) -> Vec<Reading<'e>> {
        let mut found = vec![Reading { text: text.clone(), sort: Sort::of(value), sample: Some(value) }];
        if level == LEVELS {
            return found;
        }
        match value {
            Value::Object(fields) => {
                for (key, value) in fields {
                    let text = self.member(&text, key);
                    found.extend(self.readings(text, value, level + 1));
                }
            }
            Value::Array(elements) => {
                for (index, value) in elements.iter().enumerate().take(2) {
                    let index =
                        if self.random.percent(80) { index as i64 } else { index as i64 - elements.len() as i64 };
                    found.extend(self.readings(format!("{text}[{index}]"), value, level + 1));
                }
            }
            _ => {}
        }
        found
    }

    fn member(&mut self, base: &str, key: &str) -> String {
        let is_name = key.starts_with(|first: char| first.is_alphabetic()) && key.chars().all(char::is_alphanumeric);
        let optional = if self.random.percent(8) { "?" } else { "" };
        match is_name && self.random.percent(92) {
            // The element itself may go unnamed.
            true if base == "#" && optional.is_empty() && self.random.percent(60) => format!(".{key}"),
            true => format!("{base}{optional}.{key}"),
            false if optional.is_empty() => format!("{base}[{}]", Value::from(key)),
            false => format!("{base}?.[{}]", Value::from(key)),
        }
    }

    fn some_operation(&mut self, sort: Sort, depth: usize) -> Option<Tree> {
        let fits: Vec<&Operator> = BINARY.iter().filter(|operator| sort.takes(operator.result)).collect();
        let operator = *fits.get(self.random.below(fits.len().max(1)))?;
        let sides = [operator.left, operator.right].map(|sort| self.operand(sort, depth - 1));
        Some(self.operation(operator, sides))
    }

    fn operation(&mut self, operator: &Operator, sides: [Tree; 2]) -> Tree {
        let form = match self.random.below(20) {
            0 => format!("~\n{} ~", operator.name),
            1 => format!("~ {}\n\t~", operator.name),
            _ => format!("~ {} ~", operator.name),
        };
        Tree::loose(&form, sides)
    }

    /// Mostly with the parentheses that it needs, so that operators of all precedences come to stand side by side too.
    fn operand(&mut self, sort: Sort, depth: usize) -> Tree {
        let tree = self.compose(sort, depth);
        if self.random.percent(85) { tree.tight() } else { tree }
    }

    fn some_form(&mut self, sort: Sort, depth: usize) -> Option<Tree> {
        let fits: Vec<_> = FORMS.iter().filter(|(.., result)| *result == Sort::Any || sort.takes(*result)).collect();
        let (form, sorts, result) = **fits.get(self.random.below(fits.len().max(1)))?;
        let last = if result == Sort::Any { sort } else { sorts[sorts.len() - 1] };
        let sorts = sorts[..sorts.len() - 1].iter().copied().chain([last]);
        let children: Vec<Tree> = sorts
            .map(|wanted| {
                let wanted = if wanted == Sort::Any && self.random.percent(70) { sort } else { wanted };
                self.operand(wanted, depth - 1)
            })
            .collect();
        Some(if is_loose(form) { Tree::loose(form, children) } else { Tree::new(form, children) })
    }

    fn binding(&mut self, sort: Sort, depth: usize) -> Option<Tree> {
        self.lets += 1;
        let name = format!("v{}", self.lets);
        let bound = *self.random.pick(&PLAIN);
        let (value, sample) = match self.reading(bound) {
            Some(reading) if self.random.percent(50) => (Tree::literal(reading.text), reading.sample),
            _ => (self.compose(bound, depth - 1), None),
        };
        let readings = match sample {
            Some(sample) => self.readings(name.clone(), sample, 0),
            None => vec![Reading { text: name.clone(), sort: bound, sample: None }],
        };
        let known = self.names.len();
        self.names.extend(readings);
        let body = self.compose(sort, depth - 1);
        self.names.truncate(known);
        Some(Tree::loose(&format!("let {name} = ~; ~"), [value, body]))
    }

    fn some_call(&mut self, sort: Sort, depth: usize) -> Option<Tree> {
        let functions = self.functions;
        let fits: Vec<&Function> = functions.iter().filter(|function| sort.takes(function.result)).collect();
        let function = *fits.get(self.random.below(fits.len().max(1)))?;
        // Within other expressions they are known differences, which would hide others.
        if RARE.contains(&&*function.name) && self.random.percent(95) {
            return None;
        }
        Some(self.call(function, depth))
    }

    fn call(&mut self, function: &Function, depth: usize) -> Tree {
        let mut count = function.least + self.random.below(function.parameters.len() + 1 - function.least);
        if function.many {
            count += self.random.below(3);
        }
        let predicate = function.parameters.contains(&Sort::Body);
        if self.random.percent(1) && !predicate {
            count += 1;
        }
        let mut arguments = Vec::new();
        let mut element = Reading { text: "#".to_owned(), sort: Sort::Any, sample: None };
        for index in 0..count {
            let last = function.parameters.last().copied().unwrap_or(Sort::Any);
            let sort = function.parameters.get(index).copied().unwrap_or(last);
            arguments.push(match sort {
                Sort::Body => self.body(&function.name, element.clone(), depth - 1),
                _ if index == 0 && predicate => self.collection(sort, &mut element, depth - 1),
                _ if matches!(&*function.name, "len") => {
                    let sort = *self.random.pick(&[Sort::Text, Sort::List, Sort::Map]);
                    self.compose(sort, depth - 1)
                }
                _ => self.compose(sort, depth - 1),
            });
        }
        let places = vec!["~"; count].join(", ");
        let name = &function.name;
        if let Some(base) = function.base {
            let base = self.compose(base, depth - 1).tight();
            return Tree::new(&format!("~.{name}({places})"), std::iter::once(base).chain(arguments));
        }
        match self.random.below(20) {
            0..3 if count > 0 => {
                let places = vec!["~"; count - 1].join(", ");
                let first = arguments.remove(0).tight();
                Tree::loose(&format!("~ | {name}({places})"), std::iter::once(first).chain(arguments))
            }
            3 => Tree::new(&format!("::{name}({places})"), arguments),
            _ => Tree::new(&format!("{name}({places})"), arguments),
        }
    }

    /// What a predicate runs over, and what its elements are then.
    fn collection(&mut self, sort: Sort, element: &mut Reading<'e>, depth: usize) -> Tree {
        let sort = if sort == Sort::List {
            *self.random.pick(&[Sort::Maps, Sort::Ints, Sort::Texts, Sort::List])
        } else {
            sort
        };
        element.sort = sort.element();
        match self.reading(sort) {
            Some(reading) if self.random.percent(60) => {
                if let Some(Value::Array(elements)) = reading.sample
                    && !elements.is_empty()
                {
                    let sample = self.random.pick(elements);
                    element.sort = Sort::of(sample);
                    element.sample = Some(sample);
                }
                Tree::literal(reading.text)
            }
            _ => self.compose(sort, depth),
        }
    }

    /// The body of a predicate.
    fn body(&mut self, function: &str, element: Reading<'e>, depth: usize) -> Tree {
        let mut pointers = match element.sample {
            Some(sample) => self.readings("#".to_owned(), sample, 0),
            None => vec![element.clone()],
        };
        if matches!(function, "map" | "reduce") || self.random.percent(2) {
            pointers.push(Reading { text: "#index".to_owned(), sort: Sort::Int, sample: None });
        }
        if function == "reduce" || self.random.percent(2) {
            pointers.push(Reading { text: "#acc".to_owned(), sort: Sort::Any, sample: None });
        }
        let outer = std::mem::replace(&mut self.pointers, pointers);
        let sort = match function {
            "map" | "reduce" => Sort::Any,
            "sum" => Sort::Number,
            "groupBy" => *self.random.pick(&[Sort::Text, Sort::Bool, Sort::Int]),
            "sortBy" => *self.random.pick(&[Sort::Text, Sort::Int, Sort::Number]),
            _ => Sort::Bool,
        };
        let body = self.compose(sort, depth);
        self.pointers = outer;
        if self.random.percent(15) { Tree::new("{~}", [body]) } else { body }
    }
}
