//! An expression with habits of other languages, as it is written in this one. The tree is copied and its nodes are replaced, each
//! after those below it, so that habits within habits come out right too.

mod filled;

use super::{Members, Ours};
use crate::{
    ast::{Argument, Binary, Id, Kind, Node, Tree, Unary},
    print::written,
};

/// How much of an expression is shown. A message that is longer is not read.
pub(crate) const MAX_SHOWN: usize = 200;

/// What a method is called on, as far as it is known.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Receiver {
    Text,
    Map,
    Collection,
    Network,
    Unknown,
}

/// A part of an expression as it is written here. None if there is no habit in it that is known, or too much of it.
pub(crate) fn rewritten(tree: &Tree<'_>, id: Id, receiver: Receiver) -> Option<String> {
    let mut rewriter = Rewriter::new(tree);
    for index in 0..=id.0 {
        rewriter.node(Id(index), if index == id.0 { receiver } else { Receiver::Unknown });
    }
    let text = rewriter.changed.contains(&id).then(|| rewriter.shown(id)).flatten()?;
    // Beside other operators it needs its parentheses.
    let is_coalesce = matches!(rewriter.tree.kind(id), Kind::Binary(Binary::Coalesce, ..));
    Some(if is_coalesce { format!("({text})") } else { text })
}

/// A whole expression as it is written here. None if there is too much of it, or if fewer variables of predicates than those that
/// are known could be done without.
pub(crate) fn written_here(tree: &Tree<'_>, variables: usize) -> Option<String> {
    let mut rewriter = Rewriter::new(tree);
    for index in 0..tree.nodes.len() as u32 {
        rewriter.node(Id(index), Receiver::Unknown);
    }
    if rewriter.variables < variables { None } else { rewriter.shown(tree.root) }
}

/// A predicate whose element has a name, without it: of the list, the name and the body. None if there is too much of it.
pub(crate) fn without_variable<'s>(tree: &Tree<'s>, name: &'s str, operands: [Id; 3]) -> Option<String> {
    let mut rewriter = Rewriter::new(tree);
    let [list, variable, body] = operands;
    let body = inside(tree, body);
    let kind = rewriter.with_variable(name, &[list, variable, body])?;
    let id = rewriter.push(kind);
    rewriter.shown(id)
}

/// A predicate whose element gets a name, which stands in place of an element further in. None if there is too much of it.
pub(crate) fn with_outer<'s>(tree: &Tree<'s>, name: &'s str, predicate: Id, element: Id) -> Option<String> {
    let Kind::Builtin { arguments, .. } = tree.kind(predicate) else { return None };
    let is_body = |id: &&Id| matches!(tree.kind(**id), Kind::Predicate(_));
    let place = *arguments.iter().find(is_body)?;
    let mut rewriter = Rewriter::new(tree);
    rewriter.tree.nodes[element.0 as usize].kind = Kind::Identifier(name);
    let value = rewriter.push(Kind::Pointer(""));
    let body = rewriter.push(Kind::Let { name, value, body: inside(tree, place) });
    rewriter.tree.nodes[place.0 as usize].kind = Kind::Predicate(body);
    rewriter.shown(predicate)
}

/// A predicate over a map, as one over its keys: `.key` is the element, and `.value` what the map has for it. None if there is too
/// much of it.
pub(crate) fn over_keys<'s>(tree: &Tree<'s>, name: &'s str, map: Id, body: Id) -> Option<String> {
    let mut rewriter = Rewriter::new(tree);
    if written(tree, map).len() > MAX_SHOWN {
        return None;
    }
    let body = inside(tree, body);
    let mut rest = vec![body];
    while let Some(id) = rest.pop() {
        if rewriter.tree.nodes.len() > tree.nodes.len() + MAX_SHOWN {
            return None;
        }
        let part = match tree.kind(id) {
            Kind::Pointer(part) => *part,
            Kind::Member { base, property, .. } => match (tree.kind(*base), tree.kind(*property)) {
                (Kind::Pointer(""), Kind::Text(part)) => part.as_ref(),
                _ => "",
            },
            _ => "",
        };
        let replaced = match part {
            "key" => Kind::Pointer(""),
            "value" => {
                let property = rewriter.push(Kind::Pointer(""));
                Kind::Member { base: map, property, optional: false, method: false }
            }
            _ => {
                // What `#` is in a predicate further in is another element.
                let is_further_in = matches!(tree.kind(id), Kind::Predicate(_));
                tree.kind(id).each_child(|child| rest.extend((!is_further_in).then_some(child)));
                continue;
            }
        };
        rewriter.tree.nodes[id.0 as usize].kind = replaced;
    }
    let keys = rewriter.push(Kind::Builtin { name: "keys", arguments: vec![map] });
    let kind = rewriter.predicate(name, keys, body);
    let id = rewriter.push(kind);
    rewriter.shown(id)
}

