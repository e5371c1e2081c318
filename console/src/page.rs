//! The one page: where its files are, and what this server is called.

use std::fmt::Write;

/// Fills in the page. The places are comments and attributes of its own, so that it stays a page that can be read.
pub fn page(template: &str, hash: &str, title: &str, environment: Option<&str>) -> String {
    template
        .replace("assets/", &format!("assets/{hash}/"))
        .replace("%title%", &escaped(title))
        .replace("%environment%", &escaped(environment.unwrap_or_default()))
}

/// A text as it stands in an element or an attribute. What is filled in later is not looked for in it.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' | '<' | '>' | '"' | '\'' | '%' | '/' => _ = write!(escaped, "&#{};", u32::from(character)),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_operators_write_is_text() {
        let template = "<link href=\"/console/assets/a.css\"><title>%title%</title><meta content=\"%environment%\">";
        let page = page(template, "00", "\"><script>alert(1)</script>%environment% assets/", Some("a\"b"));
        assert!(!page.contains("<script>") && !page.contains("a\"b"), "{page}");
        assert_eq!(page.matches("a&#34;b").count(), 1, "a title is not looked through for places: {page}");
        assert!(page.contains("/console/assets/00/a.css"), "{page}");
    }
}
