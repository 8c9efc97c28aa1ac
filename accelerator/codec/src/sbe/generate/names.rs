//! Names of the schema as names of Rust: no keyword, none twice.

use std::collections::HashSet;

const KEYWORDS: [&str; 52] = [
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "crate", "do", "dyn", "else",
    "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let", "loop", "macro", "match", "mod",
    "move", "mut", "override", "priv", "pub", "ref", "return", "self", "static", "struct", "super", "trait", "true",
    "try", "type", "typeof", "union", "unsafe", "unsized", "use", "virtual", "where", "while", "yield",
];

/// `ClOrdID` as `cl_ord_id`.
pub(super) fn snake(name: &str) -> String {
    let found = words(name).join("_").to_ascii_lowercase();
    if KEYWORDS.contains(&found.as_str()) { found + "_" } else { found }
}

/// `ClOrdID` as `CL_ORD_ID`.
pub(super) fn upper(name: &str) -> String {
    words(name).join("_").to_ascii_uppercase()
}

/// `ClOrdID` as `ClOrdId`.
pub(super) fn pascal(name: &str) -> String {
    let capital = |word: &String| word[..1].to_ascii_uppercase() + &word[1..].to_ascii_lowercase();
    words(name).iter().map(capital).collect()
}

/// The words of a name; at least one, and the first begins with a letter.
fn words(name: &str) -> Vec<String> {
    let letters: Vec<char> = name.chars().collect();
    let mut found = vec![String::new()];
    for (index, letter) in letters.iter().enumerate() {
        let before = index.checked_sub(1).map_or(' ', |before| letters[before]);
        let after = letters.get(index + 1).copied().unwrap_or(' ');
        let starts = letter.is_ascii_uppercase()
            && (before.is_ascii_lowercase()
                || before.is_ascii_digit()
                || before.is_ascii_uppercase() && after.is_ascii_lowercase());
        if starts || !letter.is_ascii_alphanumeric() {
            found.push(String::new());
        }
        if let Some(word) = found.last_mut().filter(|_| letter.is_ascii_alphanumeric()) {
            word.push(*letter);
        }
    }
    found.retain(|word| !word.is_empty());
    if found.first().is_none_or(|word| word.starts_with(|letter: char| letter.is_ascii_digit())) {
        found.insert(0, "n".to_owned());
    }
    found
}

/// Names of one place, each given once.
#[derive(Default)]
pub(super) struct Unique(HashSet<String>);

impl Unique {
    /// Keep names for other things.
    pub(super) fn reserving(names: &[&str]) -> Self {
        Self(names.iter().map(|name| (*name).to_owned()).collect())
    }

    /// The wish, or with the first number that makes it unlike all before, for each of the endings.
    pub(super) fn claim(&mut self, wish: &str, endings: &[&str]) -> String {
        let numbered = |number: u32| if number < 2 { wish.to_owned() } else { format!("{wish}{number}") };
        let is_free = |name: &String| endings.iter().all(|ending| !self.0.contains(&format!("{name}{ending}")));
        let name = (1..u32::MAX).map(numbered).find(is_free).unwrap_or_default();
        self.0.extend(endings.iter().map(|ending| format!("{name}{ending}")));
        name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_split_where_people_would() {
        for (name, expected) in [
            ("ClOrdID", "cl_ord_id"),
            ("NoMDEntries", "no_md_entries"),
            ("model_name", "model_name"),
            ("px64Value", "px64_value"),
            ("type", "type_"),
            ("4wheels", "n_4wheels"),
            ("ß", "n"),
        ] {
            assert_eq!(snake(name), expected);
        }
        assert_eq!((pascal("MDEntryType").as_str(), upper("ClOrdID").as_str()), ("MdEntryType", "CL_ORD_ID"));
    }

    #[test]
    fn no_name_is_given_twice() {
        let mut unique = Unique::reserving(&["Error"]);
        assert_eq!(unique.claim("Error", &[""]), "Error2");
        assert_eq!(unique.claim("Car", &["Decoder"]), "Car");
        assert_eq!(unique.claim("Car", &["Decoder", "Encoder"]), "Car2");
    }
}
