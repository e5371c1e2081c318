//! What a node says of itself with each beat: where it is reached, and what it is.
//!
//! The store keeps it as the text of [`Beat::address`](punctual_core::store::Beat::address): `word=value` pairs between
//! spaces, values without spaces. Words that a node does not know are another version's, and are passed over.

use std::fmt;
use std::ops::RangeInclusive;

use punctual_core::Timestamp;

/// What a node says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Card {
    /// Where other nodes reach it.
    pub link: Option<String>,
    /// Where clients reach it over HTTP.
    pub url: Option<String>,
    /// The version of its software.
    pub version: Option<String>,
    /// When it was started.
    pub since: Option<Timestamp>,
    /// Whether it is about to stop, and gives its shards to others.
    pub is_leaving: bool,
    /// By how many microseconds its machine's clock is ahead of the store's.
    pub skew: Option<i64>,
    /// The levels of what is stored that it can read and write.
    pub levels: Option<RangeInclusive<u32>>,
}

impl Card {
    /// Reads what a node wrote, as far as it is understood.
    pub fn read(text: &str) -> Card {
        let mut card = Card::default();
        for (word, value) in text.split(' ').filter_map(|pair| pair.split_once('=')) {
            match word {
                "link" => card.link = Some(value.to_owned()),
                "url" => card.url = Some(value.to_owned()),
                "version" => card.version = Some(value.to_owned()),
                "since" => card.since = value.parse().ok().map(Timestamp::from_millis),
                "leaving" => card.is_leaving = value == "yes",
                "skew" => card.skew = value.parse().ok(),
                "levels" => card.levels = read_levels(value),
                _ => {}
            }
        }
        card
    }
}

impl fmt::Display for Card {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Card { link, url, version, since, is_leaving, skew, levels } = self;
        let since = since.map(|since| since.as_millis().to_string());
        let leaving = is_leaving.then(|| "yes".to_owned());
        let skew = skew.map(|skew| skew.to_string());
        let levels = levels.as_ref().map(|levels| format!("{}-{}", levels.start(), levels.end()));
        let pairs = [
            ("link", link),
            ("url", url),
            ("version", version),
            ("since", &since),
            ("leaving", &leaving),
            ("skew", &skew),
            ("levels", &levels),
        ];
        let said = pairs.into_iter().filter_map(|(word, value)| Some((word, value.as_ref()?)));
        for (index, (word, value)) in said.enumerate() {
            let space = if index == 0 { "" } else { " " };
            write!(f, "{space}{word}={}", value.replace(' ', ""))?;
        }
        Ok(())
    }
}

fn read_levels(text: &str) -> Option<RangeInclusive<u32>> {
    let (first, last) = text.split_once('-')?;
    Some(first.parse().ok()?..=last.parse().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_card_is_read_as_it_was_written() {
        let full = Card {
            link: Some("[::1]:7071".into()),
            url: Some("https://punctual.example/?a=b".into()),
            version: Some("0.1.0".into()),
            since: Some(Timestamp::from_millis(7)),
            is_leaving: true,
            skew: Some(-17),
            levels: Some(1..=3),
        };
        for card in [full, Card::default(), Card { url: Some("http://a".into()), ..Card::default() }] {
            assert_eq!(Card::read(&card.to_string()), card);
        }
    }

    #[test]
    fn what_another_version_says_is_passed_over() {
        let card = Card::read("colour=red link=a:1 skew=much nonsense");
        assert_eq!(card, Card { link: Some("a:1".into()), ..Card::default() });
    }
}
