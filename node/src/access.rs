//! Who may do what: tokens, their roles, and the topics and queues they are for. Shared by all doors.
//!
//! Only hashes are kept. A secret is 256 random bits, so guessing it is hopeless however fast the hash is:
//! a slow password hash would protect nothing here and cost every request milliseconds.
//!
//! **Invariant**: how long a check takes does not tell how near a guess was, nor which token it met.
//! All tokens are looked at each time, each in constant time.

use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, PoisonError, RwLock};

use serde::{Deserialize, Serialize};
use subtle::{Choice, ConditionallySelectable, ConstantTimeEq};

/// The name under which everybody goes who needs no token.
const LOOPBACK: &str = "loopback";

/// What a token is good for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Schedules tasks; cancels, moves and looks at them.
    Produce,
    /// Reserves deliveries and settles them.
    Consume,
    /// Looks at everything that its names fit; pauses and resumes, replays and purges.
    Operate,
    /// May do everything: settings and deletion too.
    Admin,
}

impl Role {
    /// All of them, the mightiest last.
    pub const ALL: [Role; 4] = [Role::Produce, Role::Consume, Role::Operate, Role::Admin];

    /// Its word.
    pub fn as_str(self) -> &'static str {
        match self {
            Role::Produce => "produce",
            Role::Consume => "consume",
            Role::Operate => "operate",
            Role::Admin => "admin",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A word that is not a [`Role`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a role: use produce, consume, operate or admin")]
pub struct BadRole(String);

impl FromStr for Role {
    type Err = BadRole;

    fn from_str(word: &str) -> Result<Role, BadRole> {
        Role::ALL.into_iter().find(|role| role.as_str() == word).ok_or_else(|| BadRole(word.into()))
    }
}

/// Somebody who may do something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// Whom it is given to, as it stands in logs.
    pub name: String,
    /// The hash of its secret, by [`hash_secret`].
    pub hash: [u8; 32],
    /// What it is good for.
    pub roles: Vec<Role>,
    /// For which topics and queues: patterns in which `*` stands for any characters. None fits nothing.
    pub topics: Vec<String>,
}

/// The hash under which a secret is kept.
pub fn hash_secret(secret: &str) -> [u8; 32] {
    *blake3::hash(secret.as_bytes()).as_bytes()
}

/// Who is let in. That can be replaced while doors are open.
#[derive(Debug)]
pub struct Access {
    /// `None`: everybody may do everything.
    tokens: RwLock<Option<Arc<[Arc<Token>]>>>,
}

/// Why somebody is not let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Denied {
    /// No token was shown.
    #[error("this server asks for a token: send `Authorization: Bearer TOKEN`, made by `punctual token`")]
    Missing,
    /// The token is none of those that are let in.
    #[error("this token is not known: it is mistyped, or it was revoked")]
    Unknown,
}

impl Access {
    /// Everybody may do everything; right where only this machine can connect.
    pub fn open() -> Access {
        Access { tokens: RwLock::new(None) }
    }

    /// Only who shows one of these tokens is let in. Without tokens that is nobody.
    pub fn with_tokens(tokens: Vec<Token>) -> Access {
        Access { tokens: RwLock::new(Some(tokens.into_iter().map(Arc::new).collect())) }
    }

    /// From now on, the same as if it had been made with these tokens. What was granted before stays granted
    /// to the requests that are under way.
    pub fn replace(&self, tokens: Vec<Token>) {
        let tokens = tokens.into_iter().map(Arc::new).collect();
        *self.tokens.write().unwrap_or_else(PoisonError::into_inner) = Some(tokens);
    }

    fn tokens(&self) -> Option<Arc<[Arc<Token>]>> {
        self.tokens.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether everybody may do everything.
    pub fn is_open(&self) -> bool {
        self.tokens().is_none()
    }

    /// Says what the one who shows this secret may do.
    pub fn check(&self, presented: Option<&str>) -> Result<Grant, Denied> {
        let Some(tokens) = self.tokens() else { return Ok(Grant { token: None }) };
        let hash = hash_secret(presented.ok_or(Denied::Missing)?);
        let mut found = u32::MAX;
        let mut any = Choice::from(0);
        for (index, token) in (0..).zip(tokens.iter()) {
            let same = hash[..].ct_eq(&token.hash[..]);
            found.conditional_assign(&index, same);
            any |= same;
        }
        if !bool::from(any) {
            return Err(Denied::Unknown);
        }
        let token = tokens.get(found as usize).ok_or(Denied::Unknown)?;
        Ok(Grant { token: Some(Arc::clone(token)) })
    }
}

/// What somebody may do who was let in.
#[derive(Clone, Debug)]
pub struct Grant {
    /// `None`: everything.
    token: Option<Arc<Token>>,
}

impl Grant {
    /// Whether this may be done: a role, and the topic or queue it is about, if it is about one. What is
    /// about none, such as the whole node, needs the role alone.
    pub fn may(&self, role: Role, name: Option<&str>) -> bool {
        let Some(token) = &self.token else { return true };
        let has_role = token.roles.iter().any(|has| *has == role || *has == Role::Admin);
        has_role && name.is_none_or(|name| token.topics.iter().any(|pattern| fits(pattern, name)))
    }

