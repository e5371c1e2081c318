//! The web console as files: which there are, under which path each is found, and what a browser is told with them.
//!
//! The console is a browser application on nothing but the public API, so this crate knows nothing of tasks. A path that
//! names no file is a page: the application reads it. **Invariant**: a file's path has a hash of all files in it, so
//! that what a browser has kept under a path is what this server would send.

mod files;
mod page;

use bytes::Bytes;

use files::{Kind, Tree};

/// What a page may do. Scripts and styles come from this server alone, nothing is written into a page as markup, and no
/// other page shows this one.
pub const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
     base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

/// What is said with everything: the policy, and that nobody else has a use for it.
const ALWAYS: [(&str, &str); 5] = [
    ("content-security-policy", POLICY),
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
];

/// Where the console is, with the slash at its end.
pub const PLACE: &str = "/console/";

/// The console, as one server shows it.
#[derive(Clone, Debug)]
pub struct Console {
    title: String,
    environment: Option<String>,
    tree: Tree,
}

/// What a browser gets.
#[derive(Debug)]
pub struct Sent {
    /// What it is.
    pub media: &'static str,
    /// How long it may be kept.
    pub cache: &'static str,
    /// The content.
    pub body: Bytes,
}

impl Sent {
    /// All headers but the length.
    pub fn headers(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        [("content-type", self.media), ("cache-control", self.cache)].into_iter().chain(ALWAYS)
    }
}

impl Console {
    /// With a title, and with a word for what this server is used for, such as `production`.
    pub fn new(title: &str, environment: Option<&str>) -> Console {
        Console { title: title.into(), environment: environment.map(Into::into), tree: Tree::embedded() }
    }

    /// What is at a path, which begins behind [`PLACE`]. Only below `assets/` there may be nothing.
    pub fn find(&self, path: &str) -> Option<Sent> {
        let tree = self.tree.current();
        let Some(asset) = path.strip_prefix("assets/") else {
            let (title, environment) = (&self.title, self.environment.as_deref());
            let body = page::page(tree.text("index.html")?, tree.hash(), title, environment);
            return Some(Sent { media: Kind::Html.media(), cache: "no-cache", body: body.into() });
        };
        let (hash, name) = asset.split_once('/')?;
        // A page of an earlier version would mix two versions if it got files of this one.
        if hash != tree.hash() {
            return None;
        }
        let (kind, body) = tree.find(name)?;
        Some(Sent { media: kind.media(), cache: "public, max-age=31536000, immutable", body })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_path_is_a_page_and_every_page_names_files_that_exist() {
        let console = Console::new("Punctual", None);
        for path in ["", "topics", "topics/a%2Fb", "tasks/t/assets", "no/such/page", "../x"] {
            let page = console.find(path).expect("a page is everywhere");
            assert_eq!((page.media, page.cache), ("text/html; charset=utf-8", "no-cache"), "{path}");
            let html = String::from_utf8(page.body.to_vec()).expect("a page is text");
            let named: Vec<&str> =
                html.split("\"/console/").skip(1).filter_map(|rest| rest.split('"').next()).collect();
            assert!(named.len() >= 3, "{html}");
            for name in named {
                let file = console.find(name).unwrap_or_else(|| panic!("{name} is not there"));
                assert!(file.cache.contains("immutable") && !file.body.is_empty(), "{name}");
            }
        }
    }

    #[test]
    fn what_is_not_of_this_version_is_not_there() {
        let console = Console::new("Punctual", None);
        let hash = console.tree.current().hash().to_owned();
        assert!(console.find(&format!("assets/{hash}/main.js")).is_some());
        for path in [
            "assets/",
            "assets/main.js",
            "assets/0000000000000000/main.js",
            &format!("assets/{hash}/"),
            &format!("assets/{hash}/index.html"),
            &format!("assets/{hash}/../main.js"),
            &format!("assets/{hash}/no.js"),
        ] {
            assert!(console.find(path).is_none(), "{path}");
        }
    }

    #[test]
    fn everything_is_sent_with_the_policy() {
        let console = Console::new("Punctual", None);
        let sent = console.find("").expect("there is a page");
        let headers: Vec<_> = sent.headers().collect();
        assert!(headers.contains(&("content-security-policy", POLICY)));
        for allowed in ["unsafe", "http:", "https:", "data:", "*"] {
            assert!(!POLICY.contains(allowed), "{allowed}");
        }
    }
}
