//! The log: what is written, in which form, and that panics are in it.

use std::io::{IsTerminal, stderr};
use std::panic;

use punctual_node::SPANS;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, Registry};

use crate::config::{LogFormat, nearest};

const LEVELS: [&str; 6] = ["error", "warn", "info", "debug", "trace", "off"];

/// A further receiver of what happens, beside the log.
pub type Extra = Box<dyn Layer<Registry> + Send + Sync>;

/// Understands what is to be logged, or says what is wrong.
pub fn filter(level: &str) -> Result<Targets, String> {
    // A single word that is no level would be taken for the name of a part, and everything else be silent.
    for directive in level.split(',').map(str::trim) {
        if !directive.contains(['=', ':', '_']) && !LEVELS.contains(&directive) {
            let meant = nearest(directive, LEVELS).map_or("info", |level| level);
            return Err(format!(
                "{directive:?} is not a log level: did you mean {meant}? The levels are {}",
                LEVELS.join(", ")
            ));
        }
    }
    level.parse().map_err(|error| {
        format!("{level:?} is not a valid log level ({error}): write info, or info,punctual::http=debug")
    })
}

/// Begins to log to standard error.
pub fn start(format: LogFormat, level: &str, extra: Option<Extra>) -> Result<(), String> {
    // Spans are for whoever makes traces of them: in the log they would only make lines longer.
    let filter = filter(level)?.with_target(SPANS, LevelFilter::OFF);
    let log = fmt::layer().with_writer(stderr);
    let log = match format {
        LogFormat::Json => log.json().flatten_event(true).with_filter(filter).boxed(),
        LogFormat::Auto | LogFormat::Human => log.with_ansi(stderr().is_terminal()).with_filter(filter).boxed(),
    };
    let layers: Vec<Extra> = extra.into_iter().chain([log]).collect();
    tracing_subscriber::registry().with(layers).try_init().map_err(|error| error.to_string())?;
    panic::set_hook(Box::new(|panic| {
        let thread = std::thread::current();
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        let backtrace = std::backtrace::Backtrace::force_capture();
        let message = panic.payload_as_str().unwrap_or("without a message");
        tracing::error!(thread = thread.name().unwrap_or("unnamed"), place, %backtrace, "panicked: {message}");
    }));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_and_single_parts_are_understood() {
        for level in ["info", "off", "warn,punctual_http=debug", "info,punctual::audit=off"] {
            assert!(filter(level).is_ok(), "{level}");
        }
    }

    #[test]
    fn a_word_that_is_no_level_is_refused_with_the_one_that_was_meant() {
        let error = filter("inof").expect_err("it is no level");
        assert_eq!(
            error,
            "\"inof\" is not a log level: did you mean info? The levels are error, warn, info, debug, trace, off"
        );
        assert!(filter("info,punctual_http=loud").is_err());
    }
}
