//! All that was measured, so that the aims can be held against it.

use super::contestants::Contestant;
use super::engine::Kind;
use super::measured::Measured;
use super::own::Own;
use super::stage::Line;

#[derive(Default)]
pub struct Findings {
    pub lines: Vec<(Kind, Contestant, Line, Measured)>,
    pub own: Own,
}

impl Findings {
    pub fn of(&self, kind: Kind, contestant: Contestant, line: Line) -> Option<&Measured> {
        let found = self.lines.iter().find(|found| (found.0, found.1, found.2) == (kind, contestant, line));
        found.map(|(.., measured)| measured)
    }

    /// The peer that is fastest at whole lives on a database, and its rate.
    pub fn best_peer(&self, kind: Kind) -> Option<(Contestant, f64)> {
        let peers = self.lines.iter().filter(|(on, who, line, _)| {
            *on == kind && *line == Line::Lives && !matches!(who, Contestant::Punctual | Contestant::Raw)
        });
        peers.map(|(_, who, _, measured)| (*who, measured.a_second)).max_by(|a, b| a.1.total_cmp(&b.1))
    }
}
