//! `set` of topics and of queues: a flag for each setting in the wire's list, so that none can be forgotten.

use std::fmt::Display;
use std::marker::PhantomData;

use clap::builder::{
    BoolValueParser, PossibleValue, PossibleValuesParser, StringValueParser, TypedValueParser, ValueParser,
};
use clap::{Arg, ArgAction, ArgMatches, Args, Command, Error, FromArgMatches};
use punctual_wire::{Binding, Kind, Rate, Setting, Settings, Span};
use serde::Serialize;
use serde_json::{Value, json};

use super::moment::Moment;
use super::patch::Patch;
use super::show::Card;

/// Changes of the settings of a topic or a queue.
#[derive(Debug, Default)]
pub struct Set<S> {
    /// Its name.
    pub name: String,
    /// What was given as a merge patch, so that all else stays, whoever else changes something meanwhile.
    pub patch: Patch,
    /// The settings must have this version for it.
    pub version: Option<String>,
    of: PhantomData<S>,
}

/// The flag of a setting. The name of a group and the unit of a number would only make it longer.
pub fn flag(path: &str) -> String {
    let within = path.split_once('.').map_or(path, |(_, within)| within);
    within.trim_end_matches("_percent").replace(['.', '_'], "-")
}

fn arg((path, setting): (String, &'static Setting)) -> Arg {
    let (value, parser, more) = form(setting.kind, &path);
    let about = setting.about() + more;
    Arg::new(path.clone())
        .long(flag(&path))
        .value_name(value)
        .value_parser(parser)
        .help(about.trim_end_matches('.').to_owned())
        .action(if let Kind::Bindings = setting.kind { ArgAction::Append } else { ArgAction::Set })
}

/// How people write a value of this kind: what stands for it in the help, how it becomes JSON, and what else there is to say.
fn form(kind: Kind, path: &str) -> (String, ValueParser, &'static str) {
    let (value, parser, more) = match kind {
        Kind::Span => ("SPAN", read(str::parse::<Span>), ""),
        Kind::Time => {
            ("TIME", read(|text| text.parse().map(Moment::time)), " RFC 3339, milliseconds since 1970, or +2h.")
        }
        Kind::Number(least, most) => {
            let number = clap::value_parser!(i64).range(least..=most);
            ("N", ValueParser::new(number.map(Value::from)), "")
        }
        Kind::Truth => ("TRUE|FALSE", ValueParser::new(BoolValueParser::new().map(Value::from)), ""),
        Kind::Text => ("TEXT", ValueParser::new(StringValueParser::new().map(Value::from)), ""),
        Kind::Choice(_) => {
            // As the wire spells it, too.
            let word = |(word, about)| PossibleValue::new(str::replace(word, '_', "-")).alias(word).help(about);
            let words = PossibleValuesParser::new(kind.choices().into_iter().map(word));
            return (flag(path).to_uppercase(), ValueParser::new(words.map(|word| json!(word.replace('-', "_")))), "");
        }
        Kind::Rate => ("N[:BURST]", read(rate), " Write 500, or 500:2000 to allow 2000 at once after a quiet period."),
        Kind::Bindings => (
            "QUEUE[=PATTERN]",
            read(binding),
            " Write audit, or billing=order.*.paid to choose by routing key. Can be repeated; all of them together \
             replace the current ones.",
        ),
        Kind::Group(_) => unreachable!("{path} has no value of its own"),
    };
    (value.into(), parser, more)
}

/// Reads a text as something that is sent as JSON.
fn read<T: Serialize + 'static, E: Display + 'static>(read: fn(&str) -> Result<T, E>) -> ValueParser {
    ValueParser::from(move |text: &str| read(text).map(|value| json!(value)).map_err(|error| error.to_string()))
}

/// A limit as people write it: `500`, or `500:2000` with a burst. It takes the place of the one before: a burst that is
/// not given goes.
fn rate(text: &str) -> Result<Value, String> {
    let number = |text: &str| match text.parse::<u32>() {
        Ok(number) if number > 0 => Ok(number),
        _ => Err("write how many per second, and optionally how many at once: 500 or 500:2000".to_owned()),
    };
    let (per_second, burst) = match text.split_once(':') {
        Some((per_second, burst)) => (number(per_second)?, Some(number(burst)?)),
        None => (number(text)?, None),
    };
    Ok(json!({ "per_second": per_second, "burst": burst }))
}

fn binding(text: &str) -> Result<Binding, String> {
    let (queue, pattern) = match text.split_once('=') {
        Some((queue, pattern)) => (queue, Some(pattern.to_owned())),
        None => (text, None),
    };
    let empty = queue.is_empty() || pattern.as_ref().is_some_and(String::is_empty);
    if empty { Err("write a queue, or queue=pattern".into()) } else { Ok(Binding { queue: queue.into(), pattern }) }
}

impl<S: Settings> Args for Set<S> {
    fn augment_args(command: Command) -> Command {
        let flags = S::values().into_iter().map(|(path, _)| flag(&path));
        let unset = Arg::new("unset")
            .long("unset")
            .value_name("SETTING")
            .value_parser(PossibleValuesParser::new(flags))
            .help("Reset to the default; can be repeated")
            .action(ArgAction::Append);
        let version = Arg::new("if-version")
            .long("if-version")
            .value_name("VERSION")
            .help("Only if the settings still have this version, as `show` tells it");
        let name = Arg::new("name").value_name("NAME").required(true).help("Its name");
        command.arg(name).args(S::values().into_iter().map(arg)).arg(unset).arg(version)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Set::<S>::augment_args(command)
    }
}

impl<S: Settings> FromArgMatches for Set<S> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Set<S>, Error> {
        let name = matches.get_one::<String>("name").cloned().unwrap_or_default();
        let mut set = Set { name, patch: Patch::default(), version: None, of: PhantomData };
        set.update_from_arg_matches(matches)?;
        Ok(set)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        self.version = matches.get_one("if-version").cloned();
        let unset: Vec<&String> = matches.get_many("unset").into_iter().flatten().collect();
        for (path, setting) in S::values() {
            let given: Vec<&Value> = matches.get_many(&path).into_iter().flatten().collect();
            match (given.last(), setting.kind) {
                (Some(_), Kind::Bindings) => self.patch.set(&path, Some(&given)),
                (Some(value), _) => self.patch.set(&path, Some(value)),
                (None, _) if unset.contains(&&flag(&path)) => self.patch.unset(&path),
                (None, _) => {}
            }
        }
        Ok(())
    }
}

/// A limit in words.
pub fn rate_in_words(rate: Option<Rate>) -> String {
    match rate {
        None => "none".into(),
        Some(Rate { per_second, burst: None }) => format!("{per_second} a second"),
        Some(Rate { per_second, burst: Some(burst) }) => format!("{per_second} a second, {burst} at once"),
    }
}

/// Settings for which a card has no words of its own are told by their names.
pub fn tell_others<S: Settings>(card: &mut Card, settings: &S, told: &[&str]) {
    let values = json!(settings);
    for setting in S::LIST.iter().filter(|setting| !told.contains(&setting.name)) {
        match &values[setting.name] {
            Value::Null => {}
            Value::String(text) => card.fact(&setting.name.replace('_', " "), text),
            value => card.fact(&setting.name.replace('_', " "), value),
        }
    }
}
