//! What a setting is, and how the list of all settings becomes both a type and a table.

use toml_edit::Value;

use super::settings::{Config, SETTINGS};
use super::value::{Given, LIST, SECRET};

/// The entry of a section that says what its other entries are about.
const URL: &str = ".url";

/// A setting.
pub struct Setting {
    /// Its name, with a dot between section and entry.
    pub name: &'static str,
    /// What kind of value it takes.
    pub kind: &'static str,
    /// The value unless told otherwise; an empty text is none.
    pub default: &'static str,
    /// Whether its flag is one of those that people use.
    pub is_common: bool,
    /// What it means.
    pub about: &'static str,
    /// Takes a value and gives it back as a file would write it, or says what is wrong.
    pub take: fn(&mut Config, &Given) -> Result<Value, String>,
}

impl Setting {
    /// The environment variable that sets it.
    pub fn variable(&self) -> String {
        format!("PUNCTUAL_{}", self.short_name().replace('.', "_").to_uppercase())
    }

    /// The flag that sets it, without the dashes in front. A secret has none: everybody on a machine sees its command lines.
    pub fn flag(&self) -> Option<String> {
        (self.kind != SECRET).then(|| self.short_name().replace(['.', '_'], "-"))
    }

    /// Its name as variables and flags have it: the URL of a section is what the section is about.
    fn short_name(&self) -> &'static str {
        self.name.strip_suffix(URL).unwrap_or(self.name)
    }

    /// Whether it is true or false, so that its flag may stand alone.
    pub fn is_switch(&self) -> bool {
        matches!(self.default, "true" | "false")
    }

    /// Whether its flag may be given several times.
    pub fn is_list(&self) -> bool {
        self.kind == LIST
    }

    /// What it means, without the blanks around the lines it was written in.
    pub fn about(&self) -> String {
        self.about.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    /// Its section in a file, and its entry there.
    pub fn place(&self) -> (Option<&'static str>, &'static str) {
        match self.name.split_once('.') {
            Some((section, entry)) => (Some(section), entry),
            None => (None, self.name),
        }
    }

    /// The setting of this name.
    pub fn named(name: &str) -> Option<&'static Setting> {
        SETTINGS.iter().find(|setting| setting.name == name)
    }

    /// What a file may write for a whole section: `store = "…"` is short for `url` in `[store]`.
    pub fn of_section(section: &str) -> Option<&'static Setting> {
        Setting::named(&format!("{section}{URL}"))
    }

    /// The default as a file would write it.
    pub fn default_shown(&self) -> Result<Value, String> {
        (self.take)(&mut Config::default(), &Given::Text(self.default.to_owned()))
    }
}

/// Makes the type `Config`, a type for each section, and the table `SETTINGS` of a list of settings.
macro_rules! settings {
    (
        { $($(#[doc = $about:literal])+ $top:ident: $type:ty = $default:literal $(, $common:ident)?;)* }
        $($(#[doc = $heading:literal])+ $section:ident: $part:ident {
            $(
                $(#[doc = $sub_about:literal])+
                $entry:ident: $sub_type:ty = $sub_default:literal $(, $sub_common:ident)?;
            )*
        })*
    ) => {
        /// Everything the server can be told.
        #[derive(Clone, Debug, PartialEq)]
        pub struct Config {
            $($(#[doc = $about])+ pub $top: $type,)*
            $($(#[doc = $heading])+ pub $section: $part,)*
        }

        $($(#[doc = $heading])+
        #[derive(Clone, Debug, PartialEq)]
        pub struct $part {
            $($(#[doc = $sub_about])+ pub $entry: $sub_type,)*
        })*

        impl Default for Config {
            fn default() -> Config {
                Config {
                    $($top: default($default),)*
                    $($section: $part { $($entry: default($sub_default),)* },)*
                }
            }
        }

        /// All sections with what they are about, in the order in which they are shown.
        pub const SECTIONS: &[(&str, &str)] = &[$((stringify!($section), concat!($($heading,)+)),)*];

        /// All settings, in the order in which they are shown.
        pub const SETTINGS: &[Setting] = &[
            $(Setting {
                name: stringify!($top),
                kind: <$type as Reads>::KIND,
                default: $default,
                is_common: !matches!(concat!($(stringify!($common))?).as_bytes(), b""),
                about: concat!($($about,)+),
                take: |config, given| {
                    let value = <$type as Reads>::read(given)?;
                    let shown = value.show();
                    config.$top = value;
                    Ok(shown)
                },
            },)*
            $($(Setting {
                name: concat!(stringify!($section), ".", stringify!($entry)),
                kind: <$sub_type as Reads>::KIND,
                default: $sub_default,
                is_common: !matches!(concat!($(stringify!($sub_common))?).as_bytes(), b""),
                about: concat!($($sub_about,)+),
                take: |config, given| {
                    let value = <$sub_type as Reads>::read(given)?;
                    let shown = value.show();
                    config.$section.$entry = value;
                    Ok(shown)
                },
            },)*)*
        ];
    };
}
pub(super) use settings;
