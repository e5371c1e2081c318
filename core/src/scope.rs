//! Which names somebody has to do with: all of them, or those that fit a pattern.

use std::sync::Arc;

/// Topics and queues by their names: every one, or those that fit one of some patterns in which `*` stands for any
/// characters, also none. Cloning shares the patterns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scope(Option<Arc<[String]>>);

impl Scope {
    /// Every name.
    pub const ALL: Scope = Scope(None);

    /// The names that fit one of these patterns; without any, none.
    pub fn of(patterns: impl IntoIterator<Item = String>) -> Scope {
        let patterns: Arc<[String]> = patterns.into_iter().collect();
        // What lets everything through need not be asked about every name.
        let is_all = patterns.iter().any(|pattern| !pattern.is_empty() && pattern.bytes().all(|byte| byte == b'*'));
        Scope(if is_all { None } else { Some(patterns) })
    }

    /// Whether this is every name, also those that nobody has thought of yet.
    pub fn is_all(&self) -> bool {
        self.0.is_none()
    }

    /// The patterns that names are to fit; none if this is every name.
    pub fn patterns(&self) -> &[String] {
        self.0.as_deref().unwrap_or(&[])
    }

    /// Whether a name is among them.
    pub fn fits(&self, name: &str) -> bool {
        self.0.as_ref().is_none_or(|patterns| patterns.iter().any(|pattern| fits(pattern, name)))
    }
}

/// Whether a text fits a pattern in which `*` stands for any characters, also none.
pub fn fits(pattern: &str, text: &str) -> bool {
    let mut pieces = pattern.split('*');
    let Some(mut rest) = pieces.next().and_then(|first| text.strip_prefix(first)) else { return false };
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
mod tests {
    use super::*;

    fn scope(patterns: &[&str]) -> Scope {
        Scope::of(patterns.iter().map(|pattern| (*pattern).to_owned()))
    }

    #[test]
    fn a_scope_has_the_names_that_fit_one_of_its_patterns() {
        let orders = scope(&["orders*", "mails"]);
        assert!(orders.fits("orders-unpaid") && orders.fits("mails"));
        assert!(!orders.fits("coupons") && !orders.fits("mails-2") && !orders.is_all());
        assert!(!scope(&[]).fits("orders") && !scope(&[""]).fits("orders"));
    }

    #[test]
    fn a_scope_of_a_star_has_every_name() {
        assert_eq!(scope(&["mails", "*"]), Scope::ALL);
        assert_eq!(scope(&["**"]), Scope::ALL);
        assert!(Scope::ALL.is_all() && Scope::ALL.fits("orders"));
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
}
