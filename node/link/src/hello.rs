//! What both ends of a new connection say before they are a link, and whether that makes one.
//!
//! ```text
//! dialler                                         answerer
//! Hello: center, who, whom, versions, nonce  ──►
//!                                            ◄──  Hello: the same
//! Proof                                      ──►
//!                                            ◄──  Proof
//! ```
//! Whoever does not want to go on says a [`Rebuff`] instead and hangs up. A proof is a stamp with the center's secret on
//! both hellos as they were sent, so neither secret nor nonces nor versions can be tampered with.

use std::ops::RangeInclusive;

use prost::Message as _;
use punctual_center::Greeting;
use punctual_core::Name;
use punctual_core::store::Incarnation;

use crate::rebuff::Rebuff;

/// The longest introduction. Nothing is known yet about who speaks.
pub(crate) const LONGEST: usize = 4_096;

/// What is said on the way to a link.
#[derive(Debug, PartialEq)]
pub enum Introduction {
    /// Who is there.
    Hello(Hello),
    /// The secret is known.
    Proof([u8; 32]),
    /// There will be no link.
    Rebuff(Rebuff, String),
}

/// Who is there, and what it speaks.
#[derive(Clone, Debug, PartialEq)]
pub struct Hello {
    /// The center's id.
    pub center: [u8; 16],
    /// What the node says of itself.
    pub greeting: Greeting,
    /// Whom it thinks to speak to, if it dialled.
    pub whom: Option<Incarnation>,
    /// The versions of the links' language that it speaks.
    pub versions: RangeInclusive<u32>,
    /// Drawn for this connection.
    pub nonce: [u8; 32],
}

#[derive(prost::Message)]
struct IntroductionForm {
    #[prost(oneof(Kind), tags(1, 2, 3))]
    kind: Option<Kind>,
}

#[derive(prost::Oneof)]
enum Kind {
    #[prost(message, tag = 1)]
    Hello(HelloForm),
    #[prost(bytes = "vec", tag = 2)]
    Proof(Vec<u8>),
    #[prost(message, tag = 3)]
    Rebuff(RebuffForm),
}

#[derive(prost::Message)]
struct HelloForm {
    #[prost(bytes = "vec", tag = 1)]
    center: Vec<u8>,
    #[prost(message, optional, tag = 2)]
    who: Option<WhoForm>,
    #[prost(message, optional, tag = 3)]
    whom: Option<WhoForm>,
    #[prost(uint32, tag = 4)]
    first_version: u32,
    #[prost(uint32, tag = 5)]
    last_version: u32,
    #[prost(uint32, tag = 6)]
    first_level: u32,
    #[prost(uint32, tag = 7)]
    last_level: u32,
    #[prost(string, tag = 8)]
    software: String,
    #[prost(bytes = "vec", tag = 9)]
    nonce: Vec<u8>,
}

#[derive(prost::Message)]
struct WhoForm {
    #[prost(string, tag = 1)]
    node: String,
    #[prost(fixed64, tag = 2)]
    number: u64,
}

#[derive(prost::Message)]
struct RebuffForm {
    #[prost(uint32, tag = 1)]
    number: u32,
    #[prost(string, tag = 2)]
    words: String,
}

impl Introduction {
    /// Its bytes.
    pub fn encode(&self) -> Vec<u8> {
        let kind = match self {
            Introduction::Hello(hello) => Kind::Hello(hello.form()),
            Introduction::Proof(proof) => Kind::Proof(proof.to_vec()),
            Introduction::Rebuff(rebuff, words) => {
                Kind::Rebuff(RebuffForm { number: rebuff.number(), words: words.clone() })
            }
        };
        IntroductionForm { kind: Some(kind) }.encode_to_vec()
    }

    /// From its bytes; none if they are none.
    pub fn decode(bytes: &[u8]) -> Option<Introduction> {
        Some(match IntroductionForm::decode(bytes).ok()?.kind? {
            Kind::Hello(form) => Introduction::Hello(Hello::of(form)?),
            Kind::Proof(proof) => Introduction::Proof(proof.try_into().ok()?),
            Kind::Rebuff(form) => Introduction::Rebuff(Rebuff::numbered(form.number), form.words),
        })
    }
}

impl Hello {
    fn form(&self) -> HelloForm {
        let who = |who: &Incarnation| WhoForm { node: who.node.as_str().to_owned(), number: who.number };
        HelloForm {
            center: self.center.to_vec(),
            who: Some(who(&self.greeting.who)),
            whom: self.whom.as_ref().map(who),
            first_version: *self.versions.start(),
            last_version: *self.versions.end(),
            first_level: *self.greeting.levels.start(),
            last_level: *self.greeting.levels.end(),
            software: self.greeting.software.clone(),
            nonce: self.nonce.to_vec(),
        }
    }

    fn of(form: HelloForm) -> Option<Hello> {
        let who =
            |form: WhoForm| Name::read_back(&form.node).ok().map(|node| Incarnation { node, number: form.number });
        let greeting =
            Greeting { who: who(form.who?)?, software: form.software, levels: form.first_level..=form.last_level };
        Some(Hello {
            center: form.center.try_into().ok()?,
            greeting,
            whom: match form.whom {
                Some(whom) => Some(who(whom)?),
                None => None,
            },
            versions: form.first_version..=form.last_version,
            nonce: form.nonce.try_into().ok()?,
        })
    }

    /// The version that both speak: the highest. Or why there will be no link, as the one who said `self` sees it.
    pub fn agree(&self, theirs: &Hello) -> Result<u32, Rebuff> {
        if self.center != theirs.center {
            return Err(Rebuff::OtherCenter);
        }
        let version = *self.versions.end().min(theirs.versions.end());
        if !self.versions.contains(&version) || !theirs.versions.contains(&version) {
            return Err(Rebuff::NoVersion);
        }
        let meant = |whom: &Option<Incarnation>, who: &Incarnation| whom.as_ref().is_none_or(|whom| whom == who);
        if !meant(&self.whom, &theirs.greeting.who) || !meant(&theirs.whom, &self.greeting.who) {
            return Err(Rebuff::SomebodyElse);
        }
        Ok(version)
    }
}
