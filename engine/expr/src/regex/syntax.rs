//! The syntax of Go's `regexp`, read into a tree.

use regex_syntax::hir::{Dot, Hir, Look, Repetition};

use super::class::Set;

/// The longest pattern, in bytes.
const MAX_LENGTH: usize = 16 << 10;

/// Ranges of characters in all classes of a pattern. `\pL` has some seven hundred.
const MAX_RANGES: usize = 1 << 16;

/// How deep groups may lie in each other. Compiling takes stack for each.
const MAX_GROUPS: usize = 128;

/// How often anything may be repeated by numbers, all numbers around it multiplied.
const MAX_REPEAT: u32 = 1000;

/// `(?ims-U)`.
#[derive(Clone, Copy, Default)]
struct Flags {
    fold: bool,
    multi_line: bool,
    dot_newline: bool,
    lazy: bool,
}

/// A group that is not closed yet. The outermost one is the pattern.
#[derive(Default)]
struct Group {
    alternatives: Vec<Item>,
    items: Vec<Item>,
    /// What held before the group.
    flags: Flags,
}

struct Item {
    tree: Hir,
    /// The largest product of numbers of repetition around anything in it.
    repeats: u32,
}

struct Parser<'p> {
    rest: &'p str,
    flags: Flags,
    groups: Vec<Group>,
    ranges: usize,
}

/// Reads a pattern, or says what is wrong with it.
pub(super) fn parse(pattern: &str) -> Result<Hir, String> {
    if pattern.len() > MAX_LENGTH {
        return Err(format!("pattern is too long: it may have {MAX_LENGTH} bytes"));
    }
    let mut parser = Parser { rest: pattern, flags: Flags::default(), groups: vec![Group::default()], ranges: 0 };
    let mut repeated = false;
    while let Some(character) = parser.next() {
        repeated = match character {
            '*' => parser.repeat(0, None, repeated, "*")?,
            '+' => parser.repeat(1, None, repeated, "+")?,
            '?' => parser.repeat(0, Some(1), repeated, "?")?,
            '{' => match parser.counts()? {
                Some((least, most)) => parser.repeat_counted(least, most, repeated)?,
                None => parser.literal('{'),
            },
            _ => parser.item(character)?,
        };
    }
    let group = parser.groups.pop().unwrap_or_default();
    if !parser.groups.is_empty() {
        return Err("missing closing ) in pattern".into());
    }
    Ok(group.close().tree)
}

impl Group {
    fn bar(&mut self) {
        let items = std::mem::take(&mut self.items);
        let repeats = items.iter().map(|item| item.repeats).max().unwrap_or(1);
        let tree = Hir::concat(items.into_iter().map(|item| item.tree).collect());
        self.alternatives.push(Item { tree, repeats });
    }

    fn close(mut self) -> Item {
        self.bar();
        let repeats = self.alternatives.iter().map(|item| item.repeats).max().unwrap_or(1);
        Item { tree: Hir::alternation(self.alternatives.into_iter().map(|item| item.tree).collect()), repeats }
    }
}

impl<'p> Parser<'p> {
    fn next(&mut self) -> Option<char> {
        let character = self.rest.chars().next()?;
        self.rest = &self.rest[character.len_utf8()..];
        Some(character)
    }

