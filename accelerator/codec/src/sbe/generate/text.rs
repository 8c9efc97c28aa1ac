//! Templates: text with `$names` in it.

/// The template with each `$name` replaced by its value, in one pass: what values hold is never looked at.
pub(super) fn fill(template: &str, values: &[(&str, &str)]) -> String {
    let mut out = String::with_capacity(template.len() * 2);
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('$') {
        out.push_str(before);
        let end = after.find(|letter: char| !(letter.is_ascii_lowercase() || letter == '_')).unwrap_or(after.len());
        let (name, behind) = after.split_at(end);
        let value = values.iter().find(|(known, _)| *known == name);
        out.push_str(value.map_or(name, |(_, value)| value));
        rest = behind;
    }
    out + rest
}

/// A schema's name for a comment: what could end the comment or its code marks is left out.
pub(super) fn plain(name: &str) -> String {
    name.chars().filter(|letter| !letter.is_control() && !matches!(letter, '`' | '\u{2028}' | '\u{2029}')).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_is_filled_in_one_pass() {
        assert_eq!(fill("fn $name() -> $type;", &[("name", "$type"), ("type", "u8")]), "fn $type() -> u8;");
    }

    #[test]
    fn a_name_in_a_comment_cannot_leave_it() {
        assert_eq!(plain("a`\nb\u{85}"), "ab");
    }
}
