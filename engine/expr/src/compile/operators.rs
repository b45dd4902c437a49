//! Operators: whether their operands can fit, and the operation for them.

mod arithmetic;
mod relation;

use super::{Compiler, Typed, known::Known};
use crate::{
    ast::{Binary, Id, Kind as Syntax, Unary},
    error::Error,
    limits::MAX_NESTING,
    program::{Connected, Constant, Kind, Op},
    types::Type,
};

/// Operators that stand beside each other without parentheses, from left to right.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Class {
    Or,
    And,
    Relation,
    Range,
    Sum,
    Product,
    Power,
    Coalesce,
}

/// An operator, its place, and its right operand.
type Link = (Binary, u32, Id);

impl<'s> Compiler<'s> {
    pub(super) fn unary(&mut self, at: u32, operator: Unary, operand: Id) -> Result<Typed<'s>, Error> {
        let operand_id = operand;
        // The `not` of `x not in y` has the place of the operator behind it.
        let is_of_operator = matches!(operator, Unary::Not { .. }) && at == self.at(operand);
        self.negated.extend(is_of_operator.then_some(at));
        let operand = self.value(operand)?;
        if is_of_operator {
            self.negated.pop();
        }
        if operator == Unary::Minus {
            self.refuse_either_number(operand_id, &operand, |number| format!("-{number}"))?;
            self.require(operand_id, &operand, "0", |operand| format!("-({operand})"))?;
        }
        if matches!(operator, Unary::Not { .. }) {
            self.refuse_either_truth(operand_id, &operand, false)?;
            self.warn_of_truth(operand_id, &operand, false);
        }
        let kind = operand.known.kind;
        let (fits, result) = match operator {
            Unary::Not { .. } => (operand.known.may_be(Type::BOOL), Type::BOOL),
            Unary::Minus | Unary::Plus if kind.is_unknown() => (true, Type::UNKNOWN),
            Unary::Minus | Unary::Plus => (kind.is_number(), kind),
        };
        let name = match operator {
            Unary::Not { word: true } => "not",
            Unary::Not { word: false } => "!",
            Unary::Minus => "-",
            Unary::Plus => "+",
        };
        if !fits {
            self.refuse_hidden(operand_id, &operand)?;
            let is_not = matches!(operator, Unary::Not { .. }) && !self.strict;
            let hint = is_not.then(|| self.truth_of(operand_id, kind, false)).flatten().unwrap_or_default();
            return Err(self.error(at, format!("`{name}` does not work with {kind}{hint}")));
        }
        let op = match operator {
            Unary::Not { .. } => Op { kind: Kind::Not(operand.op.into()), at },
            Unary::Minus => Op { kind: Kind::Negate(operand.op.into()), at },
            Unary::Plus => operand.op,
        };
        Ok(Typed { op, known: Known::of(result) })
    }

    /// A chain of operators of one class is compiled without recursion, however long it is.
    pub(super) fn binary(&mut self, id: Id) -> Result<Typed<'s>, Error> {
        let tree = self.tree;
        self.refuse_compared_habit(id)?;
        let Syntax::Binary(operator, ..) = tree.kind(id) else { unreachable!("the caller saw a binary operator") };
        let class = class_of(*operator);
        let mut links: Vec<Link> = Vec::new();
        let mut first = id;
        while let Syntax::Binary(operator, left, right) = tree.kind(first) {
            let joins = class_of(*operator) == class && (class != Class::Power || links.is_empty());
            if !joins {
                break;
            }
            links.push((*operator, self.at(first), *right));
            first = *left;
        }
        links.reverse();
        match class {
            Class::Or | Class::And => self.connected(id, first, &links, class),
            Class::Sum | Class::Product | Class::Power => self.arithmetic(first, &links),
            Class::Relation | Class::Range | Class::Coalesce => self.nested(first, &links),
        }
    }

    #[inline(never)]
    fn connected(&mut self, id: Id, first: Id, links: &[Link], class: Class) -> Result<Typed<'s>, Error> {
        let mark = self.present.len();
        let all: Vec<Id> = std::iter::once(first).chain(links.iter().map(|(.., right)| *right)).collect();
        self.refuse_contradiction(&all, class == Class::And)?;
        let asked = self.asked.len();
        self.note_asked(&all);
        let left = self.value(first)?;
        if left.known.kind == Type::TEXT {
            self.refuse_hidden(first, &left)?;
        }
        self.refuse_either_truth(first, &left, true)?;
        self.warn_of_truth(first, &left, true);
        let mut known = left.known;
        let mut operands = vec![left.op];
        let mut left_id = first;
        for (operator, at, right_id) in links {
            // The next operand is looked at only if this one did not decide.
            self.suppose(left_id, class == Class::And);
            let right = self.value(*right_id)?;
            self.refuse_either_truth(*right_id, &right, true)?;
            self.warn_of_truth(*right_id, &right, true);
            let fits = known.kind == Type::BOOL && right.known.kind == Type::BOOL
                || known.kind.may_fit(right.known.kind, |kind| kind == Type::BOOL);
            if !fits {
                self.refuse_hidden(*right_id, &right)?;
                return Err(self.mismatch(*at, *operator, (left_id, &known), (*right_id, &right.known)));
            }
            known = Known::of(Type::BOOL);
            operands.push(right.op);
            left_id = *right_id;
        }
        self.present.truncate(mark);
        self.asked.truncate(asked);
        self.warn_of_hidden_by_outside(id, &all, class == Class::And);
        let operators = links.iter().map(|(_, at, _)| *at).collect();
        let connected = Connected { operands: operands.into(), operators };
        let at = links[links.len() - 1].1;
        let kind = if class == Class::Or { Kind::Or(connected) } else { Kind::And(connected) };
        Ok(Typed { op: Op { kind, at }, known })
    }

    /// Operators whose operations lie within each other. Nobody chains many of these.
    #[inline(never)]
    fn nested(&mut self, first: Id, links: &[Link]) -> Result<Typed<'s>, Error> {
        if let Some((_, at, _)) = links.get(MAX_NESTING) {
            return Err(self.error(*at, format!("nested too deeply: at most {MAX_NESTING} of these can be chained")));
        }
        let (first_operator, first_at, second) = links[0];
        self.refuse_early_not(first, first_operator, first_at, second)?;
        let mut left_id = first;
        let mut left = self.value(first)?;
        for (operator, at, right_id) in links {
            self.refuse_unquoted_text(*operator, left.known.kind, *right_id)?;
            let right = self.value(*right_id)?;
            left = self.related(*at, *operator, (left_id, left), (*right_id, right))?;
            left_id = *right_id;
        }
        Ok(left)
    }

    /// Two values and what relates them. Apart from the operands, which may be relations themselves: its checks would take much of the
    /// stack at every level.
    #[inline(never)]
    fn related(
        &mut self,
        at: u32,
        operator: Binary,
        (left_id, left): (Id, Typed<'s>),
        (right_id, right): (Id, Typed<'s>),
    ) -> Result<Typed<'s>, Error> {
        let told = self.warnings.len();
        self.warn_of_other_sort(at, operator, left_id, right_id);
        let is_told = self.warnings.len() > told;
        self.warn_of_placeholder(left_id);
        self.warn_of_placeholder(right_id);
        let (left, right) = self.without_defaults(operator, (left_id, left), (right_id, right));
        let (left, right) = self.without_empty(operator, left, right);
        match operator {
            Binary::Coalesce => return Ok(self.coalesce(at, left, right)),
            Binary::Equal | Binary::NotEqual if self.is_emptiness((left_id, &left), (right_id, &right)) => {
                return Ok(self.emptiness(at, operator, (left_id, left), (right_id, right)));
            }
            _ => {}
        }
        self.refuse_hidden_operands(operator, (left_id, &left), (right_id, &right))?;
        if operator == Binary::Range {
            self.require(left_id, &left, "0", |left| format!("({left})..{}", self.shown(right_id)))?;
            self.require(right_id, &right, "0", |right| format!("{}..({right})", self.shown(left_id)))?;
        }
        self.refuse_either(operator, (left_id, &left), (right_id, &right))?;
        self.refuse_either_subject(at, operator, (left_id, &left), right_id)?;
        self.refuse_quoted_number(operator, (left_id, &left), (right_id, &right))?;
        self.require_order(operator, (left_id, &left), (right_id, &right))?;
        self.check_words(operator, (left_id, &left), (right_id, &right))?;
        self.require_text(at, operator, (left_id, &left), (right_id, &right))?;
        self.require_number(operator, (left_id, &left), (right_id, &right))?;
        self.check_pattern(at, operator, (left_id, &left), (right_id, &right))?;
        self.note_compared(at, operator, (left_id, &left), (right_id, &right));
        if matches!(operator, Binary::Equal | Binary::NotEqual | Binary::In) {
            self.warn_of_spelling(at, (left_id, &left), (right_id, &right));
        }
        let (left, right) = self.read_alike(operator, (left_id, left), (right_id, right))?;
        if operator == Binary::In && !is_told {
            self.warn_of_no_address(at, (left_id, &left), (right_id, &right));
        }
        self.warn_of_default(operator, (left_id, &left), (right_id, &right));
        self.warn_of_truth_default(operator, (left_id, &left), (right_id, &right));
        self.warn_of_word_default(at, operator, (left_id, &left), (right_id, &right));
        self.warn_of_either(at, operator, (left_id, &left), (right_id, &right));
        self.warn_of_other_field(operator, (left_id, &left), (right_id, &right));
        self.warn_of_everything(at, operator, (left_id, &left), (right_id, &right));
        self.warn_of_all_addresses(at, operator, left_id, right_id);
        self.warn_of_unbounded(operator, (left_id, &left), (right_id, &right));
        self.warn_of_letters(at, operator, (left_id, &left), (right_id, &right));
        if !self.warn_of_equal_labels(at, operator, (left_id, &left), (right_id, &right)) {
            self.warn_of_nothing_alike(at, operator, (left_id, &left), (right_id, &right));
        }
        self.warn_of_wildcard(at, operator, (left_id, &left), (right_id, &right));
        self.warn_of_reversal(at, operator, left_id, (right_id, &right));
        self.warn_of_loose_ends(at, operator, (left_id, &left), right_id);
        let is_equality = matches!(operator, Binary::Equal | Binary::NotEqual);
        if is_equality && left.known.maps_quantities() && right.known.maps_quantities() {
            // By value, as each of them is.
            let (left, right) = (by_value(left), by_value(right));
            return self.relation(at, operator, (left_id, left), (right_id, right));
        }
        self.relation(at, operator, (left_id, left), (right_id, right))
    }

    fn coalesce(&self, at: u32, first: Typed<'s>, second: Typed<'s>) -> Typed<'s> {
        let known = Known::coalesced(&first.known, &second.known);
        let known = self.formed(known, first.known.form.clone().or(second.known.form.clone()));
        let known = self.quantity_of_either(known, &first, &second);
        let of_empty = self.is_collection(&first.known);
        let kind = Kind::Coalesce { first: first.op.into(), second: second.op.into(), of_empty };
        Typed { op: Op { kind, at }, known }
    }

    /// Whether a value is known to be a list or a map, of which Kubernetes takes an empty one for a missing one.
    pub(super) fn is_collection(&self, known: &Known<'s>) -> bool {
        !self.strict && (known.kind.is_array() || known.kind.is_map() && known.kind.as_object().is_none())
    }

    /// Whether a list or a map is compared with `nil`, `[]` or `{}`.
    fn is_emptiness(&self, (left_id, left): (Id, &Typed<'s>), (right_id, right): (Id, &Typed<'s>)) -> bool {
        is_nothing(&right.op) && (self.is_collection(&left.known) || self.is_empty_object(left_id, left))
            || is_nothing(&left.op) && (self.is_collection(&right.known) || self.is_empty_object(right_id, right))
    }

    /// Whether an object is a field of which Kubernetes takes an empty one for a missing one.
    fn is_empty_object(&self, id: Id, typed: &Typed<'s>) -> bool {
        let is_object = !self.strict && typed.known.kind.as_object().is_some();
        let Syntax::Member { base, .. } = self.tree.kind(id) else { return false };
        let (Some(name), Some(form)) = (self.last_name(id), self.form_of(*base).filter(|_| is_object)) else {
            return false;
        };
        let is_alike = |id| self.schema.is_empty_object(&self.schema.object(id).name, name);
        form.alternatives().iter().all(|form| form.object().is_some_and(is_alike))
    }

    fn emptiness(&mut self, at: u32, operator: Binary, left: (Id, Typed<'s>), right: (Id, Typed<'s>)) -> Typed<'s> {
        let (id, operand) = if is_nothing(&right.1.op) { left } else { right };
        self.warn_of_half_selector(at, operator, id);
        if self.is_collection(&operand.known) {
            self.empty_tests.push(id);
        }
        let kind = Kind::Empty { operand: operand.op.into(), negated: operator == Binary::NotEqual };
        Typed { op: Op { kind, at }, known: Known::of(Type::BOOL) }
    }

    fn mismatch(
        &self,
        at: u32,
        operator: Binary,
        (left_id, left): (Id, &Known<'s>),
        (right_id, right): (Id, &Known<'s>),
    ) -> Error {
        let (name, left, right) = (name_of(operator), left.kind, right.kind);
        let hint = match (left, right) {
            _ if self.strict => String::new(),
            (Type::NETWORK, Type::TEXT) if operator == Binary::Contains => {
                format!(": write `{} in {}`", self.shown(right_id), self.shown(left_id))
            }
            (Type::QUANTITY | Type::VERSION | Type::NETWORK, Type::TEXT) => {
                format!(": the text of a {left} is `string(…)`")
            }
            _ => self.hint_of_operands(operator, (left_id, left), (right_id, right)),
        };
        self.error(at, format!("`{name}` does not work between {left} and {right}{hint}"))
    }
}

fn class_of(operator: Binary) -> Class {
    match operator {
        Binary::Or { .. } => Class::Or,
        Binary::And { .. } => Class::And,
        Binary::Range => Class::Range,
        Binary::Add | Binary::Subtract => Class::Sum,
        Binary::Multiply | Binary::Divide | Binary::Modulo => Class::Product,
        Binary::Power { .. } => Class::Power,
        Binary::Coalesce => Class::Coalesce,
        _ => Class::Relation,
    }
}

/// Whether an operation is `nil`, `[]` or `{}`.
fn is_nothing(op: &Op) -> bool {
    match &op.kind {
        Kind::Constant(Constant::Nil) => true,
        Kind::Array(elements) => elements.is_empty(),
        Kind::Map(pairs) => pairs.is_empty(),
        _ => false,
    }
}

/// A map of amounts, as such.
fn by_value(operand: Typed<'_>) -> Typed<'_> {
    let at = operand.op.at;
    Typed { op: Op { kind: Kind::Quantity(operand.op.into()), at }, known: operand.known }
}

pub(super) fn name_of(operator: Binary) -> &'static str {
    match operator {
        Binary::Or { word: true } => "or",
        Binary::Or { word: false } => "||",
        Binary::And { word: true } => "and",
        Binary::And { word: false } => "&&",
        Binary::Equal => "==",
        Binary::NotEqual => "!=",
        Binary::Less => "<",
        Binary::Greater => ">",
        Binary::LessOrEqual => "<=",
        Binary::GreaterOrEqual => ">=",
        Binary::In => "in",
        Binary::Matches => "matches",
        Binary::Contains => "contains",
        Binary::StartsWith => "startsWith",
        Binary::EndsWith => "endsWith",
        Binary::Range => "..",
        Binary::Add => "+",
        Binary::Subtract => "-",
        Binary::Multiply => "*",
        Binary::Divide => "/",
        Binary::Modulo => "%",
        Binary::Power { caret: true } => "^",
        Binary::Power { caret: false } => "**",
        Binary::Coalesce => "??",
    }
}
