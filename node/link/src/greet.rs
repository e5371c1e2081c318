//! Two ends of a connection get to know each other: [`hello`](crate::hello) carried out.

use punctual_center::Greeting;
use punctual_core::store::Incarnation;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::frame::Sealing;
use crate::hello::{Hello, Introduction, LONGEST};
use crate::rebuff::{Rebuff, Trouble};
use crate::settings::Settings;

/// What stands before each introduction, followed by its length: whoever speaks something else is told from who does not at once.
const MARK: [u8; 4] = *b"PNCT";

/// The other end, known and proven.
pub(crate) struct Met {
    pub(crate) greeting: Greeting,
    /// For what goes out.
    pub(crate) sealing: Sealing,
    /// For what comes in.
    pub(crate) opening: Sealing,
}

/// The two ends of a connection, by who dialled.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Dialler,
    Answerer,
}

impl End {
    fn proof(self) -> &'static str {
        match self {
            End::Dialler => "punctual link 1: proof of the dialler",
            End::Answerer => "punctual link 1: proof of the answerer",
        }
    }

    fn frames(self) -> &'static str {
        match self {
            End::Dialler => "punctual link 1: frames of the dialler",
            End::Answerer => "punctual link 1: frames of the answerer",
        }
    }

    fn other(self) -> End {
        if self == End::Dialler { End::Answerer } else { End::Dialler }
    }
}

/// As the one who dialled, to reach this node and nobody else.
pub(crate) async fn dial<S>(
    stream: &mut S,
    settings: &Settings,
    me: &Incarnation,
    whom: &Incarnation,
) -> Result<Met, Trouble>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mine = hello(settings, me, Some(whom))?;
    let said = say(stream, &Introduction::Hello(mine.clone())).await?;
    let (theirs, heard) = hear_hello(stream).await?;
    consider(stream, &mine, &theirs).await?;
    let both = [said, heard].concat();
    say(stream, &Introduction::Proof(settings.credentials.stamp(End::Dialler.proof(), &both))).await?;
    check_proof(stream, settings, End::Answerer, &both).await?;
    Ok(met(settings, End::Dialler, theirs, &both))
}

/// As the one who was dialled.
pub(crate) async fn answer<S>(stream: &mut S, settings: &Settings, me: &Incarnation) -> Result<Met, Trouble>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let (theirs, heard) = hear_hello(stream).await?;
    let mine = hello(settings, me, None)?;
    consider(stream, &mine, &theirs).await?;
    let said = say(stream, &Introduction::Hello(mine)).await?;
    let both = [heard, said].concat();
    check_proof(stream, settings, End::Dialler, &both).await?;
    say(stream, &Introduction::Proof(settings.credentials.stamp(End::Answerer.proof(), &both))).await?;
    Ok(met(settings, End::Answerer, theirs, &both))
}

/// Tells whoever dialled that there will be no link.
pub(crate) async fn refuse<S: AsyncWrite + Unpin>(stream: &mut S, rebuff: Rebuff) -> Result<(), Trouble> {
    say(stream, &Introduction::Rebuff(rebuff, rebuff.to_string())).await?;
    // What is told is read before the end of the connection is.
    Ok(stream.shutdown().await?)
}

fn hello(settings: &Settings, me: &Incarnation, whom: Option<&Incarnation>) -> Result<Hello, Trouble> {
    let mut nonce = [0; 32];
    getrandom::fill(&mut nonce).map_err(std::io::Error::other)?;
    let greeting = Greeting { who: me.clone(), software: settings.software.clone(), levels: settings.levels.clone() };
    let center = settings.credentials.center;
    Ok(Hello { center, greeting, whom: whom.cloned(), versions: settings.versions.clone(), nonce })
}

fn met(settings: &Settings, me: End, theirs: Hello, both: &[u8]) -> Met {
    let sealing = |end: End| Sealing::new(settings.credentials.stamp(end.frames(), both));
    Met { greeting: theirs.greeting, sealing: sealing(me), opening: sealing(me.other()) }
}

async fn consider<S: AsyncWrite + Unpin>(stream: &mut S, mine: &Hello, theirs: &Hello) -> Result<(), Trouble> {
    match mine.agree(theirs) {
        // There is one version so far; what differs in the next one is decided here.
        Ok(_version) => Ok(()),
        Err(rebuff) => {
            refuse(stream, rebuff).await?;
            Err(Trouble::Refused(rebuff))
        }
    }
}

async fn check_proof<S>(stream: &mut S, settings: &Settings, of: End, both: &[u8]) -> Result<(), Trouble>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let proof = match hear(stream).await? {
        (Introduction::Proof(proof), _) => proof,
        _ => return Err(Trouble::Strange),
    };
    // Comparing hashes takes the same time wherever they differ.
    let right = blake3::Hash::from_bytes(settings.credentials.stamp(of.proof(), both));
    if right == blake3::Hash::from_bytes(proof) {
        return Ok(());
    }
    refuse(stream, Rebuff::Secret).await?;
    Err(Trouble::Refused(Rebuff::Secret))
}

/// A hello, and its bytes as they came.
async fn hear_hello<S: AsyncRead + Unpin>(stream: &mut S) -> Result<(Hello, Vec<u8>), Trouble> {
    match hear(stream).await? {
        (Introduction::Hello(hello), bytes) => Ok((hello, bytes)),
        _ => Err(Trouble::Strange),
    }
}

async fn hear<S: AsyncRead + Unpin>(stream: &mut S) -> Result<(Introduction, Vec<u8>), Trouble> {
    let mut head = [0; 6];
    stream.read_exact(&mut head).await?;
    let length = usize::from(u16::from_le_bytes([head[4], head[5]]));
    if head[..4] != MARK || length > LONGEST {
        return Err(Trouble::Strange);
    }
    let mut bytes = vec![0; head.len() + length];
    stream.read_exact(&mut bytes[head.len()..]).await?;
    bytes[..head.len()].copy_from_slice(&head);
    match Introduction::decode(&bytes[head.len()..]) {
        Some(Introduction::Rebuff(rebuff, words)) => Err(Trouble::RefusedThere(rebuff, shown(&words))),
        Some(introduction) => Ok((introduction, bytes)),
        None => Err(Trouble::Strange),
    }
}

/// What a stranger says, for the log: not too much of it, and on one line.
fn shown(words: &str) -> String {
    words.chars().filter(|character| !character.is_control()).take(200).collect()
}

/// Says it, and gives its bytes back as they were sent. They carry their length, so that no two pairs of hellos
/// look alike one after the other.
async fn say<S: AsyncWrite + Unpin>(stream: &mut S, introduction: &Introduction) -> Result<Vec<u8>, Trouble> {
    let said = introduction.encode();
    let length = u16::try_from(said.len()).map_err(std::io::Error::other)?;
    let mut bytes = MARK.to_vec();
    bytes.extend_from_slice(&length.to_le_bytes());
    bytes.extend_from_slice(&said);
    stream.write_all(&bytes).await?;
    stream.flush().await?;
    Ok(bytes)
}
