//! A TOML file of settings, with the line of each.

use toml_edit::{Document, Item, TableLike};

use super::problem::{Origin, Problems, nearest};
use super::settings::{SECTIONS, SETTINGS};
use super::table::Setting;
use super::value::Given;

/// What a file says about one setting.
pub struct Assignment {
    pub setting: &'static Setting,
    pub given: Given,
    pub origin: Origin,
}

/// Reads a file. What it does not understand goes to the problems.
pub fn read(file: &str, text: &str, problems: &mut Problems) -> Vec<Assignment> {
    let lines = Lines { file, text };
    match Document::parse(text) {
        Ok(document) => {
            let mut entries = Vec::new();
            lines.walk(document.as_table(), "", &mut entries, problems);
            entries
        }
        Err(error) => {
            let message = error.message().trim().replace('\n', ", ");
            problems.add(&lines.at(error.span()), format!("not valid TOML: {message}"));
            Vec::new()
        }
    }
}

struct Lines<'a> {
    file: &'a str,
    text: &'a str,
}

impl Lines<'_> {
    fn at(&self, span: Option<std::ops::Range<usize>>) -> Origin {
        let offset = span.map_or(0, |span| span.start).min(self.text.len());
        let line = self.text.as_bytes()[..offset].iter().filter(|byte| **byte == b'\n').count() + 1;
        Origin::File { file: self.file.to_owned(), line }
    }

    fn walk(&self, table: &dyn TableLike, section: &str, entries: &mut Vec<Assignment>, problems: &mut Problems) {
        for (entry, item) in table.iter() {
            let name = if section.is_empty() { entry.to_owned() } else { format!("{section}.{entry}") };
            let span = table.key(entry).and_then(|key| key.span()).or_else(|| item.span());
            let origin = self.at(span);
            let is_section = SECTIONS.iter().any(|(known, _)| *known == name);
            match (Setting::named(&name), item) {
                (Some(setting), Item::Value(value)) => {
                    entries.push(Assignment { setting, given: Given::Toml(value.clone()), origin });
                }
                (Some(_), _) => {
                    problems.add(&origin, format!("`{name}` is a setting, not a section: write {entry} = …"))
                }
                (None, item) if is_section => match (item.as_table_like(), item, Setting::of_section(&name)) {
                    (Some(table), ..) => self.walk(table, &name, entries, problems),
                    (None, Item::Value(value), Some(setting)) => {
                        entries.push(Assignment { setting, given: Given::Toml(value.clone()), origin });
                    }
                    (None, ..) => problems
                        .add(&origin, format!("`{name}` is a section: write [{name}], and its settings below it")),
                },
                (None, _) => problems.add(&origin, unknown(&name)),
            }
        }
    }
}

fn unknown(name: &str) -> String {
    let settings = SETTINGS.iter().map(|setting| setting.name);
    let sections = SECTIONS.iter().map(|(section, _)| *section);
    if let Some(near) = nearest(name, settings.chain(sections)) {
        return format!("`{name}` is not a setting: did you mean `{near}`?");
    }
    // It may be in the wrong section.
    let entry = name.rsplit('.').next().unwrap_or(name);
    match SETTINGS.iter().find(|setting| setting.place().1 == entry) {
        Some(setting) => format!("`{name}` is not a setting: did you mean `{}`?", setting.name),
        None => format!("`{name}` is not a setting: run `punctual config` to see them all"),
    }
}