    /// Who it is, for the logs.
    pub fn name(&self) -> &str {
        self.token.as_ref().map_or(LOOPBACK, |token| &token.name)
    }
}

/// Whether a name fits a pattern in which `*` stands for any characters, also none.
fn fits(pattern: &str, name: &str) -> bool {
    let mut pieces = pattern.split('*');
    let Some(mut rest) = pieces.next().and_then(|first| name.strip_prefix(first)) else { return false };
    let mut pieces = pieces.peekable();
    if pieces.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(piece) = pieces.next() {
        if pieces.peek().is_none() {
            return rest.ends_with(piece);
        }
        // The first place is the best: it leaves the most for the pieces after it.
        match rest.find(piece) {
            Some(place) => rest = &rest[place + piece.len()..],
            None => return false,
        }
    }
    true
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test says what is wrong by panicking")]
mod tests {
    use super::*;

    fn token(name: &str, secret: &str, roles: &[Role], topics: &[&str]) -> Token {
        let topics = topics.iter().map(|topic| (*topic).to_owned()).collect();
        Token { name: name.into(), hash: hash_secret(secret), roles: roles.to_vec(), topics }
    }

    fn grant(roles: &[Role], topics: &[&str]) -> Grant {
        Access::with_tokens(vec![token("a", "secret", roles, topics)]).check(Some("secret")).unwrap()
    }

    #[test]
    fn an_open_door_lets_everybody_do_everything() {
        let access = Access::open();
        assert!(access.is_open());
        for presented in [None, Some("whatever")] {
            let grant = access.check(presented).unwrap();
            assert!(grant.may(Role::Admin, Some("orders")));
            assert_eq!(grant.name(), "loopback");
        }
    }

    #[test]
    fn who_shows_nothing_or_something_unknown_is_not_let_in() {
        let access = Access::with_tokens(vec![token("a", "secret", &[Role::Admin], &["*"])]);
        assert!(!access.is_open());
        assert_eq!(access.check(None).unwrap_err(), Denied::Missing);
        for wrong in ["", "secre", "secret ", "Secret"] {
            assert_eq!(access.check(Some(wrong)).unwrap_err(), Denied::Unknown, "{wrong:?}");
        }
    }

    #[test]
    fn without_tokens_nobody_is_let_in() {
        assert_eq!(Access::with_tokens(Vec::new()).check(Some("secret")).unwrap_err(), Denied::Unknown);
    }

    #[test]
    fn each_secret_finds_its_own_token() {
        let tokens = ["a", "b", "c"].map(|name| token(name, &format!("{name}-secret"), &[Role::Produce], &["*"]));
        let access = Access::with_tokens(tokens.to_vec());
        for name in ["a", "b", "c"] {
            assert_eq!(access.check(Some(&format!("{name}-secret"))).unwrap().name(), name);
        }
    }

    #[test]
    fn replaced_tokens_count_at_once() {
        let access = Access::with_tokens(vec![token("a", "old", &[Role::Admin], &["*"])]);
        access.replace(vec![token("b", "new", &[Role::Admin], &["*"])]);
        assert_eq!(access.check(Some("old")).unwrap_err(), Denied::Unknown);
        assert_eq!(access.check(Some("new")).unwrap().name(), "b");
    }

    #[test]
    fn a_role_is_good_for_itself_alone() {
        let produce = grant(&[Role::Produce], &["*"]);
        assert!(produce.may(Role::Produce, Some("orders")));
        assert!(!produce.may(Role::Consume, Some("orders")));
        assert!(!produce.may(Role::Operate, None));
        let both = grant(&[Role::Produce, Role::Consume], &["*"]);
        assert!(both.may(Role::Produce, None) && both.may(Role::Consume, None));
    }

    #[test]
    fn an_admin_may_do_everything_with_the_names_it_is_for() {
        let admin = grant(&[Role::Admin], &["orders*"]);
        assert!(Role::ALL.into_iter().all(|role| admin.may(role, Some("orders-unpaid"))));
        assert!(!admin.may(Role::Produce, Some("coupons")));
    }

    #[test]
    fn a_token_for_no_names_reaches_none() {
        let nothing = grant(&[Role::Admin], &[]);
        assert!(!nothing.may(Role::Produce, Some("orders")));
        assert!(nothing.may(Role::Operate, None));
    }

    #[test]
    fn a_star_stands_for_any_characters() {
        let yes = [
            ("*", ""),
            ("*", "orders"),
            ("orders", "orders"),
            ("orders*", "orders"),
            ("orders*", "orders-unpaid"),
            ("*-late", "a-late"),
            ("a*c", "ac"),
            ("a*c", "abcbc"),
            ("a*b*c", "a-b-b-c"),
            ("**", "x"),
            ("a*é", "aéé"),
        ];
        for (pattern, name) in yes {
            assert!(fits(pattern, name), "{pattern} {name}");
        }
        let no = [
            ("", "orders"),
            ("orders", "orders-unpaid"),
            ("orders*", "order"),
            ("*-late", "a-later"),
            ("a*a", "a"),
            ("a*b*c", "a-c-b"),
            ("ab*bc", "abc"),
            ("Orders", "orders"),
            ("a.c", "abc"),
        ];
        for (pattern, name) in no {
            assert!(!fits(pattern, name), "{pattern} {name}");
        }
    }

    #[test]
    fn roles_come_back_from_their_words() {
        for role in Role::ALL {
            assert_eq!(role.to_string().parse(), Ok(role));
        }
        assert_eq!(
            "root".parse::<Role>().unwrap_err().to_string(),
            "\"root\" is not a role: use produce, consume, operate or admin"
        );
    }
}
