//! Bodies that were packed on their way, unpacked within the limit.

use std::io::{self, Read};

use bytes::Bytes;
use flate2::read::MultiGzDecoder;
use http::HeaderValue;

use crate::fault::{Code, Fault};
use crate::input::too_large;

/// Unpacks a body. What grows beyond the limit is refused before it is there.
pub(crate) fn unpack(packing: &HeaderValue, body: Bytes, limit: usize) -> Result<Bytes, Fault> {
    let unpacked = match packing.as_bytes() {
        b"identity" => return Ok(body),
        b"gzip" => read(MultiGzDecoder::new(&body[..]), limit),
        b"zstd" => zstd::stream::read::Decoder::with_buffer(&body[..]).and_then(|decoder| read(decoder, limit)),
        _ => {
            let detail = "unsupported content encoding: send the body uncompressed, or compressed with gzip or zstd";
            return Err(Fault::new(Code::UnsupportedMediaType, detail));
        }
    };
    match unpacked {
        Ok(Some(bytes)) => Ok(bytes),
        Ok(None) => Err(too_large(limit)),
        Err(error) => Err(Fault::new(Code::BadRequest, format!("the body cannot be decompressed: {error}"))),
    }
}

/// All that comes; `None` if it is more than the limit.
fn read(packed: impl Read, limit: usize) -> io::Result<Option<Bytes>> {
    let mut unpacked = Vec::new();
    packed.take(limit as u64 + 1).read_to_end(&mut unpacked)?;
    Ok((unpacked.len() <= limit).then(|| unpacked.into()))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test says what is wrong by panicking")]
mod tests {
    use super::*;
    use std::io::Write;

    fn gzip(bytes: &[u8]) -> Bytes {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap().into()
    }

    fn status(packing: &'static str, body: Bytes) -> Result<Bytes, u16> {
        unpack(&HeaderValue::from_static(packing), body, 1_000).map_err(|fault| fault.into_problem().status)
    }

    #[test]
    fn what_was_packed_comes_back_up_to_the_limit() {
        for length in [0, 10, 1_000] {
            let body = vec![b'x'; length];
            assert_eq!(status("gzip", gzip(&body)), Ok(body.clone().into()));
            assert_eq!(status("zstd", zstd::encode_all(&body[..], 1).unwrap().into()), Ok(body.into()));
        }
        assert_eq!(status("gzip", gzip(&[b'x'; 1_001])), Err(413));
        assert_eq!(status("zstd", zstd::encode_all(&[b'x'; 1_001][..], 1).unwrap().into()), Err(413));
    }

    #[test]
    fn what_cannot_be_unpacked_is_refused() {
        assert_eq!(status("gzip", Bytes::from_static(b"nonsense")), Err(400));
        assert_eq!(status("zstd", Bytes::from_static(b"nonsense")), Err(400));
        assert_eq!(status("br", Bytes::from_static(b"x")), Err(415));
    }
}
