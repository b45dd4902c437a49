//! The tree of a parsed expression. Nodes lie in one vector and name each other by index, so that neither building nor
//! dropping a tree of ten thousand nodes recurses.
//!
//! A node can be named twice: `a < b < c` is `a < b && b < c` with one `b`, and `a ?: c` is `a ? a : c` with one `a`. A
//! walk meets it twice, too; the parser bounds how much there is to meet (`MAX_VISITS`) and how deep it is
//! (`MAX_NESTING`). Chains are as long as the source is: a walk goes down the left side of operators of one precedence,
//! and from a member to its base, in a loop.

/// A parsed expression. Text that needs no unescaping is borrowed from the source.
#[derive(Clone, Debug)]
pub(crate) struct Tree<'s> {
    pub(crate) nodes: Vec<Node<'s>>,
    pub(crate) root: Id,
}

/// The place of a node in its tree.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Id(pub(crate) u32);

/// A node and the place in the source that an error about it points at: the operator of an operation, the name of a
/// member, the callee of a call. It is what Go's expr-lang points at.
#[derive(Clone, Debug)]
pub(crate) struct Node<'s> {
    pub(crate) kind: Kind<'s>,
    /// A byte offset into the source.
    pub(crate) at: u32,
}

/// Text of a name or a literal: as written in the source, or unescaped.
pub(crate) type Text<'s> = std::borrow::Cow<'s, str>;

