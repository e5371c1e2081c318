//! What a setting is, and how a list of settings becomes a type with its defaults and a table. The type is what
//! travels; the command line and the documentation are made from the table.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::settings::{Binding, Rate};
use crate::time::{Span, Time};

/// A setting.
#[derive(Debug)]
pub struct Setting {
    /// Its name on the wire.
    pub name: &'static str,
    /// What it is set to.
    pub kind: Kind,
    about: &'static str,
}

/// What a setting is set to.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// A length of time.
    Span,
    /// An instant.
    Time,
    /// A number between these two, or one of them.
    Number(i64, i64),
    /// True or false.
    Truth,
    /// Any text.
    Text,
    /// One of these words, each with what it means.
    Choice(&'static [(&'static str, &'static str)]),
    /// A [`Rate`].
    Rate,
    /// Each a [`Binding`].
    Bindings,
    /// Settings of its own.
    Group(&'static [Setting]),
}

/// Settings that make up a whole.
pub trait Settings: Default + Serialize + DeserializeOwned {
    /// All of them, in the order in which they are shown.
    const LIST: &'static [Setting];

    /// All that have a value of their own, each with where it is: `retry.attempts` is within `retry`.
    fn values() -> Vec<(String, &'static Setting)> {
        let mut values = Vec::new();
        add_values(Self::LIST, "", &mut values);
        values
    }
}

fn add_values(list: &'static [Setting], within: &str, values: &mut Vec<(String, &'static Setting)>) {
    for setting in list {
        let path = format!("{within}{}", setting.name);
        match setting.kind {
            Kind::Group(list) => add_values(list, &format!("{path}."), values),
            _ => values.push((path, setting)),
        }
    }
}

impl Setting {
    pub(crate) const fn new(name: &'static str, kind: Kind, about: &'static str) -> Setting {
        Setting { name, kind, about }
    }

    /// What it means.
    pub fn about(&self) -> String {
        one_line(self.about)
    }
}

/// A text without the line breaks and blanks of the lines it was written in.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

impl Kind {
    pub(crate) const fn within(self, least: i64, most: i64) -> Kind {
        match self {
            Kind::Number(..) => Kind::Number(least, most),
            _ => panic!("only a number has bounds"),
        }
    }

    /// The words of a choice, each with what it means.
    pub fn choices(&self) -> Vec<(&'static str, String)> {
        match self {
            Kind::Choice(words) => words.iter().map(|(word, about)| (*word, one_line(about))).collect(),
            _ => Vec::new(),
        }
    }

    /// A value of this kind that is no setting's default, for the documentation and for tests.
    pub fn example(&self) -> Value {
        match self {
            Kind::Span => json!(Span::from_secs(90)),
            Kind::Time => json!(Time(4_102_444_800_000)),
            Kind::Number(least, _) => json!(least + 7),
            Kind::Truth => json!(true),
            Kind::Text => json!("shop"),
            Kind::Choice(words) => json!(words.last().map(|(word, _)| word)),
            Kind::Rate => json!(Rate { per_second: 500, burst: Some(2_000) }),
            Kind::Bindings => json!([Binding { queue: "billing".into(), pattern: Some("order.*.paid".into()) }]),
            Kind::Group(list) => list.iter().map(|setting| (setting.name.to_owned(), setting.kind.example())).collect(),
        }
    }
}

/// What settings are set to, in Rust.
pub(crate) trait Told {
    /// In words.
    const KIND: Kind;

    /// Whether it goes without saying.
    fn is_unsaid(&self) -> bool {
        false
    }
}

impl<T: Told> Told for Option<T> {
    const KIND: Kind = T::KIND;

    fn is_unsaid(&self) -> bool {
        self.is_none()
    }
}

/// Says of which kind a type is.
macro_rules! kinds {
    ($($type:ty => $kind:expr),+ $(,)?) => {
        $(impl Told for $type {
            const KIND: Kind = $kind;
        })+
    };
}

kinds! {
    Span => Kind::Span,
    Time => Kind::Time,
    u8 => Kind::Number(0, u8::MAX as i64),
    u32 => Kind::Number(0, u32::MAX as i64),
    u64 => Kind::Number(0, i64::MAX),
    bool => Kind::Truth,
    String => Kind::Text,
    Rate => Kind::Rate,
    Vec<Binding> => Kind::Bindings,
}

