//! The MariaDB that tests run on.

use std::net::{Ipv4Addr, TcpStream};
use std::time::Duration;

use punctual_engines::Maria;

#[test]
fn a_killed_server_comes_back_with_what_it_had() {
    let mut maria = Maria::start();
    maria.sql("CREATE TABLE punctual.kept AS SELECT 7 AS n");
    maria.kill();
    assert!(TcpStream::connect((Ipv4Addr::LOCALHOST, maria.port())).is_err(), "it is away");
    maria.start_again();
    assert_eq!(maria.sql("SELECT n FROM punctual.kept"), "7");
    assert!(maria.cpu() > Duration::ZERO);
}

#[test]
fn settings_and_files_are_the_servers() {
    let maria =
        Maria::start_with_files(&["init-file=first.sql"], &[("first.sql", b"SET GLOBAL max_connections=33;\n")]);
    assert_eq!(maria.sql("SELECT @@max_connections, @@port"), format!("33\t{}", maria.port()));
    assert!(maria.log().contains("ready for connections"), "{}", maria.log());
}
