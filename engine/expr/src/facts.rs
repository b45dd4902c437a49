//! What is known about a program before it runs: what it reads, and what it asks the host for.

use crate::schema::{ComputedId, Slot};

/// What a program reads and calls. Complete: nothing that an evaluation does is missing here, but for `$env`, which only
/// strict programs have.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Facts {
    /// What is read, in order and without parts of what else is read.
    pub reads: Vec<Read>,
    /// The arguments of each call of the host, in the order of the program's call sites.
    pub calls: Vec<Vec<ArgumentShape>>,
    /// The arguments of each call that may be nil, although they are given.
    pub doubtful: Vec<Vec<usize>>,
    /// What the expression is true for because it is missing.
    pub absences: Vec<Absence>,
    /// The calls that the expression is true for because they find nothing, where what they are to find may be missing.
    pub unfound: Vec<Unfound>,
    /// What is read although something else counts where it is missing, which is not read.
    pub substituted: Vec<Substituted>,
    /// Where the time is asked for first, by line and column: the answer depends on when it is asked for.
    pub now: Option<(u32, u32)>,
}

/// A comparison of a text that has computed fields, or of one of these fields, with texts of the expression.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Compared {
    /// The field. None for the text that has the fields.
    pub field: Option<ComputedId>,
    /// What is compared, as it is written.
    pub subject: String,
    /// How it is compared.
    pub relation: Relation,
    /// Whether the opposite is asked: `!=`, `not in`, `not startsWith`.
    pub is_negated: bool,
    /// The texts of the expression: one, or those of a list.
    pub texts: Vec<Box<str>>,
    /// Whether what is compared may be missing, and nobody asks.
    pub may_be_nil: bool,
    /// The place of the operator in the expression, in bytes.
    pub at: u32,
}

/// How a text is compared with texts of the expression.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Relation {
    /// `==` and `!=`
    Equal,
    /// `in`
    In,
    /// `startsWith`
    StartsWith,
    /// A call of `split`, by this text.
    Split,
    /// Any other operator.
    Other,
}

/// A part of a root that an expression asks to be missing, and is true then, as far as anything is asked of that root.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Absence {
    /// The name of the root.
    pub root: String,
    /// The way down from the root.
    pub fields: Vec<String>,
    /// The line of the last field, from 1.
    pub line: u32,
    /// The column of the last field, from 1.
    pub column: u32,
}

/// A condition that is true because a call finds nothing, where an argument of the call may be missing.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Unfound {
    /// The number of the call.
    pub site: usize,
    /// The parameter that may be missing.
    pub argument: usize,
    /// What is given for it, as it is written.
    pub subject: String,
    /// The condition, as it is written.
    pub condition: String,
    /// The line of what is given, from 1.
    pub line: u32,
    /// The column of what is given, from 1.
    pub column: u32,
}

/// Something that is read, and what counts in its place where it is missing.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Substituted {
    /// What is read, as it is written.
    pub subject: String,
    /// What counts in its place, as it would be written.
    pub instead: String,
    /// Whether that is further out, and not beside it.
    pub is_outside: bool,
    /// The line of what is read, from 1.
    pub line: u32,
    /// The column of what is read, from 1.
    pub column: u32,
}

/// A part of a root that is read, with everything below it.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Read {
    /// The root.
    pub root: Slot,
    /// The way down from the root. Empty: all of it.
    pub path: Vec<Segment>,
}

/// One step down.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Segment {
    /// The field of this name.
    Field(String),
    /// Every element of a list. How many there are is read too.
    Each,
}

/// What is known of an argument.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum ArgumentShape {
    /// Text that is written in the expression.
    Text(String),
    /// Any other constant.
    Constant,
    /// A map that is written in the expression.
    Map,
    /// A part of a root.
    Path(Read),
    /// The argument was left out.
    Missing,
    /// Only an evaluation knows.
    Dynamic,
}

impl Facts {
    /// Adds a read, unless it is known; drops what it includes.
    pub(crate) fn read(&mut self, read: Read) {
        let includes = |one: &Read, other: &Read| one.root == other.root && other.path.starts_with(&one.path);
        if self.reads.iter().any(|known| includes(known, &read)) {
            return;
        }
        self.reads.retain(|known| !includes(&read, known));
        self.reads.push(read);
    }

    /// Puts the reads in order, so that equal programs have equal facts.
    pub(crate) fn finish(&mut self) {
        self.reads.sort();
    }

    /// Whether any part of a root is read.
    pub fn reads_root(&self, root: Slot) -> bool {
        self.reads.iter().any(|read| read.root == root)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(path: &[&str]) -> Read {
        let segment = |name: &&str| if *name == "*" { Segment::Each } else { Segment::Field((*name).to_owned()) };
        Read { root: Slot(0), path: path.iter().map(segment).collect() }
    }

    #[test]
    fn a_part_of_what_is_read_is_not_read_again() {
        let mut facts = Facts::default();
        for path in [
            &["spec", "containers", "*", "image"][..],
            &["spec", "hostNetwork"],
            &["spec", "containers"],
            &["spec", "containers", "*", "name"],
        ] {
            facts.read(read(path));
        }
        facts.finish();
        assert_eq!(facts.reads, [read(&["spec", "containers"]), read(&["spec", "hostNetwork"])]);
    }
}