#[derive(Clone, Debug)]
pub(crate) enum Kind<'s> {
    Nil,
    Bool(bool),
    Integer(i64),
    Float(f64),
    Text(Text<'s>),
    Bytes(Vec<u8>),
    Array(Vec<Id>),
    /// Keys are text nodes, or any expression in parentheses.
    Map(Vec<(Id, Id)>),
    /// A name: a root, a variable, or `$env`.
    Identifier(&'s str),
    /// `#`, `#index`, `#acc`, and the `#` that `.name` begins with in a predicate. Empty for `#`.
    Pointer(&'s str),
    Unary(Unary, Id),
    Binary(Binary, Id, Id),
    /// The extent of an optional chain: what is skipped when a `?.` in it meets nil.
    Chain(Id),
    Member {
        base: Id,
        /// A text node for `.name`, any expression for `[…]`.
        property: Id,
        optional: bool,
        /// Whether it is called: `base.name(…)`.
        method: bool,
    },
    Slice {
        base: Id,
        from: Option<Id>,
        to: Option<Id>,
    },
    /// A call of a name or a member that is no builtin.
    Call {
        callee: Id,
        arguments: Vec<Argument<'s>>,
    },
    /// A call of a builtin function, by any of its forms: `len(x)`, `x | len()`, `::len(x)`.
    Builtin {
        name: &'s str,
        arguments: Vec<Id>,
    },
    /// The body that a builtin such as `any` runs for each element.
    Predicate(Id),
    /// `condition ? yes : no`, or `if condition { yes } else { no }`.
    Conditional {
        ternary: bool,
        condition: Id,
        yes: Id,
        no: Id,
    },
    /// `let name = value; body`.
    Let {
        name: &'s str,
        value: Id,
        body: Id,
    },
    Sequence(Vec<Id>),
}

/// An argument of a call. A name is an extension of ours: `list(ns, selector={…})`.
#[derive(Clone, Debug)]
pub(crate) struct Argument<'s> {
    pub(crate) name: Option<(&'s str, u32)>,
    pub(crate) value: Id,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Unary {
    /// `not` and `!`, which Go prints as they were written.
    Not {
        word: bool,
    },
    Minus,
    Plus,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Binary {
    /// `or` and `||`, which Go prints as they were written.
    Or {
        word: bool,
    },
    And {
        word: bool,
    },
    Equal,
    NotEqual,
    Less,
    Greater,
    LessOrEqual,
    GreaterOrEqual,
    In,
    Matches,
    Contains,
    StartsWith,
    EndsWith,
    Range,
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
    /// `**` and `^`, which Go prints as they were written.
    Power {
        caret: bool,
    },
    Coalesce,
}

impl<'s> Tree<'s> {
    pub(crate) fn node(&self, id: Id) -> &Node<'s> {
        &self.nodes[id.0 as usize]
    }

    pub(crate) fn kind(&self, id: Id) -> &Kind<'s> {
        &self.node(id).kind
    }

    /// The place of every node in characters: a node comes before its children, and these in the order in which they are
    /// written. By this list the tree is compared with Go's.
    pub(crate) fn places(&self, source: &str) -> Vec<usize> {
        let mut characters = vec![0; source.len() + 1];
        source.char_indices().enumerate().for_each(|(character, (at, _))| characters[at] = character);
        let mut places = Vec::new();
        let mut rest = vec![self.root];
        while let Some(id) = rest.pop() {
            let node = self.node(id);
            places.push(characters[node.at as usize]);
            let mark = rest.len();
            node.kind.each_child(|child| rest.push(child));
            rest[mark..].reverse();
        }
        places
    }

    /// Whether two trees say the same, wherever their nodes stand in a source.
    pub(crate) fn is_same(&self, other: &Tree<'_>) -> bool {
        let mut rest = vec![(self.root, other.root)];
        while let Some((one, another)) = rest.pop() {
            let (one, another) = (self.kind(one), other.kind(another));
            let (mut ours, mut theirs) = (Vec::new(), Vec::new());
            one.each_child(|child| ours.push(child));
            another.each_child(|child| theirs.push(child));
            if !one.is_like(another) || ours.len() != theirs.len() {
                return false;
            }
            rest.extend(ours.into_iter().zip(theirs));
        }
        true
    }
}

impl Kind<'_> {
    /// Whether two nodes are the same but for what they hold.
    fn is_like(&self, other: &Kind<'_>) -> bool {
        match (self, other) {
            (Self::Nil, Kind::Nil)
            | (Self::Array(_), Kind::Array(_))
            | (Self::Map(_), Kind::Map(_))
            | (Self::Chain(_), Kind::Chain(_))
            | (Self::Predicate(_), Kind::Predicate(_))
            | (Self::Sequence(_), Kind::Sequence(_)) => true,
            (Self::Bool(one), Kind::Bool(other)) => one == other,
            (Self::Integer(one), Kind::Integer(other)) => one == other,
            (Self::Float(one), Kind::Float(other)) => one.to_bits() == other.to_bits(),
            (Self::Text(one), Kind::Text(other)) => one == other,
            (Self::Bytes(one), Kind::Bytes(other)) => one == other,
            (Self::Identifier(one), Kind::Identifier(other)) | (Self::Pointer(one), Kind::Pointer(other)) => {
                one == other
            }
            (Self::Unary(one, _), Kind::Unary(other, _)) => one == other,
            (Self::Binary(one, ..), Kind::Binary(other, ..)) => one == other,
            (Self::Member { optional, method, .. }, Kind::Member { optional: skips, method: calls, .. }) => {
                (optional, method) == (skips, calls)
            }
            (Self::Slice { from, to, .. }, Kind::Slice { from: first, to: last, .. }) => {
                (from.is_some(), to.is_some()) == (first.is_some(), last.is_some())
            }
            (Self::Call { arguments: one, .. }, Kind::Call { arguments: other, .. }) => {
                let names = |arguments: &[Argument<'_>]| -> Vec<Option<String>> {
                    arguments.iter().map(|argument| argument.name.map(|(name, _)| name.to_owned())).collect()
                };
                names(one) == names(other)
            }
            (Self::Builtin { name: one, .. }, Kind::Builtin { name: other, .. }) => one == other,
            (Self::Let { name: one, .. }, Kind::Let { name: other, .. }) => one == other,
            (Self::Conditional { ternary: one, .. }, Kind::Conditional { ternary: other, .. }) => one == other,
            _ => false,
        }
    }

    /// Calls `visit` with what the node holds, in the order in which it is written.
    pub(crate) fn each_child(&self, mut visit: impl FnMut(Id)) {
        match self {
            Self::Nil
            | Self::Bool(_)
            | Self::Integer(_)
            | Self::Float(_)
            | Self::Text(_)
            | Self::Bytes(_)
            | Self::Identifier(_)
            | Self::Pointer(_) => {}
            Self::Unary(_, inner) | Self::Chain(inner) | Self::Predicate(inner) => visit(*inner),
            Self::Binary(_, left, right) => [*left, *right].into_iter().for_each(visit),
            Self::Member { base, property, .. } => [*base, *property].into_iter().for_each(visit),
            Self::Slice { base, from, to } => [Some(*base), *from, *to].into_iter().flatten().for_each(visit),
            Self::Call { callee, arguments } => {
                visit(*callee);
                arguments.iter().for_each(|argument| visit(argument.value));
            }
            Self::Array(elements) | Self::Sequence(elements) | Self::Builtin { arguments: elements, .. } => {
                elements.iter().copied().for_each(visit);
            }
            Self::Map(pairs) => pairs.iter().flat_map(|(key, value)| [*key, *value]).for_each(visit),
            Self::Conditional { condition, yes, no, .. } => [*condition, *yes, *no].into_iter().for_each(visit),
            Self::Let { value, body, .. } => [*value, *body].into_iter().for_each(visit),
        }
    }
}

impl Unary {
    /// As it is written.
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::Not { word: true } => "not",
            Self::Not { word: false } => "!",
            Self::Minus => "-",
            Self::Plus => "+",
        }
    }

    /// How tightly it binds, on the scale of [`Binary::precedence`].
    pub(crate) fn precedence(self) -> u16 {
        match self {
            Self::Not { .. } => 50,
            Self::Minus | Self::Plus => 90,
        }
    }
}

