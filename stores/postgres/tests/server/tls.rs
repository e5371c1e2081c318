//! Who is trusted to be the server, and who is let in there.

use std::fs;

use punctual_engines::Postgres;
use punctual_postgres::{Config, Database, OpenError, PostgresStore};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};

use crate::owner::{Owner, SHARD, insert, row};

fn authority() -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

#[test]
fn the_server_is_trusted_as_far_as_the_mode_says() {
    let (ours, theirs) = (authority(), authority());
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new(vec!["localhost".to_owned()]).unwrap().signed_by(&key, &ours).unwrap();
    let files = [("server.crt", certificate.pem()), ("server.key", key.serialize_pem())];
    let files: Vec<(&str, &[u8])> = files.iter().map(|(name, text)| (*name, text.as_bytes())).collect();
    let postgres = Postgres::start_with_files(&["fsync=off", "ssl=on"], &files);
    let directory = std::env::temp_dir().join(format!("punctual-tls-{}", std::process::id()));
    fs::create_dir_all(&directory).unwrap();
    let [our_file, their_file] = [("ours.pem", &ours), ("theirs.pem", &theirs)].map(|(name, authority)| {
        let file = directory.join(name);
        fs::write(&file, authority.as_ref().pem()).unwrap();
        file.to_str().unwrap().to_owned()
    });
    let named = postgres.url().replace("127.0.0.1", "localhost");
    let open = |url: &str, parameters: &str| PostgresStore::open(Config::new(format!("{url}?{parameters}"))).map(drop);

    for mode in ["disable", "prefer", "require"] {
        assert_eq!(open(&postgres.url(), &format!("sslmode={mode}")), Ok(()), "{mode}");
    }
    let by = |mode: &str, file: &str| format!("sslmode={mode}&sslrootcert={file}");
    assert_eq!(open(&named, &by("verify-full", &our_file)), Ok(()));
    assert_eq!(open(&postgres.url(), &by("verify-ca", &our_file)), Ok(()), "whatever the name");
    let refused =
        |opened: Result<(), OpenError>| matches!(opened, Err(OpenError::Refused(text)) if text.contains("certificate"));
    assert!(refused(open(&postgres.url(), &by("verify-full", &our_file))), "another name");
    assert!(refused(open(&named, &by("verify-full", &their_file))), "another authority");
    assert!(refused(open(&postgres.url(), &by("verify-ca", &their_file))), "another authority");
    assert!(refused(open(&postgres.url(), &by("require", &their_file))), "who gives an authority means it");
    let config = Config { ca: Some(their_file.into()), ..Config::new(named) };
    assert!(refused(PostgresStore::open(config).map(drop)), "and also beside the address");
    fs::remove_dir_all(directory).unwrap();
}

#[test]
fn a_password_is_asked_for_and_never_told() {
    let access =
        b"local all all trust\nhost all postgres 127.0.0.1/32 trust\nhost all all 127.0.0.1/32 scram-sha-256\n";
    let postgres = Postgres::start_with_files(&["fsync=off"], &[("pg_hba.conf", access)]);
    postgres.sql("CREATE ROLE worker LOGIN PASSWORD 'pass/word?' ; GRANT CREATE ON DATABASE postgres TO worker");
    let url = |password: &str| postgres.url_of(&format!("worker:{password}"), "postgres");
    let store = std::sync::Arc::new(PostgresStore::open(Config::new(url("pass%2Fword%3F"))).unwrap());
    Owner::of(&store, SHARD, "a").commit(vec![insert(row(1))]).unwrap().unwrap();
    assert!(!store.to_string().contains("word"), "{store}");
    let wrong = PostgresStore::open(Config::new(url("wr0ngword"))).map(drop);
    assert!(matches!(&wrong, Err(OpenError::Refused(text)) if !text.contains("wr0ng")), "{wrong:?}");
    let encrypted = PostgresStore::open(Config::new(format!("{}?sslmode=require", url("pass%2Fword%3F")))).map(drop);
    assert!(matches!(encrypted, Err(OpenError::Refused(_))), "this server speaks no TLS: {encrypted:?}");
    let none = PostgresStore::open(Config::new(postgres.url_of("worker", "postgres"))).map(drop);
    assert!(matches!(&none, Err(OpenError::Refused(text)) if text.contains("password")), "{none:?}");
}
