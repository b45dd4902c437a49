//! Labels of metrics. Their words are a fixed list, or names that come and go and are bounded.

/// What tells the series of a metric apart.
pub trait Label {
    /// The name of the label.
    const NAME: &'static str;
    /// The words that it can be, for the reference page.
    const WORDS: &'static [Word];
    /// Whether there are other words too, which come and go. Their number is bounded: see [`super::Counters`].
    const IS_OPEN: bool = false;

    /// The word.
    fn word(&self) -> &str;
}

/// A word that a label can be, and what there is to say about it.
#[derive(Clone, Copy, Debug)]
pub struct Word(pub &'static str, pub &'static str);

/// A label with a fixed list of words.
#[macro_export]
macro_rules! metrics_label {
    ($(#[$about:meta])* pub enum $label:ident in $name:literal { $($value:ident = $word:literal, $remark:literal;)+ }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, Eq, PartialEq)]
        pub enum $label {
            $(#[doc = concat!("`", $word, "`")] $value,)+
        }

        impl $crate::metrics::Label for $label {
            const NAME: &'static str = $name;
            const WORDS: &'static [$crate::metrics::Word] = &[$($crate::metrics::Word($word, $remark)),+];

            fn word(&self) -> &str {
                match self {
                    $($label::$value => $word,)+
                }
            }
        }
    };
}
