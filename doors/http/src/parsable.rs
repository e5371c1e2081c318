//! Bodies of JSON that every consumer's parser takes back.
//!
//! A body is handed on as it came. What its producer wrote and the server merely passed over may be more than the
//! parser of its consumer takes, which then cannot read the delivery at all: so that is refused when it comes in.
//! The body is known to be well-formed, so one look at each byte is enough.

use serde_json::value::RawValue;

/// The parsers that are used most go 127 deep, and an answer puts some levels around a body.
const DEPTH: usize = 120;

/// The longest number that Python reads as it comes.
const DIGITS: usize = 4_300;

/// A number without an exponent and with no more digits than this is one that a double holds.
const SHORT: usize = 300;

/// Whether all parsers take it: nested at most as deep as they go, without halves of surrogate pairs, without numbers
/// that no double holds or that are too long to read. If not, why.
pub(crate) fn check(body: &RawValue) -> Result<(), String> {
    let bytes = body.get().as_bytes();
    let (mut at, mut depth) = (0, 0);
    while let Some(byte) = bytes.get(at) {
        at += match byte {
            b'[' | b'{' => {
                depth += 1;
                if depth > DEPTH {
                    return refuse(&format!("it is nested deeper than {DEPTH}"));
                }
                1
            }
            b']' | b'}' => {
                depth -= 1;
                1
            }
            b'"' => pass_text(&bytes[at..])?,
            b'-' | b'0'..=b'9' => pass_number(&body.get()[at..])?,
            _ => 1,
        };
    }
    Ok(())
}

fn refuse<T>(what: &str) -> Result<T, String> {
    Err(format!("many parsers would not accept this JSON, because {what}: send it as `text` or `base64`"))
}

/// The length of the text that begins here, with its quotes.
fn pass_text(bytes: &[u8]) -> Result<usize, String> {
    let mut at = 1;
    loop {
        match bytes[at] {
            b'"' => return Ok(at + 1),
            b'\\' if bytes[at + 1] == b'u' => at += pass_escape(&bytes[at..])?,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

/// The length of the escape, or of the pair of escapes, that begins here.
fn pass_escape(bytes: &[u8]) -> Result<usize, String> {
    match (unit(bytes), bytes.get(6..).and_then(unit)) {
        (Some(0xd800..0xdc00), Some(0xdc00..0xe000)) => Ok(12),
        (Some(0xd800..0xe000), _) => refuse("a string in it has half a surrogate pair"),
        _ => Ok(6),
    }
}

/// What `\uXXXX` stands for, if that is what begins here.
fn unit(bytes: &[u8]) -> Option<u16> {
    let digits = bytes.strip_prefix(b"\\u")?.get(..4)?;
    u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

/// The length of the number that begins here.
fn pass_number(text: &str) -> Result<usize, String> {
    let is_part = |byte: u8| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E');
    let length = text.bytes().position(|byte| !is_part(byte)).unwrap_or(text.len());
    let number = &text[..length];
    if length > DIGITS {
        return refuse(&format!("it has a number of more than {DIGITS} digits"));
    }
    if (length > SHORT || number.contains(['e', 'E'])) && !number.parse::<f64>().is_ok_and(f64::is_finite) {
        return refuse("it has a number too large for a double");
    }
    Ok(length)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test says what is wrong by panicking")]
mod tests {
    use super::*;

    fn is_taken(json: &str) -> bool {
        check(&RawValue::from_string(json.into()).unwrap()).is_ok()
    }

    fn nested(depth: usize) -> String {
        format!("{}1{}", "[".repeat(depth), "]".repeat(depth))
    }

    /// Whatever is taken, this machine's parser takes too; what it does not take is not taken.
    #[test]
    fn it_is_taken_if_a_parser_takes_it() {
        let objects = |depth: usize| format!("{}1{}", "{\"a\":".repeat(depth), "}".repeat(depth));
        let digits = |count: usize| "7".repeat(count);
        let samples = [
            "null".into(),
            "  [ ] ".into(),
            "\"\"".into(),
            "{\"a\": [1, -2, 3.5e300, true, \"\\ud83d\\ude00\"], \"a\": 2}".into(),
            "\"\\\\ud800 \\\" [[[ 1e999\"".into(),
            "{\"\\u00e9\\n\": \"é\\/\"}".into(),
            "\"\\ud83d\"".into(),
            "\"\\ud83d\\ud83d\"".into(),
            "\"\\ud83dx\\ude00\"".into(),
            "{\"\\ude00\": 1}".into(),
            "[1e400]".into(),
            "-1E+999".into(),
            "1e-999".into(),
            "0.1e308".into(),
            nested(120),
            nested(50_000),
            objects(120),
            format!("[{}, {}]", nested(119), nested(119)),
            digits(308),
            digits(400),
            format!("0.{}", digits(1_000)),
            format!("[\"{}\"]", digits(10_000)),
        ];
        for json in samples {
            let parser = serde_json::from_str::<serde_json::Value>(&json).is_ok();
            assert_eq!(is_taken(&json), parser, "{}", &json[..json.len().min(80)]);
        }
    }

    #[test]
    fn what_is_taken_leaves_room_for_the_answer_around_it() {
        assert!(!is_taken(&nested(DEPTH + 1)) && !is_taken(&format!("{{\"a\":{}}}", nested(DEPTH))));
        let answer = format!("{{\"deliveries\":[{{\"body\":{}}}]}}", nested(DEPTH));
        assert!(serde_json::from_str::<serde_json::Value>(&answer).is_ok());
    }

    #[test]
    fn a_number_too_long_for_python_is_refused() {
        assert!(!is_taken(&format!("[0.{}]", "1".repeat(5_000))));
    }
}
