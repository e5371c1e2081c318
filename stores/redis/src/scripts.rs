//! The scripts that Redis runs for the store, and how they are called. Each connection brings them along, so that a
//! server which has been restarted or promoted has them.

use std::sync::LazyLock;

use redis::{Cmd, Script, cmd};

/// A script with its flags. Redis refuses one without `allow-oom` before its first command when memory is short.
pub(crate) struct Lua {
    script: Script,
    text: String,
}

impl Lua {
    fn new(flags: &str, body: &str) -> Lua {
        let text = format!("#!lua{flags}\n{body}");
        Lua { script: Script::new(&text), text }
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The beginning of a call; its arguments follow.
    pub(crate) fn on(&self, keys: &[String]) -> Cmd {
        let mut call = cmd("EVALSHA");
        call.arg(self.script.get_hash()).arg(keys.len()).arg(keys);
        call
    }
}

const SCRIPTS: usize = 8;

/// All scripts, in the order of the names below.
pub(crate) static ALL: LazyLock<[Lua; SCRIPTS]> = LazyLock::new(|| {
    const OOM: &str = " flags=allow-oom";
    let commit = include_str!("lua/commit.lua");
    [
        Lua::new("", commit),
        Lua::new(OOM, commit),
        Lua::new(" flags=no-writes,allow-oom", include_str!("lua/read.lua")),
        Lua::new(OOM, include_str!("lua/claim.lua")),
        Lua::new(OOM, include_str!("lua/release.lua")),
        Lua::new(OOM, include_str!("lua/beat.lua")),
        Lua::new(OOM, include_str!("lua/put.lua")),
        Lua::new(" flags=no-writes,allow-oom", include_str!("lua/sizes.lua")),
    ]
});

/// A batch that brings new rows.
pub(crate) fn grow() -> &'static Lua {
    &ALL[0]
}

/// A batch that brings none, and may be what makes room.
pub(crate) fn change() -> &'static Lua {
    &ALL[1]
}

pub(crate) fn read() -> &'static Lua {
    &ALL[2]
}

pub(crate) fn claim() -> &'static Lua {
    &ALL[3]
}

pub(crate) fn release() -> &'static Lua {
    &ALL[4]
}

pub(crate) fn beat() -> &'static Lua {
    &ALL[5]
}

pub(crate) fn put() -> &'static Lua {
    &ALL[6]
}

pub(crate) fn sizes() -> &'static Lua {
    &ALL[7]
}
