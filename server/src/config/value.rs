//! How values are written, in files, variables and flags alike, and how they are printed.
//!
//! A file may write numbers, truth values and lists as TOML does; everything may be written as text, which is
//! all that variables and flags can do.

use std::fmt;
use std::net::SocketAddr;
use std::num::{NonZeroU16, NonZeroU64, NonZeroUsize};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use punctual_core::Name;
use punctual_wire::Span;
use toml_edit::{Array, Value};

use super::store_url::{MASK, Secret, StoreUrl};

/// A value as it was given.
#[derive(Clone, Debug)]
pub enum Given {
    /// By a variable, a flag or the table of defaults.
    Text(String),
    /// By a file.
    Toml(Value),
}

impl Given {
    /// The value as text; numbers and truth values have one too. `None` for lists and the like.
    fn text(&self) -> Option<String> {
        match self {
            Given::Text(text) => Some(text.clone()),
            Given::Toml(Value::String(text)) => Some(text.value().clone()),
            Given::Toml(Value::Integer(number)) => Some(number.value().to_string()),
            Given::Toml(Value::Float(number)) => Some(number.value().to_string()),
            Given::Toml(Value::Boolean(truth)) => Some(truth.value().to_string()),
            Given::Toml(_) => None,
        }
    }

    fn one(&self, kind: &str) -> Result<String, String> {
        self.text().ok_or_else(|| format!("a list or table is not allowed here: write {kind}"))
    }
}

/// The kind of settings that hold several values.
pub const LIST: &str = "a list";

/// The kind of settings that are not to be seen.
pub const SECRET: &str = "a secret";

/// What a setting can hold.
pub trait Reads: Sized {
    /// What it is, for the documentation.
    const KIND: &'static str;

    /// Understands a value, or says what is wrong and what to write.
    fn read(given: &Given) -> Result<Self, String>;

    /// The value as a file would write it.
    fn show(&self) -> Value;
}

/// A number of bytes: `192MiB`, `64KiB`, `1GiB`, or a plain number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Size(pub u64);

const SIZES: [(&str, u64); 4] = [("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];

impl Size {
    /// The same as a length in memory.
    pub fn as_usize(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }
}

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Size, String> {
        let bad = || format!("{text:?} is not a size: write 192MiB (KiB, MiB, GiB, TiB), or a number of bytes");
        let unit = SIZES.iter().find_map(|(unit, bytes)| Some((text.strip_suffix(unit)?, *bytes)));
        let (digits, bytes) = unit.unwrap_or((text, 1));
        let number: u64 = digits.trim_end().parse().map_err(|_| bad())?;
        number.checked_mul(bytes).map(Size).ok_or_else(bad)
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match SIZES.iter().find(|(_, bytes)| self.0 > 0 && self.0.is_multiple_of(*bytes)) {
            Some((unit, bytes)) => write!(f, "{}{unit}", self.0 / bytes),
            None => write!(f, "{}", self.0),
        }
    }
}

/// A length of time that is not nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Period(Span);

impl Period {
    pub fn as_duration(self) -> Duration {
        self.0.as_duration()
    }
}

/// When a commit is on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Synced {
    /// Before it is confirmed.
    Always,
    /// Within this time after it was confirmed.
    Within(Span),
}

/// A share between 0 and 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratio(pub f64);

/// Where to listen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// An IP address or a name, and a port.
    Named(String),
    /// A file, as `unix:PATH`.
    Unix(PathBuf),
}

/// Who may use a file, as `chmod` writes it: `0660`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileMode(pub u32);

/// A name of the server, or a pattern of such names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostName(pub String);

/// How the log is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// In colour on a terminal, plain elsewhere.
    Auto,
    /// For people.
    Human,
    /// An object a line.
    Json,
}

/// For whatever is read from one text and shown as one.
macro_rules! reads_text {
    ($($type:ty, $kind:expr, $read:expr, $show:expr;)*) => {$(
        impl Reads for $type {
            const KIND: &'static str = $kind;

            fn read(given: &Given) -> Result<$type, String> {
                let read: fn(&str) -> Result<$type, String> = $read;
                read(given.one(Self::KIND)?.trim())
            }

            fn show(&self) -> Value {
                let show: fn(&$type) -> Value = $show;
                show(self)
            }
        }
    )*};
}

reads_text! {
    Size, "a size", |text| text.parse(), |size| size.to_string().into();
    Span, "a duration", read_span, |span| span.to_string().into();
    Period, "a duration", read_period, |period| period.0.to_string().into();
    bool, "true or false", read_bool, |truth| (*truth).into();
    NonZeroU16, "a number", read_count, |number| i64::from(number.get()).into();
    NonZeroUsize, "a number", read_count, |number| i64::try_from(number.get()).unwrap_or(i64::MAX).into();
    usize, "a number", read_number, |number| i64::try_from(*number).unwrap_or(i64::MAX).into();
    String, "text", |text| Ok(text.to_owned()), |text| text.as_str().into();
    PathBuf, "a path", read_path, |path| path.display().to_string().into();
    Name, "a name", |text| Name::new(text).map_err(|error| error.to_string()), |name| name.as_str().into();
    Synced, "`always` or a duration", read_sync, show_sync;
    Ratio, "a number from 0 to 1", read_ratio, |ratio| ratio.0.into();
    StoreUrl, "the name or the URL of a store", StoreUrl::read, |url| url.to_string().into();
    Secret, SECRET, Secret::read, |_| MASK.into();
    Address, "an address", read_address, |address| address.to_string().into();
    HostName, "a name", read_host, |host| host.0.as_str().into();
    LogFormat, "`auto`, `human` or `json`", read_log_format, show_log_format;
}

impl Reads for FileMode {
    const KIND: &'static str = "a file mode";

