//! The documentation of all settings, `docs/configuration.md`, made of the same table that reads them.

use std::fmt::Write;

use super::settings::{SECTIONS, SETTINGS};
use super::table::Setting;

const HEAD: &str = "\
<!-- Made by `punctual config --markdown`; a test compares it. Change server/src/config/settings.rs instead. -->
# Configuration

Punctual needs none: `punctual serve` keeps its data in `./punctual-data` and listens on `127.0.0.1:7400`.

Settings come from four places, each overriding the former:

1. the defaults below;
2. a TOML file: the one named by `--config FILE` or `PUNCTUAL_CONFIG`, else `./punctual.toml` if it is there;
3. environment variables: `PUNCTUAL_` and the setting's name in capitals, `_` for the dot;
4. flags of `punctual serve` and `punctual config`: the name with `-` for dots and underscores.

So `store.memory` is `memory` in the section `[store]`, `PUNCTUAL_STORE_MEMORY`, or `--store-memory`. A setting
or variable that does not exist is refused with the nearest one that does, and a value that does not fit with
what to write instead: all problems at once, with file and line.

```console
$ punctual config           # what counts, and where each value came from
$ punctual config --json    # the same for machines
$ punctual config --check   # only whether it can be used: exit code 0 or 2
```

```toml
# punctual.toml
listen = [\"127.0.0.1:7400\", \"10.0.0.5:7400\"]
data = \"/var/lib/punctual\"

[store]
memory = \"1GiB\"
sync = \"always\"

[tls]
certificate = \"/etc/punctual/cert.pem\"
key = \"/etc/punctual/key.pem\"
```

Sizes are written `192MiB` (KiB, MiB, GiB, TiB) or as a number of bytes; times `15m`, `1h30m`, `250ms` or as a
number of milliseconds; lists as TOML lists, or with commas. Paths are relative to the working directory. An
empty text is *not set*. A switch may stand alone as a flag, or take `=true` or `=false`.

Other variables: `PUNCTUAL_CONFIG` names the file; `PUNCTUAL_URL`, `PUNCTUAL_TOKEN` and `PUNCTUAL_CA`
are for the commands that talk to a server.
";

/// All settings as a page of Markdown.
pub fn markdown() -> String {
    let mut page = HEAD.to_owned();
    page += "\n## The main ones\n";
    describe(&mut page, SETTINGS.iter().filter(|setting| setting.place().0.is_none()));
    for (section, about) in SECTIONS {
        _ = writeln!(page, "\n## [{section}]\n{}", about.trim());
        describe(&mut page, SETTINGS.iter().filter(|setting| setting.place().0 == Some(section)));
    }
    page
}

fn describe(page: &mut String, settings: impl Iterator<Item = &'static Setting>) {
    *page += "\n| setting | default | what it is | variable, flag |\n| --- | --- | --- | --- |\n";
    for setting in settings {
        let default = if setting.default.is_empty() { "not set".to_owned() } else { format!("`{}`", setting.default) };
        let (about, variable, flag) = (setting.about().replace('|', "\\|"), setting.variable(), setting.flag());
        let (name, kind) = (setting.name, setting.kind);
        _ = writeln!(page, "| `{name}` | {default} | {about} *({kind})* | `{variable}` `--{flag}` |");
    }
}