/// Makes a type, its defaults and its [`Settings`] of a list of settings: what each means, its name, its type and its
/// default; then what bounds a number, and what else the OpenAPI document should say.
macro_rules! settings {
    (
        $(#[doc = $what:tt])+
        $name:ident $(: $copy:ident)? {
            $(
                $(#[doc = $about:tt])+
                $field:ident: $type:ty = $default:expr
                    $(, in $least:tt..=$most:tt)?
                    $(, schema($($schema:tt)+))?;
            )+
        }
    ) => {
        $(#[doc = $what])+
        #[derive(Clone, $($copy,)? Debug, PartialEq, Eq, Serialize, Deserialize)]
        #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
        #[serde(remote = "Self", deny_unknown_fields, default)]
        pub struct $name {
            $(
                $(#[doc = $about])+
                #[serde(skip_serializing_if = "crate::table::Told::is_unsaid")]
                #[cfg_attr(feature = "openapi", schema($($($schema)+,)? $(minimum = $least, maximum = $most)?))]
                pub $field: $type,
            )+
        }

        impl Default for $name {
            fn default() -> $name {
                $name { $($field: $default,)+ }
            }
        }

        impl $crate::table::Settings for $name {
            const LIST: &'static [$crate::table::Setting] = &[$($crate::table::Setting::new(
                stringify!($field),
                <$type as $crate::table::Told>::KIND$(.within($least, $most))?,
                concat!($($about, "\n",)+),
            ),)+];
        }

        impl $crate::table::Told for $name {
            const KIND: $crate::table::Kind = $crate::table::Kind::Group(<$name as $crate::table::Settings>::LIST);
        }

        $crate::object::objects!($name);
    };
}
pub(crate) use settings;

/// Makes a type of the words that a setting may be, the usual one first. `unsaid` ones are left out where they are usual.
macro_rules! choices {
    (
        $(#[doc = $what:tt])+
        $name:ident $(, $unsaid:ident)? {
            $(#[doc = $usual_about:tt])+
            $usual:ident = $usual_word:tt,
            $($(#[doc = $about:tt])+ $variant:ident = $word:tt,)+
        }
    ) => {
        $(#[doc = $what])+
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
        #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
        pub enum $name {
            $(#[doc = $usual_about])+
            #[default]
            #[serde(rename = $usual_word)]
            $usual,
            $($(#[doc = $about])+ #[serde(rename = $word)] $variant,)+
        }

        impl $crate::table::Told for $name {
            const KIND: $crate::table::Kind = $crate::table::Kind::Choice(&[
                ($usual_word, concat!($($usual_about, "\n",)+)),
                $(($word, concat!($($about, "\n",)+)),)+
            ]);

            $($crate::table::choices!(@ $unsaid $name);)?
        }
    };
    (@ unsaid $name:ident) => {
        fn is_unsaid(&self) -> bool {
            *self == $name::default()
        }
    };
}
pub(crate) use choices;

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test says what is wrong by panicking")]
mod tests {
    use super::*;
    use crate::{QueueSettings, TopicSettings, merge};

    /// The value at a path.
    fn at<'a>(whole: &'a Value, path: &str) -> &'a Value {
        path.split('.').fold(whole, |within, name| &within[name])
    }

    /// A patch that sets one setting.
    fn patch(path: &str, value: Value) -> Value {
        path.rsplit('.').fold(value, |value, name| json!({ name: value }))
    }

    fn each_is_told<S: Settings>() {
        for (path, setting) in S::values() {
            let mut whole = json!(S::default());
            let before = at(&whole, &path).clone();
            let example = setting.kind.example();
            assert_ne!(before, example, "{path}: the example is its default");
            merge(&mut whole, patch(&path, example.clone()));
            let read: S = serde_json::from_value(whole).unwrap();
            assert_eq!(*at(&json!(read), &path), example, "{path}");
            assert!(setting.about().ends_with('.'), "{path}: {}", setting.about());
        }
    }

    #[test]
    fn every_setting_is_in_the_table_and_can_be_set() {
        each_is_told::<TopicSettings>();
        each_is_told::<QueueSettings>();
    }

    #[test]
    fn what_is_within_another_is_found_by_its_path() {
        let paths: Vec<String> = QueueSettings::values().into_iter().map(|(path, _)| path).collect();
        assert_eq!(&paths[..4], ["lease", "max_lease", "retry.attempts", "retry.backoff.first"]);
    }

    #[test]
    fn a_number_knows_its_bounds() {
        let values = QueueSettings::values();
        let (_, jitter) = values.iter().find(|(path, _)| path == "retry.jitter_percent").unwrap();
        assert!(matches!(jitter.kind, Kind::Number(0, 100)), "{jitter:?}");
    }
}
