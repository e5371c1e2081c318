//! What browsers are sent, and what programs are.

use crate::stage::{Answer, Connection, Server};

/// What every answer of the console has to say to a browser.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
    base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

/// Asks as a browser does, or as somebody else.
fn ask(server: &Server, path: &str, headers: &[(&str, &str)]) -> Answer {
    let mut connection: Connection = server.connect();
    let lines: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    connection.send_raw(format!("GET {path} HTTP/1.1\r\nhost: {}\r\n{lines}\r\n", server.address()).as_bytes());
    connection.receive()
}

#[test]
fn browsers_are_led_to_the_console_and_programs_are_greeted() {
    let server = Server::start();
    let browser = ask(&server, "/", &[("accept", "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8")]);
    assert_eq!((browser.status, browser.header("location")), (303, Some("/console/")));
    assert_eq!(ask(&server, "/console", &[]).header("location"), Some("/console/"));
    let program = ask(&server, "/", &[("accept", "*/*")]).expect(200);
    assert!(program.text().contains("POST /v1/tasks"), "{}", program.text());
    assert_eq!(program.header("vary"), Some("accept"));
}

#[test]
fn pages_and_their_files_come_with_the_policy_and_are_kept_as_long_as_they_are_good() {
    let server = Server::start_with(&["--console-title", "Our <delays>", "--console-environment", "production"]);
    let page = server.get("/console/topics/a%2Fb").expect(200);
    assert_eq!(page.header("content-security-policy"), Some(POLICY));
    assert_eq!(page.header("cache-control"), Some("no-cache"));
    assert!(page.text().contains("Our &#60;delays&#62;") && page.text().contains("content=\"production\""));
    assert!(!page.text().contains("<delays>"));
    let text = page.text();
    let script = text.split("src=\"").nth(1).unwrap().split('"').next().unwrap();
    let file = server.get(script).expect(200);
    assert_eq!(file.header("content-security-policy"), Some(POLICY));
    assert_eq!(file.header("cache-control"), Some("public, max-age=31536000, immutable"));
    assert_eq!(file.header("content-type"), Some("text/javascript; charset=utf-8"));
    let packed = ask(&server, script, &[("accept-encoding", "gzip")]).expect(200);
    assert_eq!(packed.header("content-encoding"), Some("gzip"));
    assert!(packed.body.len() < file.body.len() / 2);
    for gone in ["/console/assets/0123456789abcdef/main.js", "/console/assets/x"] {
        server.get(gone).expect(404);
    }
}

#[test]
fn the_console_can_be_switched_off() {
    let server = Server::start_with(&["--console-enabled=false"]);
    for path in ["/console", "/console/", "/console/topics", "/console/assets/x/main.js"] {
        assert_eq!(server.get(path).expect(404).json()["code"], "not-found", "{path}");
    }
    ask(&server, "/", &[("accept", "text/html")]).expect(200);
}

#[test]
fn pages_need_no_token_and_what_they_show_does() {
    let mut server = Server::prepare(&[], &[]);
    let create = ["token", "create", "--name", "looker", "--role", "view"];
    let made = crate::stage::run(crate::stage::punctual().args(create).arg("--data").arg(server.data()));
    assert_eq!(made.code, Some(0), "{made:?}");
    server.start_again();
    server.get("/console/").expect(200);
    server.get("/v1/stats").expect(401);
}
