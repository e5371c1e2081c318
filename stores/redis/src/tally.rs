//! A tally's name in Redis: kind, slot, and the topic or queue.

use punctual_core::Name;
use punctual_core::store::{Tally, TallyKind};

pub(crate) fn encode(tally: &Tally) -> Vec<u8> {
    let name = tally.name.as_ref().map_or("", Name::as_str);
    [&[tally.kind as u8], &tally.slot.to_be_bytes()[..], name.as_bytes()].concat()
}

pub(crate) fn decode(bytes: &[u8]) -> Option<Tally> {
    let (kind, rest) = bytes.split_first()?;
    let (slot, name) = rest.split_at_checked(8)?;
    let name = if name.is_empty() { None } else { Some(Name::read_back(std::str::from_utf8(name).ok()?).ok()?) };
    Some(Tally { kind: TallyKind::from_number(*kind)?, name, slot: u64::from_be_bytes(slot.try_into().ok()?) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tally_comes_back_as_it_was() {
        for tally in [Tally::named(TallyKind::Waiting, &Name::stored("orders")), Tally::slot(TallyKind::DueDay, 20_000)]
        {
            assert_eq!(decode(&encode(&tally)), Some(tally));
        }
        assert_eq!(decode(&[1, 2]), None);
        assert_eq!(decode(&[99; 9]), None);
    }
}
