//! The context that a request brings along: W3C Trace Context, the header `traceparent`.

/// Whose span a request belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Context {
    pub trace_id: [u8; 16],
    pub parent_id: [u8; 8],
    /// Whether the caller records it.
    pub is_sampled: bool,
}

impl Context {
    /// Understands a `traceparent`: `00-` trace id `-` span id `-` flags, all hexadecimal.
    pub fn parse(text: &str) -> Option<Context> {
        let mut parts = text.split('-');
        let version: [u8; 1] = hex(parts.next()?)?;
        let (trace_id, parent_id): ([u8; 16], [u8; 8]) = (hex(parts.next()?)?, hex(parts.next()?)?);
        let [flags]: [u8; 1] = hex(parts.next()?)?;
        // Later versions may add parts, this one must not; zeros mean that there is none.
        let is_well_formed = version != [255] && (version != [0] || parts.next().is_none());
        let is_one = trace_id != [0; 16] && parent_id != [0; 8];
        (is_well_formed && is_one).then_some(Context { trace_id, parent_id, is_sampled: flags & 1 == 1 })
    }
}

fn hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let is_hex = text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    if text.len() != 2 * N || !is_hex {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, digits) in bytes.iter_mut().zip(text.as_bytes().chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_context_is_read_as_the_standard_writes_it() {
        let context = Context::parse("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01").expect("it is one");
        assert_eq!((context.trace_id[0], context.parent_id[7], context.is_sampled), (0x0a, 0x31, true));
        assert!(
            Context::parse("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00").is_some_and(|c| !c.is_sampled)
        );
        assert!(Context::parse("01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00-more").is_some());
    }

    #[test]
    fn what_is_not_a_context_is_none() {
        for text in [
            "",
            "00",
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            "00-0AF7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more",
            "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b716920333-01",
        ] {
            assert_eq!(Context::parse(text), None, "{text}");
        }
    }
}
