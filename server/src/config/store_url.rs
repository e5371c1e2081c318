//! Where tasks are kept, as it is written: the name of a store of our own, or the URL of a database.
//!
//! **Invariant**: a password goes from here to the store that is opened with it, and nowhere else. What is shown, logged
//! or told as wrong has [`MASK`] in its place.

use std::path::Path;
use std::{fmt, fs};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// What stands in the place of a password.
pub const MASK: &str = "***";

/// What can stand in a URL's password as it is.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// A text that is not to be seen.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(pub String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}

impl Secret {
    /// Understands one. What was printed is none.
    pub fn read(text: &str) -> Result<Secret, String> {
        if text == MASK { Err(masked()) } else { Ok(Secret(text.to_owned())) }
    }

    /// The one that a file holds, and nothing else.
    pub fn from_file(path: &Path) -> Result<Secret, String> {
        match fs::read_to_string(path) {
            Ok(text) => Ok(Secret(text.trim_end_matches(['\r', '\n']).to_owned())),
            Err(error) => Err(format!("the file of the password, {}, cannot be read: {error}", path.display())),
        }
    }
}

/// Where tasks are kept. Its form is right; whether there is such a store is for the stores to say.
#[derive(Clone, PartialEq, Eq)]
pub struct StoreUrl {
    /// What comes before `://`, or the whole name of a store of our own.
    scheme: String,
    /// What comes after it.
    rest: Option<Rest>,
}

/// A URL without its scheme: `USER:PASSWORD@AUTHORITY` and the path and query after it.
#[derive(Clone, PartialEq, Eq)]
struct Rest {
    user: Option<String>,
    password: Option<String>,
    /// Hosts and ports.
    hosts: String,
    /// From the first slash or question mark on.
    tail: String,
}

impl StoreUrl {
    /// Understands one, or says what to write. What was written is not repeated: it may have a password in it.
    pub fn read(text: &str) -> Result<StoreUrl, String> {
        let Some((scheme, rest)) = text.split_once("://") else {
            let is_name = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_lowercase());
            let name = || StoreUrl { scheme: text.to_owned(), rest: None };
            return if is_name { Ok(name()) } else { Err("neither the name of a store nor a URL".to_owned()) };
        };
        let (authority, tail) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        let path = tail.split('?').next().unwrap_or(tail);
        // What comes before the last `@` may be the rest of a password.
        if path.contains('@') || (tail.contains('@') && !authority.contains('@')) {
            return Err(
                "a `/`, `?` or `#` in the password must be written as %2F, %3F or %23, and an `@` as %40; or give \
                        the password by `store.password_file`"
                    .to_owned(),
            );
        }
        let (account, hosts) = authority.rsplit_once('@').map_or((None, authority), |(who, hosts)| (Some(who), hosts));
        let (user, password) = match account.map(|account| account.split_once(':').unwrap_or((account, ""))) {
            Some((user, password)) => (Some(user.to_owned()), Some(password.to_owned())),
            None => (None, None),
        };
        let password = password.filter(|password| !password.is_empty());
        if password.as_deref() == Some(MASK) {
            return Err(masked());
        }
        let (hosts, tail) = (hosts.to_owned(), tail.to_owned());
        Ok(StoreUrl { scheme: scheme.to_ascii_lowercase(), rest: Some(Rest { user, password, hosts, tail }) })
    }

    /// What kind of store it is: `almanac`, `postgres`, …
    pub fn scheme(&self) -> &str {
        &self.scheme
    }

    /// Whether it is a URL, and not the name of a store of our own.
    pub fn is_remote(&self) -> bool {
        self.rest.is_some()
    }

    /// The first of its hosts, if it names one.
    pub fn host(&self) -> Option<&str> {
        let first = self.rest.as_ref()?.hosts.split(',').next()?;
        let host = match first.strip_prefix('[') {
            Some(bracketed) => bracketed.split(']').next()?,
            None => first.split(':').next()?,
        };
        (!host.is_empty()).then_some(host)
    }

    /// Whether the password is in it.
    pub fn has_password(&self) -> bool {
        self.rest.as_ref().is_some_and(|rest| rest.password.is_some() || rest.shown_tail() != rest.tail)
    }

    /// The same without the password and whatever else looks like a secret.
    pub fn without_secrets(&self) -> StoreUrl {
        let rest = self.rest.as_ref().map(|rest| Rest {
            user: rest.user.clone().filter(|user| !user.is_empty()),
            password: None,
            tail: rest.open_tail(),
            hosts: rest.hosts.clone(),
        });
        StoreUrl { scheme: self.scheme.clone(), rest }
    }

    /// All of it, with the password: the one in it, or this one.
    pub fn whole(&self, password: Option<&Secret>) -> String {
        let encoded = password.map(|Secret(password)| utf8_percent_encode(password, PLAIN).to_string());
        self.written(|rest| encoded.or_else(|| rest.password.clone()), |rest| rest.tail.clone())
    }

    fn written(&self, password: impl FnOnce(&Rest) -> Option<String>, tail: impl FnOnce(&Rest) -> String) -> String {
        let Some(rest) = &self.rest else { return self.scheme.clone() };
        let user = rest.user.clone().unwrap_or_default();
        let account = match (password(rest), &rest.user) {
            (Some(password), _) => format!("{user}:{password}@"),
            (None, Some(_)) => format!("{user}@"),
            (None, None) => String::new(),
        };
        format!("{}://{account}{}{}", self.scheme, rest.hosts, tail(rest))
    }
}

