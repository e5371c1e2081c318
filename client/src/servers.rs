//! Which of several servers is asked: the first in their order that is not away, for as long as it answers.
//!
//! Time comes in as an argument, and a server is whatever stands for one. Who was away is looked at beside the requests,
//! and asked again only when it is found ready, so that no request pays for trying. One that goes away again soon is
//! left alone for longer each time.

use std::time::Duration;

use tokio::time::Instant;

/// A server that went away is looked at after this at the earliest.
const FIRST_REST: Duration = Duration::from_secs(1);

/// And after this at the latest, however often it went away.
const LONGEST_REST: Duration = Duration::from_secs(30);

/// A server that has stayed for so long is trusted again like one that was never away.
const CALM: Duration = Duration::from_secs(60);

/// All servers that are known: those that were given, in their order, and after them those that were learned.
#[derive(Debug)]
pub(crate) struct Servers<S> {
    known: Vec<Known<S>>,
    next_number: u64,
}

#[derive(Debug)]
struct Known<S> {
    /// Never given twice, so that word of a server that was forgotten meanwhile means no other.
    number: u64,
    url: String,
    server: S,
    learned: bool,
    away: Option<Away>,
    /// How long it was left alone the last time.
    rest: Duration,
    back_at: Option<Instant>,
}

#[derive(Debug)]
struct Away {
    look_at: Instant,
    /// Somebody looks already.
    looking: bool,
}

impl<S: Clone> Servers<S> {
    pub fn new() -> Servers<S> {
        Servers { known: Vec::new(), next_number: 0 }
    }

    /// One more that was given; the same again is one.
    pub fn add(&mut self, url: String, server: S) {
        if !self.has(&url) {
            self.push(url, server, false);
        }
    }

    /// Those that are there by the word of one of them: new ones come last, and learned ones that it does not name go.
    pub fn learn(&mut self, urls: &[String], reach: impl Fn(&str) -> Option<S>) {
        self.known.retain(|known| !known.learned || urls.contains(&known.url));
        for url in urls {
            if !self.has(url)
                && let Some(server) = reach(url)
            {
                self.push(url.clone(), server, true);
            }
        }
    }

    /// Whether there is another to go to.
    pub fn are_several(&self) -> bool {
        self.known.len() > 1
    }

    /// Whom to ask, besides these. Those that are away come last: perhaps they are back.
    pub fn choose(&self, tried: &[u64]) -> Option<(u64, S)> {
        let left = self.known.iter().filter(|known| !tried.contains(&known.number));
        // Of equals the first is taken, so this keeps their order.
        left.min_by_key(|known| known.away.is_some()).map(|known| (known.number, known.server.clone()))
    }

    /// It has answered.
    pub fn answered(&mut self, number: u64, now: Instant) {
        if let Some(known) = self.find(number)
            && known.away.take().is_some()
        {
            known.back_at = Some(now);
        }
    }

    /// It could not be asked.
    pub fn failed(&mut self, number: u64, now: Instant) {
        let Some(known) = self.find(number) else { return };
        if known.away.is_some() {
            return;
        }
        let is_calm = known.back_at.is_none_or(|back_at| now.duration_since(back_at) >= CALM);
        known.rest = if is_calm { FIRST_REST } else { (known.rest * 2).min(LONGEST_REST) };
        known.away = Some(Away { look_at: now + known.rest, looking: false });
    }

    /// Those that are away and to be looked at now. What is seen is told by [`Servers::looked`].
    pub fn due_for_a_look(&mut self, now: Instant) -> Vec<(u64, S)> {
        let mut found = Vec::new();
        for known in &mut self.known {
            if let Some(away) = known.away.as_mut().filter(|away| !away.looking && away.look_at <= now) {
                away.looking = true;
                found.push((known.number, known.server.clone()));
            }
        }
        found
    }

    /// Whether one that was away is ready.
    pub fn looked(&mut self, number: u64, ready: bool, now: Instant) {
        if ready {
            return self.answered(number, now);
        }
        if let Some(known) = self.find(number) {
            known.rest = (known.rest * 2).min(LONGEST_REST);
            known.away = Some(Away { look_at: now + known.rest, looking: false });
        }
    }

