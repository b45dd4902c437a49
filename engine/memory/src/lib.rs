//! `memcpy`, `memmove`, `memcmp` and `bcmp` for the program that users get. On x86-64 those of musl are one `rep movsq` whatever the
//! length, and a loop over single bytes; a request has a few hundred short copies. Whoever links this crate into a program that is linked
//! with musl has these instead: see `docs/adr/0022-memcpy-of-our-own.md`. Elsewhere nothing of it is used but by its tests.
//!
//! Only what every x86-64 processor has is used.

// A compiler that recognises a copy would call `memcpy` for it, which is this very code.
#![no_builtins]
#![no_std]
#![cfg(all(target_arch = "x86_64", any(target_env = "musl", test)))]

#[cfg(test)]
extern crate std;

mod compare;
mod copy;

/// The symbols that a program takes from here.
#[cfg(target_env = "musl")]
mod symbols {
    use core::ffi::{c_int, c_void};

    /// Copies bytes.
    ///
    /// # Safety
    ///
    /// As C says: `length` bytes can be read from `from` and written from `to` on.
    #[unsafe(no_mangle)]
    unsafe extern "C" fn memcpy(to: *mut c_void, from: *const c_void, length: usize) -> *mut c_void {
        // SAFETY: the caller promises more than a move needs.
        unsafe { crate::copy::shift(to.cast(), from.cast(), length) };
        to
    }

    /// Copies bytes between places that may overlap.
    ///
    /// # Safety
    ///
    /// As C says: `length` bytes can be read from `from` and written from `to` on.
    #[unsafe(no_mangle)]
    unsafe extern "C" fn memmove(to: *mut c_void, from: *const c_void, length: usize) -> *mut c_void {
        // SAFETY: the caller promises the same.
        unsafe { crate::copy::shift(to.cast(), from.cast(), length) };
        to
    }

    /// Compares bytes: below zero, zero or above.
    ///
    /// # Safety
    ///
    /// As C says: `length` bytes can be read from both on.
    #[unsafe(no_mangle)]
    unsafe extern "C" fn memcmp(one: *const c_void, other: *const c_void, length: usize) -> c_int {
        // SAFETY: the caller promises the same.
        unsafe { crate::compare::order(one.cast(), other.cast(), length) }
    }

    /// Compares bytes: zero, or not.
    ///
    /// # Safety
    ///
    /// As C says: `length` bytes can be read from both on.
    #[unsafe(no_mangle)]
    unsafe extern "C" fn bcmp(one: *const c_void, other: *const c_void, length: usize) -> c_int {
        // SAFETY: the caller promises the same.
        unsafe { crate::compare::order(one.cast(), other.cast(), length) }
    }
}
