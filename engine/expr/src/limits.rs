//! How large an expression may be, and how much one evaluation may take.

/// The longest source that is compiled, in bytes.
pub const MAX_SOURCE: usize = 64 * 1024;

/// The largest tree, in nodes. The same as in Go's expr-lang.
pub const MAX_NODES: usize = 10_000;

/// The deepest nesting, in brackets and in levels of the tree. Chains of left-associative operators of one precedence and
/// of members do not nest.
pub const MAX_NESTING: usize = 100;

/// How many nodes a walk of the tree may meet. More than there are, because `a < b < c` and `a ?: c` meet one of theirs
/// twice, and nested in each other they would double the work with each level.
pub(crate) const MAX_VISITS: usize = 4 * MAX_NODES;

/// What one evaluation may take. Over a limit is an error that names it.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Steps: a step is a node visited, or a bounded piece of work inside a function.
    pub fuel: u64,
    /// Elements of lists and maps that are made. The same as in Go's expr-lang.
    pub elements: u64,
    /// Bytes of text, lists and maps that are made.
    pub bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { fuel: 1_000_000, elements: 1_000_000, bytes: 16 << 20 }
    }
}
