//! A sweep is begun at one server and goes on when that is killed; another one tells how far it is, and a third one undoes it.

use punctual_engines::{Maria, Postgres, Redis};
use serde_json::json;

use crate::center::Center;
use crate::engine::Engine;
use crate::stage::sweeps::{act, begin, counts, fill, midway, over, sweep, tasks, undo};

const TASKS: u64 = 40_000;

fn a_sweep_and_its_undo_outlive_the_servers_that_began_them<E: Engine>() {
    let engine = E::start();
    let center = Center::start(3, &engine.url(), &[]);
    fill(&center.server(0), "t", TASKS as usize);
    let before = tasks(&center.server(1), "t");
    let asked = json!({ "select": { "topic": "t" }, "do": "cancel" });
    let mut preview = asked.clone();
    preview["dry_run"] = json!(true);
    let preview = center.server(1).post("/v1/sweeps", &preview).expect(200).json();
    assert_eq!((counts(&preview), &preview["more"]), ((TASKS, TASKS, 0), &json!(false)));
    let id = begin(&center.server(0), &asked);
    midway(&center.server(1), &id, TASKS);
    center.kill(0);
    assert_eq!(counts(&over(&center.server(1), &id)), (TASKS, TASKS, 0), "none is left out, none counted twice");
    assert!(tasks(&center.server(2), "t").is_empty());
    center.start_again(0);
    center.recover();
    let back = undo(&center.server(2), &id);
    midway(&center.server(1), &back, TASKS);
    center.kill(2);
    assert_eq!(counts(&over(&center.server(0), &back)), (TASKS, TASKS, 0), "the undo");
    assert_eq!(tasks(&center.server(1), "t"), before, "due times, bodies and priorities");
    center.start_again(2);
    center.recover();
    for server in 0..3 {
        assert_eq!(sweep(&center.server(server), &id)["undone_by"], json!(back), "all of them know");
        assert_eq!(act(&center.server(server), &id, "undo").expect(409).json()["code"], "cannot-undo");
    }
}

macro_rules! sweeps {
    ($($name:ident: $engine:ty;)*) => {$(
        #[test]
        fn $name() {
            a_sweep_and_its_undo_outlive_the_servers_that_began_them::<$engine>();
        }
    )*};
}

sweeps! {
    on_postgres_a_sweep_and_its_undo_outlive_the_servers_that_began_them: Postgres;
    on_mysql_a_sweep_and_its_undo_outlive_the_servers_that_began_them: Maria;
    on_redis_a_sweep_and_its_undo_outlive_the_servers_that_began_them: Redis;
}
