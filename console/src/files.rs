//! The files, built into the program. Builds for developers read them from where they were built, so that an
//! edit shows at the next reload.

use bytes::Bytes;

macro_rules! files {
    ($($name:literal)*) => {
        const FILES: &[(&str, &[u8])] = &[$(($name, include_bytes!(concat!("../web/", $name))),)*];
    };
}

files! {
    "api.js"
    "app.css"
    "i18n/en.js"
    "i18n/zh.js"
    "icon.svg"
    "index.html"
    "main.js"
    "pages/audit.js"
    "pages/consumers.js"
    "pages/dead.js"
    "pages/find.js"
    "pages/future.js"
    "pages/help.js"
    "pages/key.js"
    "pages/login.js"
    "pages/new.js"
    "pages/nodes.js"
    "pages/overview.js"
    "pages/queue.js"
    "pages/queues.js"
    "pages/server.js"
    "pages/sweeps.js"
    "pages/task.js"
    "pages/tasks.js"
    "pages/topic.js"
    "pages/topics.js"
    "parts/acts.js"
    "parts/body.js"
    "parts/chart.js"
    "parts/dialog.js"
    "parts/difference.js"
    "parts/download.js"
    "parts/frame.js"
    "parts/names.js"
    "parts/pieces.js"
    "parts/pulse.js"
    "parts/rowacts.js"
    "parts/running.js"
    "parts/selection.js"
    "parts/settings.js"
    "parts/steady.js"
    "parts/sweep.js"
    "parts/table.js"
    "parts/tasklist.js"
    "render.js"
    "router.js"
    "store.js"
    "time.js"
    "words.js"
}

/// What a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Html,
    Style,
    Script,
    Image,
}

impl Kind {
    fn of(name: &str) -> Option<Kind> {
        match name.rsplit_once('.')?.1 {
            "html" => Some(Kind::Html),
            "css" => Some(Kind::Style),
            "js" => Some(Kind::Script),
            "svg" => Some(Kind::Image),
            _ => None,
        }
    }

    pub fn media(self) -> &'static str {
        match self {
            Kind::Html => "text/html; charset=utf-8",
            Kind::Style => "text/css; charset=utf-8",
            Kind::Script => "text/javascript; charset=utf-8",
            Kind::Image => "image/svg+xml",
        }
    }
}

/// All files, and the hash of all of them.
#[derive(Clone, Debug)]
pub struct Tree {
    files: Vec<(&'static str, Bytes)>,
    hash: String,
}

impl Tree {
    pub fn embedded() -> Tree {
        Tree::of(FILES.iter().map(|(name, content)| (*name, Bytes::from_static(content))).collect())
    }