    fn eat(&mut self, prefix: &str) -> bool {
        match self.rest.strip_prefix(prefix) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    /// Adds an item to the innermost group. Returns whether it is a repetition, which it never is.
    fn push(&mut self, tree: Hir) -> bool {
        if let Some(group) = self.groups.last_mut() {
            group.items.push(Item { tree, repeats: 1 });
        }
        false
    }

    fn literal(&mut self, character: char) -> bool {
        self.code(u32::from(character))
    }

    fn code(&mut self, code: u32) -> bool {
        let tree = match char::from_u32(code) {
            Some(character) if !self.flags.fold => Hir::literal(character.encode_utf8(&mut [0; 4]).as_bytes()),
            _ => {
                let mut set = Set::default();
                set.add(code, code);
                set.into_tree(self.flags.fold, false)
            }
        };
        self.push(tree)
    }

    /// Reads an item that is no repetition. Its first character was read before.
    fn item(&mut self, character: char) -> Result<bool, String> {
        let flags = self.flags;
        Ok(match character {
            '(' => {
                if self.groups.len() > MAX_GROUPS {
                    return Err(format!("pattern nests too deeply: groups may lie {MAX_GROUPS} deep in each other"));
                }
                if self.eat("?") {
                    self.special_group()?;
                } else {
                    self.groups.push(Group { flags, ..Group::default() });
                }
                false
            }
            ')' => {
                let group = self.groups.pop().filter(|_| !self.groups.is_empty()).ok_or("unexpected ) in pattern")?;
                self.flags = group.flags;
                let item = group.close();
                if let Some(outer) = self.groups.last_mut() {
                    outer.items.push(item);
                }
                false
            }
            '|' => {
                if let Some(group) = self.groups.last_mut() {
                    group.bar();
                }
                false
            }
            '^' => self.push(Hir::look(if flags.multi_line { Look::StartLF } else { Look::Start })),
            '$' => self.push(Hir::look(if flags.multi_line { Look::EndLF } else { Look::End })),
            '.' => self.push(Hir::dot(if flags.dot_newline { Dot::AnyChar } else { Dot::AnyCharExceptLF })),
            '[' => {
                let class = self.class()?;
                self.push(class)
            }
            '\\' => self.escape()?,
            _ => self.literal(character),
        })
    }

    /// Reads `{2}`, `{2,}` or `{2,3}` after the brace. Anything else is not a repetition but a brace.
    fn counts(&mut self) -> Result<Option<(u32, Option<u32>)>, String> {
        let Some((inside, after)) = self.rest.split_once('}') else { return Ok(None) };
        let is_number = |text: &str| {
            let is_padded = text.len() > 1 && text.starts_with('0');
            !text.is_empty() && !is_padded && text.bytes().all(|byte| byte.is_ascii_digit())
        };
        let (least, most) = match inside.split_once(',') {
            Some((least, most)) => (least, most),
            None => (inside, inside),
        };
        if !is_number(least) || !(most.is_empty() && inside.contains(',') || is_number(most)) {
            return Ok(None);
        }
        let number = |text: &str| match text.parse::<u32>() {
            Ok(number) if number <= MAX_REPEAT => Ok(number),
            _ => Err(format!("repeat count {{{inside}}} in pattern is over {MAX_REPEAT}")),
        };
        let least = number(least)?;
        let most = if most.is_empty() { None } else { Some(number(most)?) };
        if most.is_some_and(|most| most < least) {
            return Err(format!("repeat count {{{inside}}} in pattern is from more to less"));
        }
        self.rest = after;
        Ok(Some((least, most)))
    }

    fn repeat_counted(&mut self, least: u32, most: Option<u32>, repeated: bool) -> Result<bool, String> {
        self.repeat(least, most, repeated, "{")?;
        let times = most.unwrap_or(least);
        let Some(item) = self.groups.last_mut().and_then(|group| group.items.last_mut()) else { return Ok(true) };
        item.repeats = match (times, most) {
            (0, Some(_)) => 0,
            (0, None) => item.repeats,
            _ => item.repeats.saturating_mul(times),
        };
        if item.repeats > MAX_REPEAT && (least >= 2 || times >= 2) {
            return Err(format!("repeat counts in pattern are over {MAX_REPEAT} together"));
        }
        Ok(true)
    }

    /// Repeats the last item. A repetition cannot follow another.
    fn repeat(&mut self, min: u32, max: Option<u32>, repeated: bool, sign: &str) -> Result<bool, String> {
        let greedy = !(self.eat("?") ^ self.flags.lazy);
        if repeated {
            return Err(format!("repetition {sign} follows another repetition in pattern"));
        }
        let item = self.groups.last_mut().and_then(|group| group.items.pop());
        let Some(Item { tree, repeats }) = item else {
            return Err(format!("nothing to repeat before {sign} in pattern"));
        };
        let tree = Hir::repetition(Repetition { min, max, greedy, sub: Box::new(tree) });
        if let Some(group) = self.groups.last_mut() {
            group.items.push(Item { tree, repeats });
        }
        Ok(true)
    }

    /// Reads what follows `(?`: a name, flags, or both flags and a group.
    fn special_group(&mut self) -> Result<(), String> {
        let before = self.flags;
        if self.eat("P<") || self.eat("<") {
            let name = self.rest.split_once('>').filter(|(name, _)| {
                !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
            });
            let Some((_, after)) = name else { return Err("bad name of a group in pattern".into()) };
            self.rest = after;
            self.groups.push(Group { flags: before, ..Group::default() });
            return Ok(());
        }
        let unsupported = || "unknown group (?… in pattern".to_owned();
        let mut flags = before;
        let mut on = true;
        let mut is_set = false;
        while let Some(character) = self.next() {
            match character {
                'i' => flags.fold = on,
                'm' => flags.multi_line = on,
                's' => flags.dot_newline = on,
                'U' => flags.lazy = on,
                '-' if on => {
                    on = false;
                    is_set = false;
                    continue;
                }
                ':' | ')' => {
                    if !on && !is_set {
                        return Err(unsupported());
                    }
                    if character == ':' {
                        self.groups.push(Group { flags: before, ..Group::default() });
                    }
                    self.flags = flags;
                    return Ok(());
                }
                _ => return Err(unsupported()),
            }
            is_set = true;
        }
        Err(unsupported())
    }

    /// Reads what follows a backslash outside of a class.
    fn escape(&mut self) -> Result<bool, String> {
        if self.eat("Q") {
            let (literal, after) = self.rest.split_once("\\E").unwrap_or((self.rest, ""));
            self.rest = after;
            for character in literal.chars() {
                self.literal(character);
            }
            return Ok(false);
        }
        let look = match self.rest.chars().next() {
            Some('A') => Some(Look::Start),
            Some('z') => Some(Look::End),
            Some('b') => Some(Look::WordAscii),
            Some('B') => Some(Look::WordAsciiNegate),
            _ => None,
        };
        if let Some(look) = look {
            self.next();
            return Ok(self.push(Hir::look(look)));
        }
        if let Some(set) = self.escaped_class()? {
            let class = self.close_class(set, false, false)?;
            return Ok(self.push(class));
        }
        let code = self.escaped_code()?;
        Ok(self.code(code))
    }

    /// The set of `\d`, `\pL`, `\p{Greek}` and the like, after the backslash.
    fn escaped_class(&mut self) -> Result<Option<Set>, String> {
        let fold = self.flags.fold;
        let Some(letter) = self.rest.chars().next() else { return Ok(None) };
        if let Some(set) = Set::perl(letter, fold) {
            self.next();
            return Ok(Some(set));
        }
        if !matches!(letter, 'p' | 'P') {
            return Ok(None);
        }
        self.next();
        let name = if self.eat("{") {
            let (name, after) = self.rest.split_once('}').ok_or("missing closing } in pattern")?;
            self.rest = after;
            name
        } else {
            let length = self.rest.chars().next().map_or(0, char::len_utf8);
            let (name, after) = self.rest.split_at(length);
            self.rest = after;
            name
        };
        let plain = name.strip_prefix('^');
        let set = Set::unicode(plain.unwrap_or(name), fold, plain.is_some() != (letter == 'P'));
        set.map(Some).ok_or_else(|| format!("unknown class \\{letter}{{{name}}} in pattern"))
    }

    /// The character that an escape stands for, after the backslash. It may be half of a surrogate pair, which is in no
    /// text.
    fn escaped_code(&mut self) -> Result<u32, String> {
        let Some(character) = self.next() else { return Err("trailing backslash in pattern".into()) };
        let unknown = || format!("unknown escape \\{character} in pattern");
        match character {
            'a' => Ok(7),
            'f' => Ok(0x0c),
            'n' => Ok(0x0a),
            'r' => Ok(0x0d),
            't' => Ok(9),
            'v' => Ok(0x0b),
            'x' if self.eat("{") => {
                let (digits, after) = self.rest.split_once('}').ok_or_else(unknown)?;
                self.rest = after;
                let is_hex = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
                let digits = digits.trim_start_matches('0');
                let code = if digits.is_empty() { Some(0) } else { u32::from_str_radix(digits, 16).ok() };
                code.filter(|code| is_hex && *code <= u32::from(char::MAX)).ok_or_else(unknown)
            }
            'x' => {
                let digits = self.rest.get(..2).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
                let digits = digits.ok_or_else(unknown)?;
                self.rest = &self.rest[2..];
                u32::from_str_radix(digits, 16).map_err(|_| unknown())
            }
            '0'..='7' => {
                let more = self.rest.bytes().take(2).take_while(|byte| matches!(byte, b'0'..=b'7')).count();
                // One digit other than zero would refer back to a group.
                if character != '0' && more == 0 {
                    return Err(unknown());
                }
                let (digits, after) = self.rest.split_at(more);
                self.rest = after;
                let code =
                    digits.bytes().fold(u32::from(character) - 48, |code, digit| code * 8 + u32::from(digit) - 48);
                Ok(code)
            }
            _ if character.is_ascii() && !character.is_ascii_alphanumeric() => Ok(u32::from(character)),
            _ => Err(unknown()),
        }
    }

    /// Reads a class after its bracket.
    fn class(&mut self) -> Result<Hir, String> {
        let fold = self.flags.fold;
        let negate = self.eat("^");
        let mut set = Set::default();
        let mut first = true;
        // A bracket that comes first is a member.
        while first || !self.eat("]") {
            first = false;
            if let Some(named) = self.rest.strip_prefix("[:")
                && let Some((name, after)) = named.split_once(":]")
            {
                self.rest = after;
                let named = Set::posix(name, fold).ok_or_else(|| format!("unknown class [:{name}:] in pattern"))?;
                set.union(named);
                continue;
            }
            let here = self.rest;
            if self.eat("\\")
                && let Some(escaped) = self.escaped_class()?
            {
                set.union(escaped);
                continue;
            }
            self.rest = here;
            let low = self.class_code()?;
            let is_range = self.rest.starts_with('-') && self.rest.len() >= 2 && !self.rest.starts_with("-]");
            let high = if is_range {
                self.next();
                self.class_code()?
            } else {
                low
            };
            if high < low {
                return Err("range of a class in pattern is from more to less".into());
            }
            set.add(low, high);
        }
        self.close_class(set, fold, negate)
    }

    fn close_class(&mut self, set: Set, fold: bool, negate: bool) -> Result<Hir, String> {
        self.ranges += set.len();
        if self.ranges > MAX_RANGES {
            return Err(format!("pattern is too large: its classes may have {MAX_RANGES} ranges"));
        }
        Ok(set.into_tree(fold, negate))
    }

    fn class_code(&mut self) -> Result<u32, String> {
        match self.next() {
            None => Err("missing closing ] in pattern".into()),
            Some('\\') => self.escaped_code(),
            Some(character) => Ok(u32::from(character)),
        }
    }
}
