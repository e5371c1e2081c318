//! Pages for people, held by tests: every link leads somewhere, and what is there in two languages says the same. Whether the
//! words do cannot be told here; but nothing is added, taken away or moved in one of them alone.

#![allow(clippy::unwrap_used, reason = "a test says what is wrong by panicking")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The pages in English that are there in Chinese, too, with where.
const PAIRS: &[(&str, &str)] = &[
    ("README.md", "README.zh-CN.md"),
    ("docs/quick-start.md", "docs/zh/quick-start.md"),
    ("docs/concepts.md", "docs/zh/concepts.md"),
    ("docs/console.md", "docs/zh/console.md"),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

fn read(page: &str) -> String {
    fs::read_to_string(root().join(page)).unwrap_or_else(|error| panic!("{page}: {error}"))
}

/// All pages, as git names them.
fn pages() -> Vec<String> {
    let list = ["ls-files", "--cached", "--others", "--exclude-standard", "*.md"];
    let output = Command::new("git").args(list).current_dir(root()).output().unwrap();
    let files = String::from_utf8(output.stdout).unwrap();
    files.lines().filter(|file| root().join(file).exists()).map(str::to_owned).collect()
}

/// The text without its blocks and pieces of code, where brackets mean something else.
fn prose(text: &str) -> String {
    let outside = text.split("```").step_by(2).collect::<String>();
    // A name may be set as code inside of a link's brackets: the link stays.
    outside.split('`').enumerate().map(|(index, piece)| if index % 2 == 0 { piece } else { "code" }).collect()
}

/// Where the links of a page lead to, in their order.
fn links(text: &str) -> Vec<String> {
    let prose = prose(text);
    prose.split("](").skip(1).filter_map(|rest| Some(rest.split_once(')')?.0.to_owned())).collect()
}

/// The names that a page's headings can be linked to by.
fn anchors(text: &str) -> BTreeSet<String> {
    let outside = text.split("```").step_by(2).collect::<String>();
    let headings = outside
        .lines()
        .filter(|line| line.starts_with('#'))
        .map(|line| line.trim_start_matches('#').trim().to_lowercase());
    let named = |heading: String| {
        heading
            .chars()
            .filter(|c| c.is_alphanumeric() || " -_".contains(*c))
            .map(|c| if c == ' ' { '-' } else { c })
            .collect()
    };
    headings.map(named).collect()
}

/// What a link of a page leads to: a path from the root, and the heading there.
fn target(page: &str, link: &str) -> (PathBuf, Option<String>) {
    let (path, anchor) = link.split_once('#').map_or((link, None), |(path, anchor)| (path, Some(anchor.to_owned())));
    let mut whole = if path.is_empty() { PathBuf::from(page) } else { Path::new(page).parent().unwrap().to_owned() };
    for part in Path::new(path) {
        if part == ".." {
            assert!(whole.pop(), "{page}: {link} leads out of the tree");
        } else {
            whole.push(part);
        }
    }
    (whole, anchor)
}

/// Why a link leads nowhere, if it does.
fn nowhere(page: &str, link: &str) -> Option<String> {
    if link.contains("://") || link.starts_with("mailto:") {
        return None;
    }
    let (path, anchor) = target(page, link);
    let place = root().join(&path);
    if !place.exists() {
        return Some(format!("{page}: there is no {}", path.display()));
    }
    let anchor = anchor.filter(|_| path.extension().is_some_and(|extension| extension == "md"))?;
    let is_there = anchors(&fs::read_to_string(place).unwrap()).contains(&anchor);
    (!is_there).then(|| format!("{page}: {} has no heading #{anchor}", path.display()))
}

/// What a page is made of, line by line, without its words: headings, rows, items, paragraphs and pictures, and code as it is.
fn shape(text: &str) -> Vec<String> {
    let mut shape = Vec::new();
    let (mut is_code, mut is_paragraph) = (false, false);
    for line in text.lines() {
        let begins = |mark: &str| line.trim_start().starts_with(mark);
        let is_numbered = line.split_once(". ").is_some_and(|(number, _)| number.parse::<u8>().is_ok());
        let piece = if begins("```") {
            is_code = !is_code;
            Some(line.to_owned())
        } else if is_code {
            // What stands behind a command is said to people.
            Some(format!("code: {}", line.split("   # ").next().unwrap_or_default().trim_end()))
        } else if begins("#") {
            Some(format!("heading {}", line.chars().take_while(|c| *c == '#').count()))
        } else if begins("|") {
            Some(format!("row of {}", line.matches('|').count()))
        } else if begins("- ") || is_numbered {
            Some("item".to_owned())
        } else if line.is_empty() {
            is_paragraph = false;
            None
        } else if is_paragraph {
            None
        } else {
            Some(if begins("![") { "picture" } else { "paragraph" }.to_owned())
        };
        // The lines that follow belong to it; where they are broken differs between languages.
        is_paragraph |= piece.is_some() && !is_code && !begins("#") && !begins("```");
        shape.extend(piece);
    }
    shape
}

/// Where the links of a page lead to, as its English readers would be led.
fn led(page: &str, text: &str) -> Vec<String> {
    let plain = |link: &String| {
        if link.contains("://") {
            return link.clone();
        }
        let (path, anchor) = target(page, link);
        let path = path.to_str().unwrap().to_owned();
        let pair = PAIRS.iter().find(|(_, chinese)| *chinese == path);
        format!("{}#{}", pair.map_or(path.clone(), |(english, _)| (*english).to_owned()), anchor.unwrap_or_default())
    };
    // The first one leads to the other language.
    links(text).iter().skip(1).map(plain).collect()
}

/// The first thing in which two pages differ.
fn difference(english: &[String], chinese: &[String]) -> Option<String> {
    let at = english.iter().zip(chinese).position(|(left, right)| left != right);
    let at = at.or_else(|| (english.len() != chinese.len()).then(|| english.len().min(chinese.len())))?;
    let around = |side: &[String]| side.get(at).cloned().unwrap_or_else(|| "the end".into());
    Some(format!("piece {at}: {:?} in English, {:?} in Chinese", around(english), around(chinese)))
}

#[test]
fn every_link_leads_somewhere() {
    let mut seen = 0;
    let mut wrong = Vec::new();
    for page in pages() {
        let text = read(&page);
        seen += links(&text).len();
        wrong.extend(links(&text).iter().filter_map(|link| nowhere(&page, link)));
    }
    assert_eq!(wrong, Vec::<String>::new());
    assert!(seen > 200, "{seen} links were found");
    assert!(nowhere("README.md", "docs/no-such-page.md").is_some());
    assert!(nowhere("docs/http.md", "concepts.md#no-such-heading").is_some());
    assert_eq!(nowhere("docs/zh/concepts.md", "../operating.md#the-clock"), None);
    assert_eq!(links("[a](b.md) `[c](d.md)` and [`e`](f.md#g)\n```\n[h](i.md)\n```\n"), ["b.md", "f.md#g"]);
}

#[test]
fn both_languages_have_the_same_pieces_in_the_same_order() {
    for (english, chinese) in PAIRS {
        let (left, right) = (read(english), read(chinese));
        assert_eq!(
            difference(&shape(&left), &shape(&right)),
            None,
            "{english} and {chinese}: what is changed in one is changed in the other"
        );
        assert_eq!(difference(&led(english, &left), &led(chinese, &right)), None, "{english} and {chinese}: links");
        for (page, text, other) in [(english, &left, chinese), (chinese, &right, english)] {
            let first = links(text).into_iter().next().unwrap();
            assert_eq!(target(page, &first).0, Path::new(other), "{page} begins with the way to the other language");
        }
    }
}

#[test]
fn every_page_in_chinese_is_a_pair_and_is_in_chinese() {
    let is_chinese = |page: &String| page.starts_with("docs/zh/") || page.ends_with(".zh-CN.md");
    let found: BTreeSet<String> = pages().into_iter().filter(is_chinese).collect();
    assert_eq!(found, PAIRS.iter().map(|(_, chinese)| (*chinese).to_owned()).collect());
    for page in found {
        let untranslated = untranslated(&read(&page));
        assert_eq!(untranslated, Vec::<String>::new(), "{page}");
    }
    assert_eq!(
        untranslated("# 概念\n\nThis paragraph was forgotten, and stays in English.\n"),
        ["This paragraph was forgotten, and stays in English."]
    );
}

/// The lines of words of which none is Chinese. Lists of links are not words.
fn untranslated(text: &str) -> Vec<String> {
    let outside = text.split("```").step_by(2).collect::<String>();
    let has_words = |line: &&str| {
        line.split_whitespace().filter(|word| word.chars().all(|c| c.is_ascii_alphabetic() || ",.".contains(c))).count()
            > 3
    };
    let is_chinese = |line: &str| line.chars().any(|c| ('\u{4e00}'..='\u{9fff}').contains(&c));
    outside.lines().filter(has_words).filter(|line| !is_chinese(line)).map(str::to_owned).collect()
}

#[test]
fn what_differs_between_two_pages_is_found() {
    let page = "# A\n\nSome words\nand more.\n- one\n- two\n\n| a | b |\n\n```console\n$ do it    # like this\n```\n";
    let same = "# 甲\n\n一些词。\n- 一\n- 二\n\n| 甲 | 乙 |\n\n```console\n$ do it    # 这样\n```\n";
    assert_eq!(difference(&shape(page), &shape(same)), None);
    for (from, to) in [
        ("- two\n", ""),
        ("# A", "## A"),
        ("| a | b |", "| a |"),
        ("do it", "do that"),
        ("more.\n", "more.\n\nMuch more.\n"),
        ("| a | b |\n", "| a | b |\n| c | d |\n"),
    ] {
        assert!(difference(&shape(&page.replace(from, to)), &shape(same)).is_some(), "{from:?} became {to:?}");
    }
    let (left, right) =
        ("[中](zh/console.md) [x](concepts.md) [y](http.md)", "[En](../console.md) [x](concepts.md) [y](../http.md)");
    assert_eq!(difference(&led("docs/console.md", left), &led("docs/zh/console.md", right)), None);
    assert!(
        difference(&led("docs/console.md", left), &led("docs/zh/console.md", &right.replace("http", "cli"))).is_some()
    );
}
