//! Opening a store: users and passwords, TLS, versions of the tables, servers that will not do.

use std::fs;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use crate::ground::{MARIA, batch, commit, config, insert, numbered, open, prefix, row, take};
use punctual_core::store::{Hardship, Store, StoreError};
use punctual_engines::Maria;
use punctual_mysql::{Config, Database, Migrated, MysqlStore, OpenError};

fn refusal(config: &Config) -> String {
    match MysqlStore::open(config.clone()) {
        Err(OpenError::Refused(why)) => why,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_tables_are_made_once_and_are_there_next_time() {
    let config = config(MARIA.url());
    let attached = MysqlStore::attach(config.clone());
    assert!(matches!(&attached, Err(OpenError::Refused(why)) if why.contains("no store here")), "{attached:?}");
    assert_eq!(MysqlStore::migrate(&config), Ok(Migrated { from: None, to: 1 }));
    assert_eq!(MysqlStore::migrate(&config), Ok(Migrated { from: Some(1), to: 1 }));
    let store = MysqlStore::attach(config.clone()).unwrap();
    let tenure = take(&store);
    assert_eq!(commit(&store, batch(tenure.fence, 1, vec![insert(&row(1))])), Ok(Ok(())));
    drop(store);
    assert_eq!(numbered(&open(&config), 1), Some(row(1)));
}

#[test]
fn many_servers_that_start_at_once_make_the_tables_once() {
    let config = config(MARIA.url());
    thread::scope(|scope| {
        let openings: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    // One that comes while another makes the tables is told to come again.
                    loop {
                        match MysqlStore::open(config.clone()) {
                            Err(OpenError::Away(_)) => thread::sleep(Duration::from_millis(50)),
                            opened => break opened.map(|_| ()),
                        }
                    }
                })
            })
            .collect();
        for opening in openings {
            assert_eq!(opening.join().unwrap(), Ok(()));
        }
    });
}

#[test]
fn tables_of_a_newer_version_are_refused_and_of_an_older_one_brought_up_to_date() {
    let config = config(MARIA.url());
    open(&config);
    let set = |version: u32| MARIA.sql(&format!("UPDATE punctual.{}layout SET version={version}", prefix(&config)));
    set(2);
    assert!(refusal(&config).contains("newer"), "{}", refusal(&config));
    assert!(matches!(MysqlStore::attach(config.clone()), Err(OpenError::Refused(_))));
    assert!(matches!(MysqlStore::migrate(&config), Err(OpenError::Refused(_))));
    set(0);
    let attached = MysqlStore::attach(config.clone());
    assert!(matches!(&attached, Err(OpenError::Refused(why)) if why.contains("migrate")), "{attached:?}");
    assert_eq!(MysqlStore::migrate(&config), Ok(Migrated { from: Some(0), to: 1 }));
    MysqlStore::attach(config).unwrap();
}

#[test]
fn a_wrong_password_is_refused_and_not_repeated() {
    MARIA.sql("CREATE USER keeper@'%' IDENTIFIED BY 'p@ss word'; GRANT ALL ON punctual.* TO keeper@'%'");
    let with = |password: &str| config(MARIA.url().replace("root@", &format!("keeper:{password}@")));
    let store = open(&with("p%40ss%20word"));
    assert!(!format!("{store} {store:?}").contains("p@ss"), "{store:?}");
    assert!(format!("{store}").starts_with("MariaDB 10."), "{store}");
    let why = refusal(&with("p%40ss%20sword"));
    assert!(why.contains("keeper") && !why.contains("p@ss"), "{why}");
    assert!(refusal(&config(MARIA.url().replace("/punctual", "/nowhere"))).contains("CREATE DATABASE"));
    let unreachable = MysqlStore::open(config("mysql://root@127.0.0.1:1/punctual"));
    assert!(matches!(unreachable, Err(OpenError::Away(_))), "{unreachable:?}");
    let nameless = MysqlStore::open(config("mysql://root@no-such-host.invalid/punctual"));
    assert!(matches!(nameless, Err(OpenError::Away(_))), "{nameless:?}");
}

#[test]
fn a_unix_socket_will_do() {
    let url = |maria: &Maria| format!("mysql://root@localhost/punctual?socket={}", maria.socket());
    assert_eq!(take(&open(&config(url(&MARIA)))).serial, 0);
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let (certificate, key) = (made.cert.pem(), made.signing_key.serialize_pem());
    let files = [("own.pem", certificate.as_bytes()), ("own.key", key.as_bytes())];
    let encrypting =
        Maria::start_with_files(&["innodb_flush_method=nosync", "ssl-cert=own.pem", "ssl-key=own.key"], &files);
    assert_eq!(take(&open(&config(url(&encrypting)))).serial, 0, "also where the network is encrypted");
    let required = MysqlStore::open(config(format!("{}&ssl-mode=required", url(&encrypting)))).map(drop);
    assert!(matches!(required, Err(OpenError::Url(_))), "{required:?}");
}