    fn has(&self, url: &str) -> bool {
        self.known.iter().any(|known| known.url == url)
    }

    fn find(&mut self, number: u64) -> Option<&mut Known<S>> {
        self.known.iter_mut().find(|known| known.number == number)
    }

    fn push(&mut self, url: String, server: S, learned: bool) {
        let number = self.next_number;
        self.next_number += 1;
        self.known.push(Known { number, url, server, learned, away: None, rest: FIRST_REST, back_at: None });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn servers() -> Servers<&'static str> {
        let mut servers = Servers::new();
        for name in ["a", "b", "a"] {
            servers.add(name.into(), name);
        }
        servers
    }

    fn chosen(servers: &Servers<&'static str>) -> &'static str {
        servers.choose(&[]).unwrap().1
    }

    #[test]
    fn the_first_is_asked_until_it_fails_and_again_when_it_is_seen_to_be_ready() {
        let (mut servers, now) = (servers(), Instant::now());
        assert_eq!(chosen(&servers), "a");
        servers.failed(0, now);
        assert_eq!(chosen(&servers), "b");
        assert!(servers.due_for_a_look(now + SECOND / 2).is_empty());
        assert_eq!(servers.due_for_a_look(now + SECOND), [(0, "a")]);
        assert!(servers.due_for_a_look(now + SECOND).is_empty(), "one look at a time");
        assert_eq!(chosen(&servers), "b");
        servers.looked(0, true, now + SECOND);
        assert_eq!(chosen(&servers), "a");
    }

    #[test]
    fn one_that_keeps_going_away_is_left_alone_for_longer_each_time() {
        let (mut servers, mut now) = (servers(), Instant::now());
        let mut rests = Vec::new();
        for _ in 0..7 {
            servers.failed(0, now);
            let failed_at = now;
            while servers.due_for_a_look(now).is_empty() {
                now += SECOND / 4;
            }
            rests.push((now - failed_at).as_secs());
            servers.looked(0, true, now);
        }
        assert_eq!(rests, [1, 2, 4, 8, 16, 30, 30]);
        now += CALM;
        servers.failed(0, now);
        assert_eq!(servers.due_for_a_look(now + SECOND), [(0, "a")]);
    }

    #[test]
    fn one_that_stays_away_is_looked_at_less_and_less() {
        let (mut servers, now) = (servers(), Instant::now());
        servers.failed(0, now);
        servers.failed(0, now + SECOND / 2);
        assert_eq!(servers.due_for_a_look(now + SECOND), [(0, "a")]);
        servers.looked(0, false, now + SECOND);
        assert!(servers.due_for_a_look(now + 2 * SECOND).is_empty());
        assert_eq!(servers.due_for_a_look(now + 3 * SECOND), [(0, "a")]);
    }

    #[test]
    fn when_all_are_away_all_are_asked_in_their_order() {
        let (mut servers, now) = (servers(), Instant::now());
        servers.failed(0, now);
        servers.failed(1, now);
        assert_eq!(servers.choose(&[]), Some((0, "a")));
        assert_eq!(servers.choose(&[0]), Some((1, "b")));
        assert_eq!(servers.choose(&[0, 1]), None);
        servers.answered(1, now);
        assert_eq!(chosen(&servers), "b");
    }

    #[test]
    fn learned_ones_come_last_and_go_when_they_are_not_named_any_more() {
        let (mut servers, now) = (servers(), Instant::now());
        let reach = |url: &str| match url {
            "c" => Some("c"),
            "d" => Some("d"),
            _ => None,
        };
        servers.learn(&["c".into(), "a".into(), "not to be reached".into()], reach);
        servers.failed(0, now);
        assert_eq!(chosen(&servers), "b");
        servers.failed(1, now);
        assert_eq!(servers.choose(&[]), Some((2, "c")));
        servers.learn(&["d".into()], reach);
        assert_eq!(servers.choose(&[]), Some((3, "d")));
        // Word of what was forgotten is about nobody.
        servers.failed(2, now);
        assert_eq!(servers.choose(&[0, 1, 3]), None);
    }
}