impl Rest {
    /// The path and the query, without what looks like a secret.
    fn shown_tail(&self) -> String {
        let Some((path, query)) = self.tail.split_once('?') else { return self.tail.clone() };
        let shown = query.split('&').map(|pair| match pair.split_once('=') {
            Some((name, _)) if is_secret(name) => format!("{name}={MASK}"),
            _ => pair.to_owned(),
        });
        format!("{path}?{}", shown.collect::<Vec<_>>().join("&"))
    }

    /// The same without even the names of secrets.
    fn open_tail(&self) -> String {
        let Some((path, query)) = self.tail.split_once('?') else { return self.tail.clone() };
        let is_open = |pair: &&str| pair.split_once('=').is_none_or(|(name, _)| !is_secret(name));
        let open: Vec<&str> = query.split('&').filter(is_open).collect();
        if open.is_empty() { path.to_owned() } else { format!("{path}?{}", open.join("&")) }
    }
}

/// Whether a parameter of this name is not to be seen.
fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["password", "passwd", "secret", "token"].iter().any(|word| name.contains(word))
}

fn masked() -> String {
    format!(
        "the password is masked as {MASK}, as `punctual config` prints it: give the password itself, or `store.password_file`"
    )
}

/// Without the password.
impl fmt::Display for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.written(|rest| rest.password.as_ref().map(|_| MASK.to_owned()), Rest::shown_tail))
    }
}

impl fmt::Debug for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> StoreUrl {
        StoreUrl::read(text).unwrap_or_else(|why| panic!("{text}: {why}"))
    }

    #[test]
    fn what_was_read_is_handed_on_as_it_was() {
        for text in [
            "almanac",
            "postgres://db.example.com/punctual",
            "postgres://user:p%40ss@db:5432,other:5432/punctual?sslmode=require",
            "postgresql:///punctual?host=/run/postgresql",
            "mysql://user@[::1]:3306/punctual",
            "redis://:secret@127.0.0.1:6379/2",
            "rediss://user:@cache",
        ] {
            // A password that is empty is none.
            assert_eq!(read(text).whole(None), text.replace("user:@", "user@"));
        }
    }

    #[test]
    fn a_password_is_never_shown() {
        for (text, shown) in [
            ("postgres://user:hunter2@db/punctual", "postgres://user:***@db/punctual"),
            ("redis://:hunter2@cache", "redis://:***@cache"),
            ("postgres://u:a:hunter2@db", "postgres://u:***@db"),
            ("postgres://db/x?user=u&password=hunter2&a=b", "postgres://db/x?user=u&password=***&a=b"),
            ("mysql://u:hunter2@h@db/x", "mysql://u:***@db/x"),
        ] {
            let url = read(text);
            assert_eq!((url.to_string().as_str(), format!("{url:?}").as_str()), (shown, shown));
            assert!(url.has_password());
        }
        assert!(!read("postgres://user@db/x?sslmode=require").has_password());
        assert_eq!(format!("{:?}", Secret("hunter2".into())), MASK);
    }

    #[test]
    fn a_password_from_elsewhere_is_written_as_a_url_wants_it() {
        let secret = Secret("p@ss/wörd:?".into());
        let whole = |text: &str| read(text).whole(Some(&secret));
        assert_eq!(whole("postgres://user@db/x"), "postgres://user:p%40ss%2Fw%C3%B6rd%3A%3F@db/x");
        assert_eq!(whole("redis://cache"), "redis://:p%40ss%2Fw%C3%B6rd%3A%3F@cache");
    }

    #[test]
    fn what_is_wrong_is_told_without_repeating_it() {
        for (text, told) in [
            ("", "neither the name of a store"),
            ("/var/hunter2", "neither the name of a store"),
            ("postgres://user:hunt/er2@db/x", "%2F"),
            ("postgres://user:hunter2?@db/x", "%3F"),
            ("postgres://user:***@db/x", "masked as ***"),
        ] {
            let why = StoreUrl::read(text).expect_err(text);
            assert!(why.contains(told) && !why.contains("er2"), "{text}: {why}");
        }
        assert!(Secret::read(MASK).is_err());
    }
}
