//! Tokens in the database: the same for every server on it, whoever made them and wherever.

use super::*;

/// `punctual token` for whatever is in this database, from anywhere.
fn token(engine: &impl Engine, arguments: &[&str]) -> String {
    let ended = run(punctual().arg("token").args(arguments).args(["--store", &engine.url()]));
    assert_eq!(ended.code, Some(0), "{arguments:?}: {ended:?}");
    ended.stdout.trim().to_owned()
}

fn create(engine: &impl Engine, name: &str) -> String {
    token(engine, &["create", "--name", name, "--role", "admin"])
}

/// Whether the server lets this secret in.
fn lets_in(server: &mut Server, secret: Option<&str>) -> bool {
    server.token = secret.map(str::to_owned);
    match server.get("/v1/topics").status {
        200 => true,
        401 => false,
        status => panic!("{status}"),
    }
}

/// Tokens count within seconds, for a server that runs and for one that is started elsewhere; a revoked one counts nowhere.
fn are_the_same_for_all_servers<E: Engine>() {
    let engine = E::start();
    let mut server = started(&engine);
    assert!(lets_in(&mut server, None), "there are none yet");
    let first = create(&engine, "first");
    let made_at = Instant::now();
    eventually("strangers are out", || !lets_in(&mut server, None));
    assert!(made_at.elapsed() < Duration::from_secs(10), "{:?}", made_at.elapsed());
    assert!(lets_in(&mut server, Some(&first)));
    let second = create(&engine, "second");
    token(&engine, &["revoke", "first"]);
    eventually("the first is out", || !lets_in(&mut server, Some(&first)));
    assert!(lets_in(&mut server, Some(&second)));
    assert!(!server.data().exists(), "no data directory is made");
    server.token = None;
    assert!(server.stop().success());

    let mut other = prepared(&engine, &["--node-name", "other"]);
    other.start_again();
    other.says("every request needs a token from the store");
    assert!(!lets_in(&mut other, None) && !lets_in(&mut other, Some(&first)) && lets_in(&mut other, Some(&second)));
    let listed = token(&engine, &["list"]);
    assert!(listed.contains("second") && !listed.contains("first"), "{listed}");
    token(&engine, &["revoke", "second"]);
    eventually("nobody is let in", || !lets_in(&mut other, Some(&second)));
    assert!(!lets_in(&mut other, None), "to have no tokens left is not to be open");
}

/// While the database is away, whoever was let in is let in, and whoever was not is not.
fn stay_in_force_while_the_database_is_away<E: Engine>() {
    let mut engine = E::start();
    let mut server = started(&engine);
    let secret = create(&engine, "first");
    eventually("strangers are out", || !lets_in(&mut server, None));
    engine.kill();
    server.token = None;
    eventually("it says that it is not ready", || server.get("/readyz").status == 503);
    thread::sleep(Duration::from_secs(3));
    server.get("/v1/me").expect(401);
    server.token = Some(secret.clone());
    server.get("/v1/me").expect(200);
    engine.start_again();
    eventually("it is ready", || server.get("/readyz").status == 200);
    let second = create(&engine, "second");
    eventually("changes count again", || lets_in(&mut server, Some(&second)));
}

/// A file that is named counts alone; one in the data directory is taken over by a database that has no tokens.
fn a_file_that_is_named_wins<E: Engine>() {
    let engine = E::start();
    let in_store = create(&engine, "in the store");
    let mut server = prepared(&engine, &["--access-tokens", "tokens.toml"]);
    let made = run(punctual().current_dir(server.directory()).args([
        "token",
        "create",
        "--name",
        "named",
        "--role",
        "admin",
        "--tokens",
        "tokens.toml",
    ]));
    assert_eq!(made.code, Some(0), "{made:?}");
    server.start_again();
    assert!(lets_in(&mut server, Some(made.stdout.trim())) && !lets_in(&mut server, Some(&in_store)));
}

/// Whoever can reach a server from elsewhere needs a token, also where tokens are in the database.
fn guard_what_others_can_reach<E: Engine>() {
    let engine = E::start();
    let exposed = prepared(&engine, &["--listen", "0.0.0.0:0"]);
    let refused = run(&mut exposed.command());
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("there are no tokens in the store"), "{refused:?}");
    create(&engine, "first");
    let mut exposed = exposed;
    exposed.start_again();
}

/// A server that is moved from its own disk to a database and on to another one, and back, has the same tokens everywhere.
fn go_along_with_a_move<E: Engine>() {
    let (engine, next) = (E::start(), E::start());
    let mut server = Server::prepare(stage::ALMANAC, &[]);
    let data = server.data().display().to_string();
    let made = run(punctual().args(["token", "create", "--name", "a", "--role", "admin", "--data", &data]));
    let secret = made.stdout.trim().to_owned();
    server.start_again();
    assert!(server.stop().success());
    let moved = |from: &str, to: &str| {
        let ended = run(punctual().args(["store", "move", from, to]));
        assert_eq!(ended.code, Some(0), "{ended:?}");
    };
    let guarded = |store: &str, data: &str| {
        let mut server = Server::prepare(&["--store", store, "--data", data], &[]);
        server.start_again();
        assert!(!lets_in(&mut server, None) && lets_in(&mut server, Some(&secret)), "{store}");
        server.token = None;
        assert!(server.stop().success());
    };
    moved(&data, &engine.url());
    guarded(&engine.url(), &data);
    moved(&engine.url(), &next.url());
    guarded(&next.url(), "elsewhere");
    let back = tempfile::tempdir().unwrap();
    let back = back.path().join("back").display().to_string();
    moved(&next.url(), &back);
    guarded("almanac", &back);
}

macro_rules! facts {
    ($($name:ident: $engine:ty;)*) => {$(
        mod $name {
            use super::*;

            #[test]
            fn are_the_same_for_all_servers() {
                super::are_the_same_for_all_servers::<$engine>();
            }
            #[test]
            fn stay_in_force_while_the_database_is_away() {
                super::stay_in_force_while_the_database_is_away::<$engine>();
            }
            #[test]
            fn a_file_that_is_named_wins() {
                super::a_file_that_is_named_wins::<$engine>();
            }
            #[test]
            fn guard_what_others_can_reach() {
                super::guard_what_others_can_reach::<$engine>();
            }
            #[test]
            fn go_along_with_a_move() {
                super::go_along_with_a_move::<$engine>();
            }
        }
    )*};
}

facts! {
    on_postgres: Postgres;
    on_redis: Redis;
}
