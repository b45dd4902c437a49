//! Memory that outlives a document under construction, so that the next one on the same thread need not ask for it, and
//! so that the document itself gets exactly what it needs.

use std::cell::Cell;

use crate::{assemble::Frame, guess::Guesses, texts::Recent};

#[derive(Default)]
pub(crate) struct Scratch {
    pub(crate) words: Vec<u32>,
    pub(crate) text: String,
    /// Values of the open containers.
    pub(crate) values: Vec<u32>,
    /// Keys of the open objects.
    pub(crate) keys: Vec<u32>,
    pub(crate) frames: Vec<Frame>,
    pub(crate) recent: Recent,
    pub(crate) guesses: Guesses,
}

/// Bytes that each buffer may keep. Larger documents are rare, and a thread should not hold on to what one needed.
const KEPT: usize = 256 << 10;

thread_local! {
    static SCRATCH: Cell<Option<Box<Scratch>>> = const { Cell::new(None) };
}

impl Scratch {
    /// The scratch of this thread, or one more if that is in use.
    pub(crate) fn take() -> Box<Scratch> {
        SCRATCH.take().unwrap_or_else(Scratch::first)
    }

    /// The first one of a thread. By itself, because of all that lies on the stack on the way: whoever only takes one must not pay for it.
    #[cold]
    #[inline(never)]
    fn first() -> Box<Scratch> {
        Box::default()
    }

    /// Leaves the scratch to the next document.
    pub(crate) fn give_back(mut self: Box<Scratch>) {
        reset(&mut self.words);
        reset(&mut self.values);
        reset(&mut self.keys);
        reset(&mut self.frames);
        self.text.clear();
        self.text.shrink_to(KEPT);
        // Fails when the thread is ending, which is when nobody needs it.
        let _ = SCRATCH.try_with(|scratch| scratch.set(Some(self)));
    }
}

fn reset<T>(buffer: &mut Vec<T>) {
    buffer.clear();
    buffer.shrink_to(KEPT / size_of::<T>());
}
