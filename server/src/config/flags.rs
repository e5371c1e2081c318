//! The settings as flags of the command line.

use clap::{Arg, ArgAction, ArgMatches, Args, Command, Error, FromArgMatches};

use super::settings::SETTINGS;
use super::table::Setting;

/// What was said by flags.
#[derive(Clone, Debug, Default)]
pub struct Overrides(pub Vec<(String, String)>);

fn arg(setting: &'static Setting) -> Option<Arg> {
    let flag = setting.flag()?;
    let default = if setting.default.is_empty() { String::new() } else { format!(" [default: {}]", setting.default) };
    let arg = Arg::new(setting.name)
        .long(flag)
        .value_name(setting.place().1.to_uppercase())
        .help(format!("{}{default}", first_sentence(&setting.about())))
        .long_help(format!("{}\n{default} [setting: {}] [env: {}]", setting.about(), setting.name, setting.variable()))
        .help_heading(if setting.is_common { "Settings" } else { "More settings" })
        .hide_short_help(!setting.is_common)
        .action(if setting.is_list() { ArgAction::Append } else { ArgAction::Set });
    let is_switch = setting.is_switch();
    Some(if is_switch { arg.num_args(0..=1).default_missing_value("true").require_equals(true) } else { arg })
}

fn first_sentence(about: &str) -> String {
    let end = about.find(". ").map_or(about.len(), |end| end + 1);
    about[..end].trim_end_matches('.').to_owned()
}

impl Args for Overrides {
    fn augment_args(command: Command) -> Command {
        command.args(SETTINGS.iter().filter_map(arg))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Overrides::augment_args(command)
    }
}

impl FromArgMatches for Overrides {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Overrides, Error> {
        let mut overrides = Overrides::default();
        overrides.update_from_arg_matches(matches)?;
        Ok(overrides)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        self.0 = SETTINGS
            .iter()
            .filter(|setting| setting.flag().is_some())
            .filter_map(|setting| {
                let values: Vec<&str> = matches.get_many::<String>(setting.name)?.map(String::as_str).collect();
                Some((setting.name.to_owned(), values.join(",")))
            })
            .collect();
        Ok(())
    }
}
