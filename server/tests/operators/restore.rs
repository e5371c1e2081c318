//! A cancellation that is taken back.

use serde_json::{Value, json};

use crate::stage::{Server, command, run};
use crate::{code, settle_one};

#[test]
fn what_was_cancelled_waits_again_as_it_was() {
    let server = Server::start_with(&["--node-shards", "3"]);
    let restore =
        |topic: &str, id: &str| server.connect().request("POST", &format!("/v1/tasks/{topic}/{id}/restore"), None);
    let task = |id: &str| server.get(&format!("/v1/tasks/t/{id}")).expect(200).json();
    let ids: Vec<String> = (0..9).map(|number| format!("order-{number}")).collect();
    let schedule = |id: &String| {
        let new = json!({ "topic": "t", "id": id, "delay": "1h", "priority": 7, "key": "k", "body": { "order": id } });
        server.post("/v1/tasks", &new).expect(201);
        task(id)
    };
    let before: Vec<Value> = ids.iter().map(schedule).collect();
    assert_eq!(server.delete("/v1/keys/k").expect(200).json()["changed"], 9);
    for (id, before) in ids.iter().zip(&before) {
        assert_eq!(restore("t", id).expect(200).json()["standing"]["at"], before["due"]);
        assert_eq!(task(id), *before);
        restore("t", id).expect(200);
    }
    server.post("/v1/tasks", &json!({ "topic": "t", "id": "due", "delay": "100ms" })).expect(201);
    server.delete("/v1/tasks/t/due").expect(200);
    std::thread::sleep(std::time::Duration::from_millis(150));
    assert_eq!(restore("t", "due").expect(200).json()["standing"]["state"], "ready", "its time has come meanwhile");
    settle_one(&server, "u", "done", "acknowledge");
    assert_eq!(code(restore("u", "done").expect(409)), "too-late");
    assert_eq!(code(restore("u", "nobody").expect(404)), "no-such-task");
    server.delete("/v1/tasks/t/order-0").expect(200);
    let told = run(command(&server).args(["uncancel", "t", "order-0"]));
    assert_eq!((told.code, told.stdout.starts_with("restored t order-0: ")), (Some(0), true), "{told:?}");
}