/// The body of a predicate.
fn inside(tree: &Tree<'_>, body: Id) -> Id {
    match tree.kind(body) {
        Kind::Predicate(inner) => *inner,
        _ => body,
    }
}

struct Rewriter<'s> {
    tree: Tree<'s>,
    /// What has become `x != nil`, so that a `!` before it can go.
    presences: Vec<Id>,
    /// What has become `x < y`, and was -1, 0 or 1.
    compared: Vec<Id>,
    changed: Vec<Id>,
    /// How many variables of predicates are gone.
    variables: usize,
}

impl<'s> Rewriter<'s> {
    fn new(tree: &Tree<'s>) -> Self {
        Self { tree: tree.clone(), presences: Vec::new(), compared: Vec::new(), changed: Vec::new(), variables: 0 }
    }

    fn shown(&self, id: Id) -> Option<String> {
        let text = written(&self.tree, id);
        (text.chars().count() <= MAX_SHOWN).then_some(text)
    }

    fn node(&mut self, id: Id, receiver: Receiver) {
        let replaced = match self.tree.kind(id) {
            Kind::Identifier(name) => super::value(name).map(Kind::Identifier),
            Kind::Unary(Unary::Not { .. }, operand) => self.negated(*operand),
            Kind::Binary(Binary::Or { .. }, left, right) if self.is_default(*left, *right) => {
                Some(Kind::Binary(Binary::Coalesce, *left, *right))
            }
            // What is asked of each element of a list, of the list.
            Kind::Binary(Binary::Contains | Binary::Equal, list, part) if self.is_projection(*list, *part) => {
                Some(Kind::Binary(Binary::In, *part, *list))
            }
            Kind::Binary(operator, left, right) => self.ordered(*operator, *left, *right),
            Kind::Call { callee, arguments } if arguments.iter().all(|argument| argument.name.is_none()) => {
                self.called(id, *callee, arguments.clone(), receiver)
            }
            Kind::Member { base, property, method: false, .. } if matches!(self.tree.kind(*property), Kind::Text(name) if name == "length") => {
                Some(Kind::Builtin { name: "len", arguments: vec![*base] })
            }
            Kind::Builtin { name, arguments } if arguments.len() == 3 => {
                let (name, arguments) = (*name, arguments.clone());
                self.with_variable(name, &arguments)
            }
            _ => None,
        };
        if let Some(kind) = replaced {
            self.tree.nodes[id.0 as usize].kind = kind;
            self.changed.push(id);
        }
    }

