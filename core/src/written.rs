//! How long bodies become when a door writes them as text. Answers are bounded by that and not by what is stored: six
//! letters stand for a control character, and four for three bytes of any kind.

use bytes::Bytes;

use crate::answer::Delivery;
use crate::task::{Form, Headers, parts};
use crate::view::TaskView;

/// What stands around the name and the value of a header.
const AROUND_HEADER: usize = 6;

/// How many bytes of an answer a stored body and its headers take, at most or nearly so.
pub(crate) fn written(packed: &Bytes) -> usize {
    // A delivery of several has none of its own.
    if packed.is_empty() {
        return 0;
    }
    let (form, headers, body) = parts(packed);
    as_text(headers) + form.written(body)
}

impl Form {
    /// How many bytes of an answer a body takes that was handed in like this.
    pub fn written(self, body: &[u8]) -> usize {
        match self {
            Form::Bytes => body.len().div_ceil(3) * 4,
            Form::Text => as_text(body),
            Form::Json => body.len(),
        }
    }
}

impl Delivery {
    /// How many bytes of an answer its body and its headers take.
    pub fn written(&self) -> usize {
        of_headers(&self.headers) + self.form.written(&self.body)
    }
}

impl TaskView {
    /// How many bytes of an answer its body and its headers take.
    pub fn written(&self) -> usize {
        of_headers(&self.headers) + self.form.written(&self.body)
    }
}

fn of_headers(headers: &Headers) -> usize {
    let header =
        |(name, value): &(String, String)| as_text(name.as_bytes()) + as_text(value.as_bytes()) + AROUND_HEADER;
    headers.iter().map(header).sum()
}

/// The length of a text with its escapes; of the few control characters that have short ones, as if they had none.
/// Every text that is handed out comes by here. So a piece is summed up in single bytes, which no piece of this length
/// can overflow and of which the machine adds many at once.
fn as_text(text: &[u8]) -> usize {
    let further = |byte: &u8| u8::from(*byte < b' ') * 5 + u8::from(*byte == b'"') + u8::from(*byte == b'\\');
    let pieces = text.chunks(32).map(|piece| usize::from(piece.iter().map(further).sum::<u8>()));
    text.len() + pieces.sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::pack;

    #[test]
    fn a_text_counts_with_its_escapes() {
        for (text, length) in
            [("", 0), ("plain", 5), ("\u{1}", 6), ("say \"hi\"", 10), ("a\\b", 4), ("ü\u{7f}", 3), ("\n", 6)]
        {
            assert_eq!(Form::Text.written(text.as_bytes()), length, "{text:?}");
        }
        assert_eq!(Form::Text.written(&[1; 1_000]), 6_000);
    }

    #[test]
    fn bytes_count_as_base64_and_json_as_it_is() {
        let lengths = [0, 1, 2, 3, 4].map(|length| Form::Bytes.written(&vec![1; length]));
        assert_eq!(lengths, [0, 4, 4, 4, 8]);
        assert_eq!(Form::Json.written(b"\"\\u0001\""), 8);
    }

    #[test]
    fn a_stored_body_counts_with_its_headers() {
        let headers = vec![("name".to_owned(), "\u{1}".repeat(1_000))];
        let packed = pack(Form::Text, &headers, &Bytes::from_static(b"\x01\x01"));
        let length = of_headers(&headers) + 12;
        assert_eq!(length, 4 + 6_000 + 6 + 12);
        assert!(written(&packed).abs_diff(length) < 20, "{}", written(&packed));
    }
}
