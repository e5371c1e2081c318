//! What can happen to a file between two syncs, and what a power loss may leave of it.

use punctual_chance::Chance;

use crate::image::Image;

/// What a device writes as a whole, or not at all.
const SECTOR: u64 = 512;

/// Something that happened to a file.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    Write { offset: u64, bytes: Vec<u8> },
    Allocate { length: u64 },
    Punch { offset: u64, length: u64 },
    Empty,
}

impl Change {
    /// All of it happens.
    pub(crate) fn apply(&self, image: &mut Image) {
        match self {
            Change::Write { offset, bytes } => image.write(*offset, bytes),
            Change::Allocate { length } => image.allocate(*length),
            Change::Punch { offset, length } => image.punch(*offset, *length),
            Change::Empty => image.empty(),
        }
    }

    /// Only what is before some byte happens. What concerns lengths happens as a whole or not at all.
    pub(crate) fn tear_at_a_byte(&self, image: &mut Image, chance: &mut Chance) {
        match self.extent() {
            Some((offset, length)) => {
                let kept = chance.below(length + 1);
                self.apply_between(image, offset, offset + kept);
            }
            None if chance.happens(1, 2) => self.apply(image),
            None => {}
        }
        self.leave_the_length(image, chance);
    }

    /// Only some sectors happen, in no order.
    pub(crate) fn tear_into_sectors(&self, image: &mut Image, chance: &mut Chance) {
        let Some((offset, length)) = self.extent() else {
            return self.tear_at_a_byte(image, chance);
        };
        let mut at = offset;
        while at < offset + length {
            let until = (offset + length).min((at / SECTOR + 1) * SECTOR);
            if chance.happens(1, 2) {
                self.apply_between(image, at, until);
            }
            at = until;
        }
        self.leave_the_length(image, chance);
    }

    /// No byte survives.
    pub(crate) fn lose(&self, image: &mut Image, chance: &mut Chance) {
        if chance.happens(1, 2) {
            self.leave_the_length(image, chance);
        }
    }

    /// The length of a file is kept apart from its bytes: it may survive where they did not, and
    /// then there are zeros.
    fn leave_the_length(&self, image: &mut Image, chance: &mut Chance) {
        if let Change::Write { offset, bytes } = self
            && chance.happens(1, 2)
        {
            image.grow(offset + bytes.len() as u64);
        }
    }

    /// Where it is and how long, if it can happen in part.
    fn extent(&self) -> Option<(u64, u64)> {
        match self {
            Change::Write { offset, bytes } => Some((*offset, bytes.len() as u64)),
            Change::Punch { offset, length } => Some((*offset, *length)),
            Change::Allocate { .. } | Change::Empty => None,
        }
    }

    /// The part between these places of the file happens; they are within the extent.
    fn apply_between(&self, image: &mut Image, from: u64, until: u64) {
        match self {
            Change::Write { offset, bytes } => {
                image.write(from, &bytes[(from - offset) as usize..(until - offset) as usize]);
            }
            Change::Punch { .. } => image.punch(from, until - from),
            Change::Allocate { .. } | Change::Empty => self.apply(image),
        }
    }
}

/// What a power loss leaves of all that was not synced.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Survival {
    Nothing,
    Everything,
    /// All until this moment; what happened then is torn.
    Until {
        moment: u64,
    },
    /// Each for itself, in so many of eight cases; in three others it is torn, and lost in the rest.
    Scattered {
        whole: u64,
    },
}

impl Survival {
    /// Draws one, given when everything happened that was not synced.
    pub(crate) fn draw(moments: &[u64], chance: &mut Chance) -> Survival {
        match chance.below(8) {
            0 => Survival::Nothing,
            1 => Survival::Everything,
            2..5 => match moments.get(chance.below(moments.len() as u64) as usize) {
                Some(moment) => Survival::Until { moment: *moment },
                None => Survival::Nothing,
            },
            _ => Survival::Scattered { whole: 1 + chance.below(5) },
        }
    }

    /// Does to the image what is left of a change that happened at this moment.
    pub(crate) fn apply(self, change: &Change, at: u64, image: &mut Image, chance: &mut Chance) {
        match self {
            Survival::Nothing => {}
            Survival::Everything => change.apply(image),
            Survival::Until { moment } if at < moment => change.apply(image),
            Survival::Until { moment } if at == moment => change.tear_at_a_byte(image, chance),
            Survival::Until { .. } => {}
            Survival::Scattered { whole } => match chance.below(8) {
                case if case < whole => change.apply(image),
                case if case == whole => change.tear_at_a_byte(image, chance),
                case if case <= whole + 2 => change.tear_into_sectors(image, chance),
                _ => change.lose(image, chance),
            },
        }
    }
}
