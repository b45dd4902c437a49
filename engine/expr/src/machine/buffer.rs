//! Lists and text that grow in the arena.

use std::fmt;

use bumpalo::collections::Vec;

use super::{Failure, Machine};

/// Values that are made one by one.
pub(crate) struct Buffer<'m, 'a, T: Copy> {
    machine: &'m Machine<'a>,
    items: Vec<'a, T>,
}

/// Text that is made piece by piece.
pub(crate) struct Text<'m, 'a> {
    bytes: Buffer<'m, 'a, u8>,
    /// Why a piece that came through [`fmt::Write`] was not taken: that trait's own error says nothing.
    failure: Option<Failure>,
}

impl<'m, 'a, T: Copy> Buffer<'m, 'a, T> {
    pub(super) fn new(machine: &'m Machine<'a>) -> Self {
        Self { machine, items: Vec::new_in(machine.arena) }
    }

    pub(crate) fn push(&mut self, item: T) -> Result<(), Failure> {
        self.reserve(1)?;
        self.items.push(item);
        Ok(())
    }

    pub(crate) fn extend(&mut self, items: &[T]) -> Result<(), Failure> {
        self.reserve(items.len())?;
        self.items.extend_from_slice_copy(items);
        Ok(())
    }

    /// Room for more. It at least doubles, so that a list costs a bounded number of copies.
    pub(crate) fn reserve(&mut self, more: usize) -> Result<(), Failure> {
        let room = self.items.capacity() - self.items.len();
        if more <= room {
            return Ok(());
        }
        let more = more.max(self.items.capacity()).max(8);
        self.machine.count_bytes(more.saturating_mul(size_of::<T>()))?;
        self.items.try_reserve_exact(more).map_err(|_| self.machine.out_of_memory())
    }

    pub(crate) fn len(&self) -> usize {
        self.items.len()
    }

    pub(crate) fn items(&self) -> &[T] {
        &self.items
    }

    /// Takes back all but the first items.
    pub(crate) fn truncate(&mut self, length: usize) {
        self.items.truncate(length);
    }

    pub(crate) fn finish(self) -> &'a mut [T] {
        self.items.into_bump_slice_mut()
    }
}

impl<'m, 'a> Text<'m, 'a> {
    pub(super) fn new(machine: &'m Machine<'a>) -> Self {
        Self { bytes: Buffer::new(machine), failure: None }
    }

    pub(crate) fn reserve(&mut self, more: usize) -> Result<(), Failure> {
        self.bytes.reserve(more)
    }

    pub(crate) fn push(&mut self, text: &str) -> Result<(), Failure> {
        self.bytes.extend(text.as_bytes())
    }

    pub(crate) fn push_char(&mut self, character: char) -> Result<(), Failure> {
        self.push(character.encode_utf8(&mut [0; 4]))
    }

    /// Adds what `format_args!` made.
    pub(crate) fn format(&mut self, arguments: fmt::Arguments<'_>) -> Result<(), Failure> {
        match fmt::Write::write_fmt(self, arguments) {
            Ok(()) => Ok(()),
            Err(_) => Err(self.failure.take().unwrap_or_else(|| Failure::new("text could not be written"))),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        self.bytes.items()
    }

    pub(crate) fn truncate(&mut self, length: usize) {
        self.bytes.truncate(length);
    }

    pub(crate) fn finish(self) -> Result<&'a str, Failure> {
        // It was made of text, so this looks at each byte once more and finds nothing.
        std::str::from_utf8(self.bytes.finish()).map_err(|_| Failure::new("text was cut inside a character"))
    }
}

impl fmt::Write for Text<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.push(text).map_err(|failure| {
            self.failure = Some(failure);
            fmt::Error
        })
    }
}