    /// `!has(x)`
    fn negated(&self, operand: Id) -> Option<Kind<'s>> {
        match self.tree.kind(operand) {
            Kind::Binary(Binary::NotEqual, left, right) if self.presences.contains(&operand) => {
                Some(Kind::Binary(Binary::Equal, *left, *right))
            }
            _ => None,
        }
    }

    /// `x.compareTo(y) < 0`
    fn ordered(&self, operator: Binary, left: Id, right: Id) -> Option<Kind<'s>> {
        let Kind::Binary(_, one, other) = self.tree.kind(left) else { return None };
        let number = match self.tree.kind(right) {
            Kind::Integer(number) => *number,
            Kind::Unary(Unary::Minus, operand) => match self.tree.kind(*operand) {
                Kind::Integer(number) => -number,
                _ => return None,
            },
            _ => return None,
        };
        let holds = |order: i64| match operator {
            Binary::Equal => order == number,
            Binary::NotEqual => order != number,
            Binary::Less => order < number,
            Binary::LessOrEqual => order <= number,
            Binary::Greater => order > number,
            Binary::GreaterOrEqual => order >= number,
            _ => false,
        };
        let meant = match (holds(-1), holds(0), holds(1)) {
            (true, false, false) => Binary::Less,
            (true, true, false) => Binary::LessOrEqual,
            (false, true, false) => Binary::Equal,
            (false, true, true) => Binary::GreaterOrEqual,
            (false, false, true) => Binary::Greater,
            (true, false, true) => Binary::NotEqual,
            _ => return None,
        };
        self.compared.contains(&left).then_some(Kind::Binary(meant, *one, *other))
    }

    fn called(&mut self, id: Id, callee: Id, arguments: Vec<Argument<'s>>, receiver: Receiver) -> Option<Kind<'s>> {
        let mut operands: Vec<Id> = arguments.iter().map(|argument| argument.value).collect();
        let ours = match self.tree.kind(callee) {
            Kind::Identifier(name) => super::function(name)?,
            Kind::Member { base, property, .. } => {
                let (base, Kind::Text(name)) = (*base, self.tree.kind(*property)) else { return None };
                let function = match self.tree.kind(base) {
                    Kind::Identifier(owner) => super::function_of(owner, name, operands.len()),
                    _ => None,
                };
                match function {
                    Some(ours) => ours,
                    None => {
                        let ours = super::method(name, operands.len())?;
                        operands.insert(0, base);
                        ours
                    }
                }
            }
            _ => return None,
        };
        self.said(id, ours, &operands, receiver)
    }

    fn said(&mut self, id: Id, ours: Ours, operands: &[Id], receiver: Receiver) -> Option<Kind<'s>> {
        Some(match (ours, operands) {
            (Ours::Predicate(name), [map, key, value, body]) if receiver != Receiver::Collection => {
                return self.with_pair(name, *map, [*key, *value], *body);
            }
            (Ours::Predicate(_), [map, rest @ ..]) if receiver == Receiver::Map => {
                // Elsewhere the elements of a map are its keys.
                let keys = self.push(Kind::Builtin { name: "keys", arguments: vec![*map] });
                let operands: Vec<Id> = [&[keys], rest].concat();
                return self.said(id, ours, &operands, Receiver::Collection);
            }
            // `exists(x)` asks whether something is there.
            (Ours::Predicate("any"), [operand]) => {
                self.presences.push(id);
                Kind::Binary(Binary::NotEqual, *operand, self.push(Kind::Nil))
            }
            (Ours::ElementOr, [base, key, default]) => {
                // Rego has a list for a field of a field.
                let keys = match self.tree.kind(*key) {
                    Kind::Array(keys) if !keys.is_empty() => keys.clone(),
                    _ => vec![*key],
                };
                let element = keys.into_iter().fold(*base, |base, property| {
                    self.push(Kind::Member { base, property, optional: false, method: false })
                });
                let is_nothing = match self.tree.kind(*default) {
                    // What is missing has every field and no element.
                    Kind::Map(pairs) => pairs.is_empty(),
                    Kind::Array(elements) => elements.is_empty(),
                    kind => matches!(kind, Kind::Nil | Kind::Identifier("nil")),
                };
                match is_nothing {
                    true => self.tree.kind(element).clone(),
                    false => Kind::Binary(Binary::Coalesce, element, *default),
                }
            }
            (Ours::Predicate(name), [_, _, _]) => return self.with_variable(name, operands),
            (Ours::Predicate(name), [list, body]) => self.predicate(name, *list, *body),
            (Ours::Builtin(name @ "now"), _) => Kind::Builtin { name, arguments: Vec::new() },
            (Ours::Builtin(name), [_, ..]) => Kind::Builtin { name, arguments: operands.into() },
            (Ours::Operator(operator), [left, right]) => Kind::Binary(operator, *left, *right),
            (Ours::Flipped(operator), [right, left]) => Kind::Binary(operator, *left, *right),
            (Ours::Holds, [whole, part]) if let Some(kind) = self.held_by_some(*whole, *part) => kind,
            (Ours::Holds, [whole, part]) => match receiver {
                Receiver::Collection | Receiver::Map | Receiver::Network => Kind::Binary(Binary::In, *part, *whole),
                Receiver::Unknown if self.is_list(*whole) => Kind::Binary(Binary::In, *part, *whole),
                Receiver::Text | Receiver::Unknown => Kind::Binary(Binary::Contains, *whole, *part),
            },
            (Ours::Present, [map, key]) => Kind::Binary(Binary::In, *key, *map),
            (Ours::Present, [operand]) => {
                self.presences.push(id);
                Kind::Binary(Binary::NotEqual, *operand, self.push(Kind::Nil))
            }
            (Ours::Absent, [operand]) => Kind::Binary(Binary::Equal, *operand, self.push(Kind::Nil)),
            (Ours::Empty, [operand]) => {
                let length = self.push(Kind::Builtin { name: "len", arguments: vec![*operand] });
                Kind::Binary(Binary::Equal, length, self.push(Kind::Integer(0)))
            }
            (Ours::Slice, [base, from]) => Kind::Slice { base: *base, from: Some(*from), to: None },
            (Ours::Slice, [base, from, to]) => Kind::Slice { base: *base, from: Some(*from), to: Some(*to) },
            (Ours::Element, [base, index]) => {
                Kind::Member { base: *base, property: *index, optional: false, method: false }
            }
            (Ours::Itself, [operand]) => self.tree.kind(*operand).clone(),
            (Ours::Arranged(name, places), operands) => {
                let arguments =
                    places.iter().map(|place| operands.get(*place).copied()).collect::<Option<Vec<Id>>>()?;
                Kind::Builtin { name, arguments }
            }
            (Ours::Between((left, one), operator, (right, other)), [_, _]) => {
                Kind::Binary(operator, self.around(left, operands[one]), self.around(right, operands[other]))
            }
            (Ours::Compared(function), [left, right]) => {
                self.compared.push(id);
                Kind::Binary(Binary::Less, self.around(function, *left), self.around(function, *right))
            }
            (Ours::Members(Members { predicate, are_absent, of, whole }), [_, _]) => {
                let element = self.push(Kind::Pointer(""));
                let mut body = self.push(Kind::Binary(Binary::In, element, operands[whole]));
                if are_absent {
                    body = self.push(Kind::Unary(Unary::Not { word: true }, body));
                }
                self.predicate(predicate, operands[of], body)
            }
            (Ours::AnyOf(operator), [text, texts]) => {
                let element = self.push(Kind::Pointer(""));
                let body = self.push(Kind::Binary(operator, *text, element));
                self.predicate("any", *texts, body)
            }
            (Ours::IsOf(name), [operand]) => {
                let kind = self.push(Kind::Builtin { name: "type", arguments: vec![*operand] });
                Kind::Binary(Binary::Equal, kind, self.push(Kind::Text(name.into())))
            }
            (Ours::Within(networks), [operand]) => {
                let texts = networks.iter().map(|network| self.push(Kind::Text((*network).into()))).collect();
                let list = self.push(Kind::Array(texts));
                Kind::Binary(Binary::In, *operand, self.around("cidr", list))
            }
            (Ours::Filled, [format, values @ ..]) => return self.filled(*format, values),
            (Ours::Bound, [name, value, body]) => match self.tree.kind(*name) {
                Kind::Identifier(name) => Kind::Let { name, value: *value, body: *body },
                _ => return None,
            },
            _ => return None,
        })
    }

    /// An argument with a function around it.
    fn around(&mut self, function: &'static str, argument: Id) -> Id {
        match function {
            "" => argument,
            name => self.push(Kind::Builtin { name, arguments: vec![argument] }),
        }
    }

    /// Whether `x || y` says what to take where `x` is missing: `y` is neither true nor false.
    fn is_default(&self, value: Id, default: Id) -> bool {
        let is_condition = matches!(self.tree.kind(value), Kind::Binary(..) | Kind::Unary(..));
        match self.tree.kind(default) {
            _ if is_condition => false,
            Kind::Array(elements) => elements.is_empty(),
            Kind::Map(pairs) => pairs.is_empty(),
            kind => matches!(kind, Kind::Text(_) | Kind::Integer(_)),
        }
    }

    /// Whether something is compared with a list of fields of elements, and can only be one of them.
    fn is_projection(&self, list: Id, part: Id) -> bool {
        matches!(self.tree.kind(list), Kind::Builtin { name: "map", .. })
            && matches!(self.tree.kind(part), Kind::Text(_) | Kind::Integer(_))
    }

    /// Whether something is a list or a network by how it is written.
    fn is_list(&self, id: Id) -> bool {
        match self.tree.kind(id) {
            Kind::Array(_) => true,
            Kind::Call { callee, .. } => matches!(self.tree.kind(*callee), Kind::Identifier("cidr")),
            Kind::Builtin { name, .. } => {
                matches!(*name, "map" | "filter" | "flatten" | "split" | "keys" | "values" | "sort" | "uniq")
            }
            _ => false,
        }
    }

    /// Whether some list of a list of lists holds something: `flatten(map(list, .names))`.
    fn held_by_some(&mut self, whole: Id, part: Id) -> Option<Kind<'s>> {
        let Kind::Builtin { name: "flatten", arguments } = self.tree.kind(whole) else { return None };
        let Kind::Builtin { name: "map", arguments } = self.tree.kind(*arguments.first()?) else { return None };
        let [list, body] = arguments[..] else { return None };
        // Something else would be another element in there.
        if !matches!(self.tree.kind(part), Kind::Text(_) | Kind::Integer(_)) {
            return None;
        }
        let holder = inside(&self.tree, body);
        let held = self.push(Kind::Binary(Binary::In, part, holder));
        Some(self.predicate("any", list, held))
    }

    fn predicate(&mut self, name: &'s str, list: Id, body: Id) -> Kind<'s> {
        let body = self.push(Kind::Predicate(body));
        Kind::Builtin { name, arguments: vec![list, body] }
    }

    /// `any(list, c, c.name == "x")`, where `c` is the element.
    fn with_variable(&mut self, name: &'s str, operands: &[Id]) -> Option<Kind<'s>> {
        let [list, variable, body] = operands else { return None };
        let variable = match self.tree.kind(*variable) {
            Kind::Identifier(variable) => variable,
            Kind::Predicate(inner) => match self.tree.kind(*inner) {
                Kind::Identifier(variable) => variable,
                _ => return None,
            },
            _ => return None,
        };
        let variable: &'s str = variable;
        let mut uses = Vec::new();
        let mut is_used_further_in = false;
        let mut rest = vec![(*body, false)];
        while let Some((id, is_further_in)) = rest.pop() {
            match self.tree.kind(id) {
                Kind::Identifier(name) if *name == variable => {
                    uses.push(id);
                    is_used_further_in |= is_further_in;
                }
                // What `#` is in there is another element.
                Kind::Predicate(inner) => rest.push((*inner, true)),
                kind => kind.each_child(|child| rest.push((child, is_further_in))),
            }
        }
        let mut body = *body;
        if is_used_further_in {
            let value = self.push(Kind::Pointer(""));
            body = self.push(Kind::Let { name: variable, value, body });
        } else {
            for id in uses {
                self.tree.nodes[id.0 as usize].kind = Kind::Pointer("");
            }
        }
        self.variables += 1;
        let body = self.push(Kind::Predicate(body));
        Some(Kind::Builtin { name, arguments: vec![*list, body] })
    }

    /// `map.any(k, v, k == "x" && v == "y")`, where `k` is the key and `v` what the map has for it.
    fn with_pair(&mut self, name: &'s str, map: Id, pair: [Id; 2], body: Id) -> Option<Kind<'s>> {
        let [Kind::Identifier(key), Kind::Identifier(value)] = pair.map(|id| self.tree.kind(id).clone()) else {
            return None;
        };
        let mut rest = vec![body];
        while let Some(id) = rest.pop() {
            match self.tree.kind(id).clone() {
                Kind::Identifier(used) if used == key => self.tree.nodes[id.0 as usize].kind = Kind::Pointer(""),
                Kind::Identifier(used) if used == value => {
                    let property = self.push(Kind::Pointer(""));
                    let member = Kind::Member { base: map, property, optional: false, method: false };
                    self.tree.nodes[id.0 as usize].kind = member;
                }
                // What `#` is in there is another element.
                Kind::Predicate(_) => return None,
                kind => kind.each_child(|child| rest.push(child)),
            }
        }
        self.variables += 1;
        let keys = self.push(Kind::Builtin { name: "keys", arguments: vec![map] });
        Some(self.predicate(name, keys, body))
    }

    fn push(&mut self, kind: Kind<'s>) -> Id {
        let id = Id(self.tree.nodes.len() as u32);
        self.tree.nodes.push(Node { kind, at: 0 });
        id
    }
}
