//! By what the nodes of a center know each other.

use std::fmt;

/// A center's id and its secret, which all of its nodes have from the store that they share.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// Tells centers apart. It is no secret.
    pub center: [u8; 16],
    secret: [u8; 32],
}

impl Credentials {
    /// How many bytes they are kept in.
    pub const BYTES: usize = 48;

    /// New ones, for a center that has none yet.
    pub fn draw() -> Result<Credentials, getrandom::Error> {
        let (mut center, mut secret) = ([0; 16], [0; 32]);
        getrandom::fill(&mut center)?;
        getrandom::fill(&mut secret)?;
        Ok(Credentials { center, secret })
    }

    /// As they are kept in the store.
    pub fn to_bytes(&self) -> [u8; Credentials::BYTES] {
        let mut bytes = [0; Credentials::BYTES];
        bytes[..16].copy_from_slice(&self.center);
        bytes[16..].copy_from_slice(&self.secret);
        bytes
    }

    /// As they were kept; none if these bytes are not that.
    pub fn from_bytes(bytes: &[u8]) -> Option<Credentials> {
        let (center, secret) = bytes.split_first_chunk::<16>()?;
        Some(Credentials { center: *center, secret: secret.try_into().ok()? })
    }

    /// What only who has the secret can say about some bytes, for one purpose.
    pub(crate) fn stamp(&self, purpose: &str, about: &[u8]) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new_keyed(&self.secret);
        // No purpose is the beginning of another one with this between them and what they are about.
        hasher.update(purpose.as_bytes()).update(&[0]).update(about);
        *hasher.finalize().as_bytes()
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Credentials({:02x?})", self.center)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_come_back_from_their_bytes_and_do_not_show_the_secret() {
        let drawn = Credentials::draw().unwrap();
        assert_eq!(Credentials::from_bytes(&drawn.to_bytes()), Some(drawn.clone()));
        assert_eq!(Credentials::from_bytes(&drawn.to_bytes()[1..]), None);
        assert_ne!(drawn, Credentials::draw().unwrap());
        assert!(format!("{drawn:?}").len() < 100);
    }
}
