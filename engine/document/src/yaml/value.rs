//! What was read onto the tape: a scalar as it comes out of Go's way through JSON, and a document that is whole.

use super::resolve::Scalar;
use crate::{assemble::Assembler, document::Document, options::Options};

/// A number that JSON cannot say.
#[derive(Debug)]
pub(super) struct NotFinite;

/// Adds a scalar as the value that comes next.
pub(super) fn add(assembler: &mut Assembler, scalar: &Scalar) -> Result<(), NotFinite> {
    match scalar {
        Scalar::Null => assembler.null(),
        Scalar::Bool(bool) => assembler.bool(*bool),
        Scalar::Int(int) => assembler.int(*int),
        Scalar::Large(large) => assembler.float(*large as f64),
        Scalar::Float(float) if !float.is_finite() => return Err(NotFinite),
        Scalar::Float(float) => match whole(*float) {
            Some(int) => assembler.int(int),
            None => assembler.float(*float),
        },
        Scalar::Text(text) => {
            assembler.string(text);
        }
    }
    Ok(())
}

/// The document, when every container has ended.
pub(super) fn finish(assembler: Assembler, options: &Options) -> Document {
    let document = assembler.finish();
    // Only at the end: an alias may have put a value where it is to be dropped or masked, although its anchor is elsewhere.
    let is_final = options.drop.is_empty() && options.mask.is_empty();
    if is_final { document } else { Document::copy_of(document.root(), options) }
}

/// The integer that a float becomes on its way through JSON: Go writes a whole float without a point, and then it is
/// read as an integer if it fits.
fn whole(float: f64) -> Option<i64> {
    // Written out, because a float above 2^53 has a shortest form that is not its exact value.
    if float.fract() == 0.0 && float.abs() < 1e21 { float.to_string().parse().ok() } else { None }
}
