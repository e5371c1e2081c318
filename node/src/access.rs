//! Who may do what: tokens, their roles, and the topics and queues they are for. Shared by all doors.
//!
//! Only hashes are kept. A secret is 256 random bits, so guessing it is hopeless however fast the hash is:
//! a slow password hash would protect nothing here and cost every request milliseconds.
//!
//! **Invariant**: how long a check takes does not tell how near a guess was, nor which token it met.
//! All tokens are looked at each time, each in constant time.

use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, LazyLock};

use punctual_core::{Name, Scope};
use serde::{Deserialize, Serialize};
use subtle::{Choice, ConditionallySelectable, ConstantTimeEq};
use tokio::sync::watch;

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
    /// Looks at everything that its names fit, and changes nothing.
    View,
    /// Looks as `View` does; pauses and resumes, replays and purges, cancels and moves tasks.
    Operate,
    /// May do everything: settings and deletion too.
    Admin,
}

impl Role {
    /// All of them, the mightiest last.
    pub const ALL: [Role; 5] = [Role::Produce, Role::Consume, Role::View, Role::Operate, Role::Admin];

    /// Its word.
    pub fn as_str(self) -> &'static str {
        match self {
            Role::Produce => "produce",
            Role::Consume => "consume",
            Role::View => "view",
            Role::Operate => "operate",
            Role::Admin => "admin",
        }
    }

    /// Whether who has this role may do what another one is needed for.
    fn covers(self, other: Role) -> bool {
        self == other || self == Role::Admin || (self == Role::Operate && other == Role::View)
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A word that is not a [`Role`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a role: use produce, consume, view, operate or admin")]
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

/// A token, and the names that its patterns fit.
#[derive(Debug)]
struct Known {
    token: Token,
    scope: Scope,
    /// Its name, as events tell it.
    by: Option<Name>,
}

/// All tokens that are let in; `None`: everybody may do everything.
type Tokens = Option<Arc<[Arc<Known>]>>;

/// Who is let in. That can be replaced while doors are open.
#[derive(Debug)]
pub struct Access {
    tokens: watch::Sender<Tokens>,
}

/// Why somebody is not let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Denied {
    /// No token was shown.
    #[error("this server needs a token: send `Authorization: Bearer TOKEN`, with one created by `punctual token`")]
    Missing,
    /// The token is none of those that are let in.
    #[error("unknown token: it is mistyped or was revoked")]
    Unknown,
}

impl Access {
    /// Everybody may do everything; right where only this machine can connect.
    pub fn open() -> Access {
        Access { tokens: watch::Sender::new(None) }
    }

    /// Only who shows one of these tokens is let in. Without tokens that is nobody.
    pub fn with_tokens(tokens: Vec<Token>) -> Access {
        let access = Access::open();
        access.replace(tokens);
        access
    }

    /// From now on, the same as if it had been made with these tokens. A request that is being carried out goes on;
    /// what lasts longer watches [`until_withdrawn`](Access::until_withdrawn).
    pub fn replace(&self, tokens: Vec<Token>) {
        let known = |token: Token| {
            let (scope, by) = (Scope::of(token.topics.iter().cloned()), Name::read_back(&token.name).ok());
            Arc::new(Known { token, scope, by })
        };
        self.tokens.send_replace(Some(tokens.into_iter().map(known).collect()));
    }

    fn tokens(&self) -> Tokens {
        self.tokens.borrow().clone()
    }

    /// Whether everybody may do everything.
    pub fn is_open(&self) -> bool {
        self.tokens.borrow().is_none()
    }

    /// The tokens that are let in; none if everybody is.
    pub fn known(&self) -> Vec<Token> {
        self.tokens()
            .into_iter()
            .flat_map(|tokens| tokens.iter().map(|known| known.token.clone()).collect::<Vec<_>>())
            .collect()
    }

    /// Waits until what was granted is not any more: the token was revoked or is for something else now, or one is
    /// needed where none was.
    pub async fn until_withdrawn(&self, grant: &Grant) {
        // The other end is here, so this ends by what is waited for and by nothing else.
        _ = self.tokens.subscribe().wait_for(|tokens| !grant.is_among(tokens)).await;
    }

    /// Says what the one who shows this secret may do.
    pub fn check(&self, presented: Option<&str>) -> Result<Grant, Denied> {
        let Some(tokens) = self.tokens() else { return Ok(Grant { known: None }) };
        let hash = hash_secret(presented.ok_or(Denied::Missing)?);
        let mut found = u32::MAX;
        let mut any = Choice::from(0);
        for (index, known) in (0..).zip(tokens.iter()) {
            let same = hash[..].ct_eq(&known.token.hash[..]);
            found.conditional_assign(&index, same);
            any |= same;
        }
        if !bool::from(any) {
            return Err(Denied::Unknown);
        }
        let known = tokens.get(found as usize).ok_or(Denied::Unknown)?;
        Ok(Grant { known: Some(Arc::clone(known)) })
    }
}

/// What somebody may do who was let in.
#[derive(Clone, Debug)]
pub struct Grant {
    /// `None`: everything.
    known: Option<Arc<Known>>,
}

impl Grant {
    /// Whether this may be done: a role, and the topic or queue it is about, if it is about one. What is
    /// about none needs the role alone, and is shown and done only as far as the [`scope`](Grant::scope) goes.
    pub fn may(&self, role: Role, name: Option<&str>) -> bool {
        let Some(known) = &self.known else { return true };
        let has_role = known.token.roles.iter().any(|has| has.covers(role));
        has_role && name.is_none_or(|name| known.scope.fits(name))
    }

    /// The topics and queues it is good for.
    pub fn scope(&self) -> &Scope {
        self.known.as_ref().map_or(&Scope::ALL, |known| &known.scope)
    }

    /// Who it is, for the logs.
    pub fn name(&self) -> &str {
        self.known.as_ref().map_or(LOOPBACK, |known| &known.token.name)
    }

    /// The same, for events.
    pub fn by(&self) -> Option<&Name> {
        static LOOPBACK_NAME: LazyLock<Option<Name>> = LazyLock::new(|| Name::read_back(LOOPBACK).ok());
        self.known.as_ref().map_or(LOOPBACK_NAME.as_ref(), |known| known.by.as_ref())
    }

    /// What it is good for, as the token says.
    pub fn roles(&self) -> &[Role] {
        self.known.as_ref().map_or(&[Role::Admin], |known| &known.token.roles)
    }

    /// For which topics and queues, as the token says.
    pub fn patterns(&self) -> Vec<String> {
        self.known.as_ref().map_or_else(|| vec!["*".into()], |known| known.token.topics.clone())
    }

    fn is_among(&self, tokens: &Tokens) -> bool {
        match (&self.known, tokens) {
            (None, None) => true,
            (Some(known), Some(tokens)) => tokens.iter().any(|other| other.token == known.token),
            _ => false,
        }
    }
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
    fn who_views_looks_and_who_operates_may_look_too() {
        let view = grant(&[Role::View], &["*"]);
        assert!(view.may(Role::View, Some("orders")));
        assert!(Role::ALL.into_iter().all(|role| role == Role::View || !view.may(role, Some("orders"))));
        assert!(grant(&[Role::Operate], &["*"]).may(Role::View, None));
        assert!(!grant(&[Role::Produce, Role::Consume], &["*"]).may(Role::View, None));
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
        assert!(!nothing.scope().fits("orders"));
    }

    /// Whether what was granted is withdrawn; it is told at once or not at all.
    fn is_withdrawn(access: &Access, grant: &Grant) -> bool {
        let mut waiting = std::pin::pin!(access.until_withdrawn(grant));
        waiting.as_mut().poll(&mut std::task::Context::from_waker(std::task::Waker::noop())).is_ready()
    }

    #[test]
    fn what_was_granted_is_withdrawn_when_its_token_goes_or_changes() {
        let orders = || token("a", "secret", &[Role::View], &["orders"]);
        let access = Access::with_tokens(vec![orders()]);
        let grant = access.check(Some("secret")).unwrap();
        assert!(!is_withdrawn(&access, &grant));
        access.replace(vec![token("b", "other", &[Role::Admin], &["*"]), orders()]);
        assert!(!is_withdrawn(&access, &grant), "the tokens of others do not matter");
        for changed in [
            token("a", "secret", &[Role::View], &["coupons"]),
            token("a", "secret", &[Role::Consume], &["orders"]),
            token("a", "new", &[Role::View], &["orders"]),
        ] {
            access.replace(vec![changed]);
            assert!(is_withdrawn(&access, &grant));
        }
        access.replace(Vec::new());
        assert!(is_withdrawn(&access, &grant));
    }

    #[test]
    fn what_an_open_door_granted_is_withdrawn_when_tokens_are_made() {
        let access = Access::open();
        let grant = access.check(None).unwrap();
        assert!(!is_withdrawn(&access, &grant));
        access.replace(vec![token("a", "secret", &[Role::Admin], &["*"])]);
        assert!(is_withdrawn(&access, &grant));
    }

    #[test]
    fn roles_come_back_from_their_words() {
        for role in Role::ALL {
            assert_eq!(role.to_string().parse(), Ok(role));
        }
        assert_eq!(
            "root".parse::<Role>().unwrap_err().to_string(),
            "\"root\" is not a role: use produce, consume, view, operate or admin"
        );
    }
}
