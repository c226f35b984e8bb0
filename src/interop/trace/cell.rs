//! Token counts, and texts of a file as messages show them.

/// Longest piece of a file that a message repeats, in characters.
const SHOWN: usize = 40;

/// A text of the file, shortened for a message and free of control characters.
pub(in crate::interop) fn clip(text: &str) -> String {
    let mut shown: String =
        text.chars().take(SHOWN).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if text.chars().nth(SHOWN).is_some() {
        shown.push('…');
    }
    shown
}

/// A number of tokens, or what is wrong and what to write instead. `12.0` counts as 12: tables
/// with gaps are often written with every number as a float.
pub(super) fn tokens(text: &str) -> Result<u32, (String, String)> {
    let shown = clip(text);
    let wrong = |what: &str, help: &str| Err((format!("`{shown}` {what}"), help.to_owned()));
    let whole = match text.split_once('.') {
        Some((whole, zeros)) if zeros.bytes().all(|b| b == b'0') => whole,
        _ => text,
    };
    if let Ok(count) = whole.parse::<u32>() {
        return Ok(count);
    }
    match text.parse::<f64>() {
        Ok(v) if v < 0.0 => wrong("is a negative length", "lengths count tokens, from 0"),
        Ok(v) if v > f64::from(u32::MAX) && v.is_finite() => {
            wrong("is more tokens than a request can have", "lengths go up to 4294967295")
        }
        Ok(v) if v.fract() != 0.0 => wrong("is not a whole number of tokens", "write a count"),
        _ => wrong("is not a number of tokens", "write a count, from 0"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts() {
        assert_eq!(tokens("12"), Ok(12));
        assert_eq!(tokens("12.00"), Ok(12));
        for text in ["", "-1", "1.5", "4294967296", "nan", "inf", "1e999", "twelve", "."] {
            assert!(tokens(text).is_err(), "{text}");
        }
    }

    #[test]
    fn long_texts_are_cut() {
        assert_eq!(clip("a\tb"), "a b");
        assert_eq!(clip(&"é".repeat(50)).chars().count(), SHOWN + 1);
    }
}
