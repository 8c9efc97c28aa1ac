//! Labels of counters: what a writer may give, and what a reader makes of bytes that no writer of ours gave.

/// Longest label, in bytes of UTF-8.
pub const LABEL_LENGTH_MAX: usize = 64;

/// Control characters (NUL, newline, escape among them) and what else ends a line: they break tables, logs and metrics.
fn is_refused(character: char) -> bool {
    character.is_control() || matches!(character, '\u{2028}' | '\u{2029}')
}

/// Whether a counter may be labelled so: at most 64 bytes, without control characters.
#[must_use]
pub fn is_label(label: &str) -> bool {
    label.len() <= LABEL_LENGTH_MAX && !label.chars().any(is_refused)
}

/// A label as it can be shown: at most 64 characters, with U+FFFD for each that no label has, and for bytes that are no UTF-8.
pub(super) fn shown(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(LABEL_LENGTH_MAX)]);
    text.chars().map(|one| if is_refused(one) { char::REPLACEMENT_CHARACTER } else { one }).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn labels_that_would_break_what_shows_them_are_refused_and_shown_with_replacements() {
        for bad in ["a\nb", "a\0b", "a\rb", "a\tb", "a\u{1b}b", "a\u{7f}b", "a\u{85}b", "a\u{2028}b", "a\u{2029}b"] {
            assert!(!is_label(bad), "{bad:?}");
            assert_eq!(shown(bad.as_bytes()), "a\u{fffd}b", "{bad:?}");
        }
        assert!(!is_label(&"x".repeat(65)) && !is_label(&"ü".repeat(33)));
        assert_eq!(shown(b"a\xff\xfeb"), "a\u{fffd}\u{fffd}b");
        assert_eq!(shown(&[b'x'; 100]), "x".repeat(64));
    }

    proptest! {
        #[test]
        fn whatever_lies_there_is_shown_in_at_most_64_characters_of_one_line(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            let label = shown(&bytes);
            prop_assert!(label.chars().count() <= LABEL_LENGTH_MAX && !label.chars().any(is_refused));
        }

        #[test]
        fn a_label_that_may_be_given_is_shown_as_it_is(label in "\\PC{0,16}") {
            prop_assert_eq!(shown(label.as_bytes()) == label, is_label(&label));
        }
    }
}