    fn of(mut files: Vec<(&'static str, Bytes)>) -> Tree {
        for (name, content) in &mut files {
            if Kind::of(name) == Some(Kind::Script)
                && let Ok(script) = str::from_utf8(content)
            {
                *content = without_comments(script).into();
            }
        }
        let mut hasher = blake3::Hasher::new();
        for (name, content) in &files {
            hasher.update(name.as_bytes()).update(&content.len().to_le_bytes()).update(content);
        }
        Tree { files, hash: hasher.finalize().to_hex()[..16].to_owned() }
    }

    /// As it is now: where this was built, if that is here and the build is one for developers.
    pub fn current(&self) -> Tree {
        let place = concat!(env!("CARGO_MANIFEST_DIR"), "/web/");
        let read = |name: &'static str| Some((name, std::fs::read(format!("{place}{name}")).ok()?.into()));
        let on_disk = cfg!(debug_assertions).then(|| FILES.iter().map(|(name, _)| read(name)).collect()).flatten();
        on_disk.map_or_else(|| self.clone(), Tree::of)
    }

    pub fn hash(&self) -> &str {
        &self.hash
    }

    /// A file that a page may ask for.
    pub fn find(&self, name: &str) -> Option<(Kind, Bytes)> {
        let (name, content) = self.files.iter().find(|(known, _)| *known == name)?;
        let kind = Kind::of(name).filter(|kind| *kind != Kind::Html)?;
        Some((kind, content.clone()))
    }

    /// A file as text.
    pub fn text(&self, name: &str) -> Option<&str> {
        let (_, content) = self.files.iter().find(|(known, _)| *known == name)?;
        str::from_utf8(content).ok()
    }
}

/// A script as it travels. Comments, types above all, are a sixth of it and for those who read the tree. Lines stay where they
/// are, so that an error in a browser leads to its place. Only whole lines are left out; that no text over several lines
/// looks like a comment is for the console's authors to see to, and its tests run what travels.
fn without_comments(script: &str) -> String {
    let mut within = false;
    let mut kept = String::with_capacity(script.len());
    for line in script.lines() {
        let text = line.trim();
        let begins = text.starts_with("/**") && text.find("*/").is_none_or(|end| end + 2 == text.len());
        within |= begins;
        if !within && !text.starts_with("//") {
            kept.push_str(line);
        }
        kept.push('\n');
        within &= !text.ends_with("*/");
    }
    kept
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;
    use std::io::Write;
    use std::path::Path;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    /// What all files may weigh on their way, packed.
    const LARGEST: usize = 90 << 10;

    fn below(directory: &Path, names: &mut BTreeSet<String>) {
        for entry in fs::read_dir(directory).expect("the directory is there") {
            let path = entry.expect("it can be read").path();
            if path.is_dir() {
                below(&path, names);
            } else {
                let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/web"));
                let name = path.strip_prefix(root).expect("it is below the root");
                names.insert(name.to_str().expect("names are text").to_owned());
            }
        }
    }

    #[test]
    fn every_file_is_in_the_list_and_of_a_known_kind() {
        let mut there = BTreeSet::new();
        below(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/web")), &mut there);
        let listed: BTreeSet<String> = FILES.iter().map(|(name, _)| (*name).to_owned()).collect();
        assert_eq!(listed, there);
        assert!(listed.iter().all(|name| Kind::of(name).is_some()), "{listed:?}");
    }

    fn packed<'a>(contents: impl IntoIterator<Item = &'a [u8]>) -> usize {
        let mut total = 0;
        for content in contents {
            let mut packing = GzEncoder::new(Vec::new(), Compression::best());
            packing.write_all(content).expect("memory takes it");
            total += packing.finish().expect("memory takes it").len();
        }
        total
    }

    #[test]
    fn the_console_is_small() {
        let tree = Tree::embedded();
        let sent = || tree.files.iter().map(|(_, content)| &content[..]);
        let size = packed(sent());
        assert!(size <= LARGEST, "{size} bytes packed");
        // What does not fit would be noticed.
        let mut state = 1_u32;
        let noise: Vec<u8> = (0..LARGEST)
            .map(|_| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (state >> 24) as u8
            })
            .collect();
        assert!(packed(sent().chain([&noise[..]])) > LARGEST);
    }

    #[test]
    fn comments_stay_at_home_and_lines_where_they_are() {
        let script = "// a\n/** b */\nlet c = 1; // d\n  /**\n   * e\n   */\nlet f = /** @type {any} */ (g);\n/** h */ (i).j();\n";
        let sent = "\n\nlet c = 1; // d\n\n\n\nlet f = /** @type {any} */ (g);\n/** h */ (i).j();\n";
        assert_eq!(without_comments(script), sent);
        for (name, content) in FILES {
            let script = str::from_utf8(content).expect("all files are text");
            assert_eq!(without_comments(script).lines().count(), script.lines().count(), "{name}");
        }
    }

    #[test]
    fn a_change_anywhere_changes_every_path() {
        let tree = Tree::embedded();
        let mut other = tree.files.clone();
        let last = other.last_mut().expect("there are files");
        last.1 = [&last.1[..], b" "].concat().into();
        assert_ne!(Tree::of(other).hash, tree.hash);
    }

    #[test]
    fn nothing_is_asked_of_other_servers() {
        let foreign = |text: &str| {
            let links = text.split("http").skip(1).filter(|rest| rest.starts_with("://") || rest.starts_with("s://"));
            links.filter(|rest| !rest.contains("www.w3.org/2000/svg")).count()
        };
        assert_eq!(foreign("import 'https://cdn.example/x.js'"), 1);
        for (name, content) in FILES {
            let text = str::from_utf8(content).expect("all files are text");
            assert_eq!(foreign(text), 0, "{name}");
        }
    }
}
