//! The tasks that all contestants get: 200 bytes of text that open with the due time, so that whoever has the body
//! in hand knows how late it is, whatever the server tells beside it.

use std::io;
use std::ops::Range;
use std::time::SystemTime;

pub const BODY_BYTES: usize = 200;

/// Microseconds since 1970 have 16 digits until the year 2286; who counts in milliseconds has zeros before them.
const DUE_DIGITS: usize = 16;

/// Far enough that nothing of it falls due while it is measured.
pub const FAR_MS: Range<u64> = 86_400_000..30 * 86_400_000;

/// Makes texts that differ and do not compress; reading them from a pool costs no more than copying.
pub struct Bodies {
    pool: Vec<u8>,
    at: usize,
}

impl Bodies {
    pub fn new() -> Bodies {
        const POOL: usize = 16 << 10;
        Bodies { pool: (0..POOL).map(|_| fastrand::alphanumeric() as u8).collect(), at: 0 }
    }

    pub fn next(&mut self, due: u64) -> [u8; BODY_BYTES] {
        let mut body = [0; BODY_BYTES];
        let (digits, rest) = body.split_at_mut(DUE_DIGITS);
        let mut left = due;
        for digit in digits.iter_mut().rev() {
            *digit = b'0' + (left % 10) as u8;
            left /= 10;
        }
        rest.copy_from_slice(&self.pool[self.at..self.at + rest.len()]);
        self.at = (self.at + 61) % (self.pool.len() - BODY_BYTES);
        body
    }
}

/// The due time that a body opens with.
pub fn due_of(body: &[u8]) -> io::Result<u64> {
    let digits = body.get(..DUE_DIGITS).filter(|_| body.len() == BODY_BYTES);
    let due = digits.and_then(|digits| str::from_utf8(digits).ok()).and_then(|digits| digits.parse().ok());
    due.ok_or_else(|| io::Error::other(format!("not a body that was scheduled: {}", body.escape_ascii())))
}

/// A due time 1 to 30 days ahead.
pub fn far_due() -> u64 {
    now_ms() + fastrand::u64(FAR_MS)
}

pub fn now_ms() -> u64 {
    now_us() / 1_000
}

pub fn now_us() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("it is after 1970").as_micros() as u64
}
