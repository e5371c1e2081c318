//! The scripts in `console/tests`, run by Node: those about the console's modules by themselves, and those that use the
//! console in Debian's Chromium, on servers that they start, kill and start again.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError, RwLock};

use crate::stage::Server;

const TESTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../console/tests");

/// Browsers run side by side, as tests do; those that measure time have the machine for themselves.
static TURN: RwLock<()> = RwLock::new(());

/// The packages that the lock file names, installed if they are not. Several tests may need them at once.
fn install() {
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let (lock, installed) = (Path::new(TESTS).join("package-lock.json"), Path::new(TESTS).join("node_modules/.lock"));
    let wanted = std::fs::read(&lock).unwrap();
    if std::fs::read(&installed).is_ok_and(|there| there == wanted) {
        return;
    }
    succeed(Command::new("npm").current_dir(TESTS).args(["ci", "--silent", "--no-fund", "--no-audit"]));
    std::fs::write(installed, wanted).unwrap();
}

/// Runs a command, and shows what it printed if it fails.
fn succeed(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success(), "{command:?}:\n{text}");
    text
}

/// Runs files of tests by Node, at least so many tests, beside others.
fn node(files: &[&str], at_least: usize) {
    let _turn = TURN.read().unwrap_or_else(PoisonError::into_inner);
    run(files, at_least);
}

/// The same, with no other beside it.
fn alone(files: &[&str], at_least: usize) {
    let _turn = TURN.write().unwrap_or_else(PoisonError::into_inner);
    run(files, at_least);
}

fn run(files: &[&str], at_least: usize) {
    install();
    let told = succeed(
        Command::new("node")
            .current_dir(TESTS)
            .env("CONSOLE_TEST_BINARY", env!("CARGO_BIN_EXE_punctual"))
            .arg("--test")
            .args(files),
    );
    let passed = told.lines().find_map(|line| line.split_once("pass ")?.1.trim().parse().ok());
    let passed: usize = passed.unwrap_or_else(|| panic!("nothing was counted:\n{told}"));
    assert!(passed >= at_least, "{passed} tests:\n{told}");
}

#[test]
fn the_modules_do_what_they_say() {
    let about = ["words", "names", "body", "difference", "steady"].map(|name| format!("unit/{name}.test.mjs"));
    node(&about.each_ref().map(String::as_str), 22);
}

#[test]
fn the_rendering_core_agrees_with_another_one() {
    node(&["browser/render.test.mjs"], 4);
}

#[test]
fn every_page_is_safe_readable_and_still() {
    node(&["browser/pages.test.mjs"], 10);
}

#[test]
fn settings_are_changed_by_what_is_shown_and_nobody_is_overwritten() {
    node(&["browser/settings.test.mjs"], 4);
}

#[test]
fn the_future_is_shown_at_every_scale() {
    node(&["browser/future.test.mjs"], 4);
}

#[test]
fn many_tasks_are_changed_as_promised_and_that_is_undone() {
    node(&["browser/sweeps.test.mjs"], 10);
}

#[test]
fn the_server_is_followed_while_somebody_looks() {
    node(&["browser/live.test.mjs"], 6);
}

#[test]
fn acts_do_what_they_announce_and_trouble_is_survived() {
    node(&["browser/acts.test.mjs"], 8);
}

#[test]
fn every_dialog_is_for_everybody_and_needs_no_mouse() {
    node(&["browser/dialogs.test.mjs"], 4);
}

#[test]
fn nothing_moves_while_much_happens_and_tabs_go_on_beside_each_other() {
    node(&["browser/busy.test.mjs"], 8);
}

#[test]
fn what_is_offered_is_what_the_server_does() {
    node(&["browser/roles.test.mjs"], 3);
}

#[test]
fn long_words_have_room() {
    node(&["browser/long.test.mjs"], 2);
}

/// A tenth of a million tasks; a million by `CONSOLE_TEST_TASKS=1000000`, which is for a release build.
#[test]
fn a_thousand_topics_and_very_many_tasks_are_no_burden() {
    alone(&["browser/many.test.mjs"], 5);
}

/// The modules are written in plain JavaScript with types in comments. They are checked, also against the API as this
/// server describes it, so that the console and the API cannot drift apart.
#[test]
fn the_types_of_the_console_fit_the_api() {
    let _turn = TURN.read().unwrap_or_else(PoisonError::into_inner);
    install();
    let server = Server::start();
    let document = server.directory().join("openapi.json");
    std::fs::write(&document, server.get("/v1/openapi.json").expect(200).body).unwrap();
    let program = |path: &str| PathBuf::from(TESTS).join("node_modules").join(path);
    let types = server.directory().join("api.d.ts");
    succeed(
        Command::new("node")
            .arg(program("openapi-typescript/bin/cli.js"))
            .arg(&document)
            .args(["--default-non-nullable=false", "-o"])
            .arg(&types),
    );
    let check = |extra: &str| {
        let project = server.directory().join("tsconfig.json");
        let web = std::fs::canonicalize(Path::new(TESTS).join("../web")).unwrap();
        let wrong = server.directory().join("wrong.js");
        std::fs::write(&wrong, extra).unwrap();
        let text = serde_json::json!({
            "compilerOptions": {
                "allowJs": true, "checkJs": true, "noEmit": true, "strict": true, "target": "es2023", "module": "esnext",
                "moduleResolution": "bundler", "lib": ["es2023", "dom", "dom.iterable"], "types": [],
                "noUnusedLocals": true, "paths": { "punctual-api": [&types] },
            },
            "include": [web.join("**/*.js"), &wrong],
        });
        std::fs::write(&project, text.to_string()).unwrap();
        let mut tsc = Command::new("node");
        tsc.arg(program("typescript/bin/tsc")).arg("--project").arg(project).output().unwrap()
    };
    let right = check("");
    assert!(right.status.success(), "{}", String::from_utf8_lossy(&right.stdout));
    let wrong = check(
        "/** @type {import('punctual-api').components['schemas']['TaskInfo']} */\nlet task = /** @type {any} */ (0);\n\
         export const gone = task.no_such_field;\n",
    );
    let told = String::from_utf8_lossy(&wrong.stdout).into_owned();
    assert!(
        told.contains("no_such_field") && told.lines().count() == 1,
        "what drifts is noticed, and only that: {told}"
    );
}