#[test]
fn a_server_that_takes_only_short_statements_is_refused_with_what_to_do() {
    let maria = Maria::start_with(&["innodb_flush_method=nosync", "max-allowed-packet=1M"]);
    assert!(refusal(&config(maria.url())).contains("max_allowed_packet"));
}

#[test]
fn what_is_less_than_durable_is_told_at_the_start() {
    let weak =
        Maria::start_with(&["innodb-flush-log-at-trx-commit=2", "innodb-doublewrite=0", "log-bin=log", "server-id=1"]);
    let warnings = open(&config(weak.url())).warnings();
    assert_eq!(warnings.len(), 3, "{warnings:?}");
    let strong = open(&config(MARIA.url()));
    assert_eq!(strong.warnings(), Vec::<String>::new());
    let statement =
        Maria::start_with(&["innodb_flush_method=nosync", "log-bin=log", "server-id=1", "binlog-format=STATEMENT"]);
    assert!(refusal(&config(statement.url())).contains("binlog_format"));
}

#[test]
fn a_read_only_server_is_a_hardship_until_it_takes_changes_again() {
    let maria = Maria::start();
    maria.sql("CREATE USER me@'%'; GRANT ALL ON punctual.* TO me@'%'");
    let store = open(&Config { patience: Duration::from_millis(500), ..config(maria.url().replace("root@", "me@")) });
    let tenure = take(&store);
    maria.sql("SET GLOBAL read_only=1");
    let failed = commit(&store, batch(tenure.fence, 1, vec![insert(&row(1))]));
    assert!(matches!(failed, Err(StoreError::Unavailable(_))), "{failed:?}");
    assert!(matches!(store.hardship(), Some(Hardship::Failing(_))), "{:?}", store.hardship());
    maria.sql("SET GLOBAL read_only=0");
    assert_eq!(commit(&store, batch(tenure.fence, 1, vec![insert(&row(1))])), Ok(Ok(())));
    assert_eq!(store.hardship(), None);
}

/// A file that goes with the test's process's directory of temporary files.
fn file(name: &str, content: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("punctual-mysql-{}-{name}", std::process::id()));
    fs::write(&path, content).unwrap();
    path
}

#[test]
fn tls_is_as_strict_as_it_is_asked_to_be() {
    use rcgen::{CertificateParams, KeyPair};
    let certify = |name: &str| {
        let key = KeyPair::generate().unwrap();
        let certificate = CertificateParams::new(vec![name.to_owned()]).unwrap().self_signed(&key).unwrap();
        (certificate.pem(), key.serialize_pem())
    };
    let server = |(certificate, key): &(String, String)| {
        let files = [("own.pem", certificate.as_bytes()), ("own.key", key.as_bytes())];
        Maria::start_with_files(&["innodb_flush_method=nosync", "ssl-cert=own.pem", "ssl-key=own.key"], &files)
    };
    let here = certify("127.0.0.1");
    let elsewhere = certify("db.example.com");
    let (maria, other) = (server(&here), server(&elsewhere));
    let (ca, other_ca) = (file("here.pem", &here.0), file("elsewhere.pem", &elsewhere.0));
    let open = |maria: &Maria, mode: &str, ca: Option<&PathBuf>| {
        let url = format!("{}?ssl-mode={mode}", maria.url());
        MysqlStore::open(Config { ca: ca.cloned(), ..config(url) }).map(|store| take(&store).serial)
    };
    maria.sql("CREATE USER secret@'%' REQUIRE SSL; GRANT ALL ON punctual.* TO secret@'%'");
    let secret = |mode: &str| {
        MysqlStore::open(config(format!("{}?ssl-mode={mode}", maria.url().replace("root@", "secret@")))).map(|_| ())
    };
    assert!(matches!(secret("disabled"), Err(OpenError::Refused(_))), "it is really not encrypted");
    assert_eq!((secret("preferred"), secret("required")), (Ok(()), Ok(())));
    assert_eq!(open(&maria, "verify-identity", Some(&ca)), Ok(0));
    assert_eq!(open(&other, "required", None), Ok(0), "the name does not matter");
    for (maria, mode, ca) in [
        (&other, "verify-identity", Some(&other_ca)),
        (&maria, "verify-identity", Some(&other_ca)),
        (&maria, "verify-identity", None),
    ] {
        let refused = open(maria, mode, ca);
        assert!(matches!(refused, Err(OpenError::Refused(_))), "{mode} {ca:?}: {refused:?}");
    }
    let plain = Maria::start();
    assert_eq!(open(&plain, "preferred", None), Ok(0));
    assert!(matches!(open(&plain, "required", None), Err(OpenError::Refused(_))));
    [ca, other_ca].iter().for_each(|file| fs::remove_file(file).unwrap());
}