    fn read(given: &Given) -> Result<FileMode, String> {
        let bad = |text: &str| format!("{text} is not a file mode: write it as for chmod, in quotes: \"0660\"");
        // A file's 0o660 and 660 are other numbers than what they look like.
        if let Given::Toml(Value::Integer(number)) = given {
            return Err(bad(&number.value().to_string()));
        }
        let text = given.one(Self::KIND)?;
        let mode = u32::from_str_radix(text.trim(), 8).ok().filter(|mode| *mode <= 0o777);
        mode.map(FileMode).ok_or_else(|| bad(&format!("{text:?}")))
    }

    fn show(&self) -> Value {
        format!("{:04o}", self.0).into()
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Named(name) => f.write_str(name),
            Address::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// The empty text is none.
impl<T: Reads> Reads for Option<T> {
    const KIND: &'static str = T::KIND;

    fn read(given: &Given) -> Result<Option<T>, String> {
        if given.text().is_some_and(|text| text.trim().is_empty()) { Ok(None) } else { T::read(given).map(Some) }
    }

    fn show(&self) -> Value {
        self.as_ref().map_or_else(|| "".into(), T::show)
    }
}

/// A list, or one text with commas.
impl<T: Reads> Reads for Vec<T> {
    const KIND: &'static str = LIST;

    fn read(given: &Given) -> Result<Vec<T>, String> {
        match given {
            Given::Toml(Value::Array(items)) => items.iter().map(|item| T::read(&Given::Toml(item.clone()))).collect(),
            _ => given.one(T::KIND)?.split(',').map(|item| T::read(&Given::Text(item.to_owned()))).collect(),
        }
    }

    fn show(&self) -> Value {
        match self.as_slice() {
            [one] => one.show(),
            several => Value::Array(several.iter().map(T::show).collect::<Array>()),
        }
    }
}

fn read_number<T: TryFrom<u64>>(text: &str) -> Result<T, String> {
    let digits = text.replace('_', "");
    let number = digits.parse::<u64>().map_err(|_| format!("{text:?} is not a number: write digits, such as 1000"))?;
    T::try_from(number).map_err(|_| format!("{number} is too large here"))
}

/// A number that is not 0.
fn read_count<T: TryFrom<NonZeroU64>>(text: &str) -> Result<T, String> {
    let number = NonZeroU64::new(read_number(text)?).ok_or("0 is too small: write 1 or more")?;
    T::try_from(number).map_err(|_| format!("{number} is too large here"))
}

fn read_span(text: &str) -> Result<Span, String> {
    text.parse().map_err(|error: punctual_wire::BadSpan| error.to_string())
}

fn read_period(text: &str) -> Result<Period, String> {
    match read_span(text)? {
        Span(0) => Err("0 is too short: write a duration such as 10s".into()),
        span => Ok(Period(span)),
    }
}

fn read_bool(text: &str) -> Result<bool, String> {
    text.parse().map_err(|_| format!("{text:?} is neither true nor false: write one of the two"))
}

fn read_host(text: &str) -> Result<HostName, String> {
    let is_host = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._*".contains(&byte));
    let why = || format!("{text:?} is not a host name: write something like punctual.example.com, without a port");
    if is_host { Ok(HostName(text.to_owned())) } else { Err(why()) }
}

fn read_path(text: &str) -> Result<PathBuf, String> {
    if text.is_empty() { Err("the path is empty: give a file or directory".into()) } else { Ok(text.into()) }
}

fn read_sync(text: &str) -> Result<Synced, String> {
    if text == "always" {
        return Ok(Synced::Always);
    }
    match text.parse::<Span>() {
        Ok(Span(0)) => Err("0 is too short: write always, or a duration such as 100ms".into()),
        Ok(span) => Ok(Synced::Within(span)),
        Err(_) => {
            Err(format!("{text:?} is neither `always` nor a duration: write always, or a duration such as 100ms"))
        }
    }
}

fn show_sync(sync: &Synced) -> Value {
    match sync {
        Synced::Always => "always".into(),
        Synced::Within(time) => time.to_string().into(),
    }
}

fn read_ratio(text: &str) -> Result<Ratio, String> {
    match text.parse::<f64>() {
        Ok(ratio) if (0.0..=1.0).contains(&ratio) => Ok(Ratio(ratio)),
        _ => Err(format!("{text:?} is not between 0 and 1: write a number such as 0.1")),
    }
}

fn read_address(text: &str) -> Result<Address, String> {
    if text.parse::<SocketAddr>().is_ok() {
        return Ok(Address::Named(text.to_owned()));
    }
    if let Some(path) = text.strip_prefix("unix:") {
        return read_path(path).map(Address::Unix);
    }
    let is_named = text.rsplit_once(':').is_some_and(|(name, port)| {
        let fits = |character: char| character.is_ascii_alphanumeric() || "-._".contains(character);
        !name.is_empty() && name.chars().all(fits) && port.parse::<u16>().is_ok()
    });
    if is_named {
        return Ok(Address::Named(text.to_owned()));
    }
    Err(format!(
        "{text:?} is not an address with a port: write 127.0.0.1:7400, [::1]:7400, localhost:7400, \
         or unix:PATH for a Unix socket"
    ))
}

fn read_log_format(text: &str) -> Result<LogFormat, String> {
    match text {
        "auto" => Ok(LogFormat::Auto),
        "human" => Ok(LogFormat::Human),
        "json" => Ok(LogFormat::Json),
        _ => Err(format!("{text:?} is not a log format: write auto, human or json")),
    }
}

fn show_log_format(format: &LogFormat) -> Value {
    match format {
        LogFormat::Auto => "auto".into(),
        LogFormat::Human => "human".into(),
        LogFormat::Json => "json".into(),
    }
}
