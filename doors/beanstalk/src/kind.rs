//! The kinds of commands, as they are told apart and counted.

/// A kind of command.
///
/// They stand in the order of the `cmd-` lines of `stats`, and behind them those that have no line there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is the command of its name")]
pub enum Kind {
    Put,
    Peek,
    PeekReady,
    PeekDelayed,
    PeekBuried,
    Reserve,
    ReserveWithTimeout,
    Delete,
    Release,
    Use,
    Watch,
    Ignore,
    Bury,
    Kick,
    Touch,
    Stats,
    StatsJob,
    StatsTube,
    ListTubes,
    ListTubeUsed,
    ListTubesWatched,
    PauseTube,
    KickJob,
    ReserveJob,
    Quit,
}

use Kind::*;

/// What a line begins with, in the order in which it is asked: the first that fits decides, also if a blank that
/// is missing makes it a shorter one than was meant. So `stats-job` without a number is a bad `stats`.
const PREFIXES: [(&[u8], Kind); Kind::COUNT] = [
    (b"put ", Put),
    (b"peek ", Peek),
    (b"peek-ready", PeekReady),
    (b"peek-delayed", PeekDelayed),
    (b"peek-buried", PeekBuried),
    (b"reserve-with-timeout ", ReserveWithTimeout),
    (b"reserve-job ", ReserveJob),
    (b"reserve", Reserve),
    (b"delete ", Delete),
    (b"release ", Release),
    (b"bury ", Bury),
    (b"kick ", Kick),
    (b"kick-job ", KickJob),
    (b"touch ", Touch),
    (b"stats-job ", StatsJob),
    (b"stats-tube ", StatsTube),
    (b"stats", Stats),
    (b"use ", Use),
    (b"watch ", Watch),
    (b"ignore ", Ignore),
    (b"list-tubes-watched", ListTubesWatched),
    (b"list-tube-used", ListTubeUsed),
    (b"list-tubes", ListTubes),
    (b"quit", Quit),
    (b"pause-tube", PauseTube),
];

impl Kind {
    /// How many kinds there are.
    pub const COUNT: usize = 25;

    /// The kinds with a `cmd-` line in `stats`, in its order.
    pub const SHOWN: [Kind; 22] = [
        Put,
        Peek,
        PeekReady,
        PeekDelayed,
        PeekBuried,
        Reserve,
        ReserveWithTimeout,
        Delete,
        Release,
        Use,
        Watch,
        Ignore,
        Bury,
        Kick,
        Touch,
        Stats,
        StatsJob,
        StatsTube,
        ListTubes,
        ListTubeUsed,
        ListTubesWatched,
        PauseTube,
    ];

    /// The kinds that are counted without being shown by `stats`.
    pub const HIDDEN: [Kind; 2] = [KickJob, ReserveJob];

    /// Which command a line is, and what follows its word.
    pub fn of(line: &[u8]) -> Option<(Kind, &[u8])> {
        PREFIXES.iter().find_map(|(prefix, kind)| Some((*kind, line.strip_prefix(*prefix)?)))
    }

    /// The command's word.
    pub fn name(self) -> &'static str {
        match self {
            Put => "put",
            Peek => "peek",
            PeekReady => "peek-ready",
            PeekDelayed => "peek-delayed",
            PeekBuried => "peek-buried",
            Reserve => "reserve",
            ReserveWithTimeout => "reserve-with-timeout",
            Delete => "delete",
            Release => "release",
            Use => "use",
            Watch => "watch",
            Ignore => "ignore",
            Bury => "bury",
            Kick => "kick",
            Touch => "touch",
            Stats => "stats",
            StatsJob => "stats-job",
            StatsTube => "stats-tube",
            ListTubes => "list-tubes",
            ListTubeUsed => "list-tube-used",
            ListTubesWatched => "list-tubes-watched",
            PauseTube => "pause-tube",
            KickJob => "kick-job",
            ReserveJob => "reserve-job",
            Quit => "quit",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_its_place_and_its_word() {
        let all = Kind::SHOWN.into_iter().chain(Kind::HIDDEN).chain([Quit]);
        let all: Vec<Kind> = all.collect();
        assert_eq!(all.len(), Kind::COUNT);
        for (place, kind) in all.into_iter().enumerate() {
            assert_eq!(kind as usize, place);
            let line = format!("{} ", kind.name());
            assert_eq!(Kind::of(line.as_bytes()).map(|(kind, _)| kind), Some(kind));
        }
    }

    #[test]
    fn the_rest_of_the_line_is_handed_on_as_it_is() {
        assert_eq!(Kind::of(b"delete  7 "), Some((Delete, &b" 7 "[..])));
        assert_eq!(Kind::of(b"pause-tubefoo 1"), Some((PauseTube, &b"foo 1"[..])));
        assert_eq!(Kind::of(b"quitx"), Some((Quit, &b"x"[..])));
    }

    #[test]
    fn words_that_need_a_blank_are_unknown_without() {
        let words = ["put", "delete", "use", "kick", "touch", "watch", "peek", "bury", "release", "ignore", "kick-job"];
        for word in words.into_iter().chain(["list-tube", "peek-", "", " stats", "STATS", "Put 1 1 1 1", "\nstats"]) {
            assert_eq!(Kind::of(word.as_bytes()), None, "{word:?}");
        }
    }

    #[test]
    fn a_shorter_word_that_fits_decides() {
        let fits = |line: &str| Kind::of(line.as_bytes()).map(|(kind, _)| kind);
        for line in ["reserve-job", "reserve-with-timeout", "reservex", "reserve-jobs 1"] {
            assert_eq!(fits(line), Some(Reserve), "{line}");
        }
        for line in ["stats-job", "stats-tube", "stats-x", "stats "] {
            assert_eq!(fits(line), Some(Stats), "{line}");
        }
        assert_eq!(fits("peek-readyx"), Some(PeekReady));
        assert_eq!(fits("list-tubes-x"), Some(ListTubes));
        assert_eq!(fits("list-tubes-watchedx"), Some(ListTubesWatched));
    }
}
