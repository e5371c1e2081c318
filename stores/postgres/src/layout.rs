//! Where the tables are: a schema, and a prefix of their names, so that several Punctuals find room in one database.

use punctual_database::OpenError;

/// The tables by the names that statements call them by.
const TABLES: [&str; 8] = ["shards", "nodes", "cluster", "names", "rows", "tallies", "deltas", "migrations"];

/// How many bytes a name can have in PostgreSQL; the rest is cut off.
const LONGEST: usize = 63;
/// How many bytes the longest name of a table or index has, without prefix.
const LONGEST_OWN: usize = 11;

/// A schema and a prefix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    schema: String,
    prefix: String,
}

impl Layout {
    pub(crate) fn new(schema: &str, prefix: &str) -> Result<Layout, OpenError> {
        let can_be = |name: &str, longest: usize| name.len() <= longest && !name.contains('\0');
        if schema.is_empty() || !can_be(schema, LONGEST) {
            return Err(OpenError::Url(format!(
                "{schema:?} cannot be the name of a schema: it takes 1 to {LONGEST} bytes"
            )));
        }
        let longest = LONGEST - LONGEST_OWN;
        if !can_be(prefix, longest) {
            return Err(OpenError::Url(format!(
                "{prefix:?} cannot be a prefix of tables: it takes at most {longest} bytes"
            )));
        }
        Ok(Layout { schema: schema.to_owned(), prefix: prefix.to_owned() })
    }

    /// Puts the names in their places: `{rows}` becomes the table, `{schema}` the schema, and `{rows_time}` an index.
    pub(crate) fn fill(&self, text: &str) -> String {
        let mut filled = String::with_capacity(text.len() * 2);
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('{') {
            let (word, after) = after.split_once('}').expect("our own text closes its braces");
            filled.push_str(before);
            filled.push_str(&self.name(word));
            rest = after;
        }
        filled.push_str(rest);
        filled
    }

    /// The tables' full names.
    pub(crate) fn tables(&self) -> impl Iterator<Item = String> {
        TABLES.iter().map(|table| self.name(table))
    }

    /// The schema, as it was given.
    pub(crate) fn schema(&self) -> &str {
        &self.schema
    }

    /// The name of the table that says which version the others are of, without its schema.
    pub(crate) fn migrations(&self) -> String {
        format!("{}migrations", self.prefix)
    }

    /// What stands before the names of tables, for people.
    pub(crate) fn place(&self) -> String {
        if self.prefix.is_empty() { self.schema.clone() } else { format!("{}.{}*", self.schema, self.prefix) }
    }

    /// What only one at a time may migrate, for the server's lock.
    pub(crate) fn lock_text(&self) -> String {
        format!("punctual:{}", self.name("migrations"))
    }

    fn name(&self, word: &str) -> String {
        match word {
            "schema" => quoted(&self.schema),
            table if TABLES.contains(&table) => {
                format!("{}.{}", quoted(&self.schema), quoted(&format!("{}{table}", self.prefix)))
            }
            other => quoted(&format!("{}{other}", self.prefix)),
        }
    }
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_quoted_whatever_they_are() {
        let layout = Layout::new("we\"ird; DROP", "a b.").unwrap();
        let filled = layout.fill("CREATE INDEX {rows_time} ON {rows} (at)");
        assert_eq!(filled, r#"CREATE INDEX "a b.rows_time" ON "we""ird; DROP"."a b.rows" (at)"#);
    }

    #[test]
    fn names_that_postgresql_would_cut_are_refused() {
        assert!(Layout::new("", "").is_err());
        assert!(Layout::new(&"s".repeat(64), "").is_err());
        assert!(Layout::new("s", &"p".repeat(53)).is_err());
        assert!(Layout::new("s", &"p".repeat(52)).is_ok());
        assert!(Layout::new("a\0b", "").is_err());
    }

    #[test]
    fn no_name_of_ours_is_longer_than_is_thought() {
        let texts = [include_str!("../sql/migrations/1.sql")];
        for word in texts.iter().flat_map(|text| text.split('{').skip(1)).filter_map(|part| part.split_once('}')) {
            assert!(word.0.len() <= LONGEST_OWN, "{}", word.0);
        }
    }
}