impl Binary {
    /// As it is written.
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::Or { word: true } => "or",
            Self::Or { word: false } => "||",
            Self::And { word: true } => "and",
            Self::And { word: false } => "&&",
            Self::Equal => "==",
            Self::NotEqual => "!=",
            Self::Less => "<",
            Self::Greater => ">",
            Self::LessOrEqual => "<=",
            Self::GreaterOrEqual => ">=",
            Self::In => "in",
            Self::Matches => "matches",
            Self::Contains => "contains",
            Self::StartsWith => "startsWith",
            Self::EndsWith => "endsWith",
            Self::Range => "..",
            Self::Add => "+",
            Self::Subtract => "-",
            Self::Multiply => "*",
            Self::Divide => "/",
            Self::Modulo => "%",
            Self::Power { caret: true } => "^",
            Self::Power { caret: false } => "**",
            Self::Coalesce => "??",
        }
    }

    /// How tightly it binds. The numbers are those of Go's expr-lang.
    pub(crate) fn precedence(self) -> u16 {
        match self {
            Self::Or { .. } => 10,
            Self::And { .. } => 15,
            Self::Equal
            | Self::NotEqual
            | Self::Less
            | Self::Greater
            | Self::LessOrEqual
            | Self::GreaterOrEqual
            | Self::In
            | Self::Matches
            | Self::Contains
            | Self::StartsWith
            | Self::EndsWith => 20,
            Self::Range => 25,
            Self::Add | Self::Subtract => 30,
            Self::Multiply | Self::Divide | Self::Modulo => 60,
            Self::Power { .. } => 100,
            Self::Coalesce => 500,
        }
    }

    /// Whether `a op b op c` is `a op (b op c)`.
    pub(crate) fn is_right_associative(self) -> bool {
        matches!(self, Self::Power { .. })
    }

    /// Whether it can stand in a chain such as `a < b <= c`.
    pub(crate) fn is_ordering(self) -> bool {
        matches!(self, Self::Less | Self::Greater | Self::LessOrEqual | Self::GreaterOrEqual)
    }

    /// Whether it is `and` or `or` in any spelling.
    pub(crate) fn is_boolean(self) -> bool {
        matches!(self, Self::And { .. } | Self::Or { .. })
    }
}
