//! Links under TLS, with certificates of both ends.

use std::sync::Arc;

use punctual_center::Links;
use punctual_link::{Settings, Tls};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, RootCertStore, ServerConfig};

use crate::node::{Node, Word, brisk};

/// Whoever certifies the nodes of a center.
fn authority() -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::new(Vec::<String>::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// What a node of this authority has.
fn tls(authority: &CertifiedIssuer<'static, KeyPair>) -> Tls {
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    let chain = vec![CertificateDer::from(params.signed_by(&key, authority).unwrap().der().to_vec())];
    let key = || PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from(authority.der().to_vec())).unwrap();
    let roots = Arc::new(roots);
    let provider = Arc::new(ring::default_provider());
    let verifier =
        WebPkiClientVerifier::builder_with_provider(Arc::clone(&roots), Arc::clone(&provider)).build().unwrap();
    let answering = ServerConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions();
    let answering =
        answering.unwrap().with_client_cert_verifier(verifier).with_single_cert(chain.clone(), key()).unwrap();
    let dialling = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let dialling = dialling.unwrap().with_root_certificates(roots).with_client_auth_cert(chain, key()).unwrap();
    Tls { dialling: Arc::new(dialling), answering: Arc::new(answering) }
}

fn encrypted(tls: Tls) -> Settings {
    Settings { tls: Some(tls), ..brisk() }
}

#[test]
fn nodes_with_certificates_of_one_authority_link() {
    let authority = authority();
    let (a, b) = (Node::with("a", encrypted(tls(&authority))), Node::with("b", encrypted(tls(&authority))));
    let on = a.link_to(b.peer());
    for id in 0..1_000 {
        a.ask(on, id, 1_000).unwrap();
    }
    a.log.wait(|words| (words.len() > 1_000).then_some(()));
    assert_eq!(b.log.asked(), (0..1_000).collect::<Vec<u64>>());
    a.links.close();
    a.log.wait_for(0, |word| matches!(word, Word::Unlinked(..)).then_some(()));
}

#[test]
fn a_node_with_a_certificate_of_another_authority_does_not_link() {
    let (a, b) = (Node::with("a", encrypted(tls(&authority()))), Node::with("b", encrypted(tls(&authority()))));
    a.links.keep(&[b.peer()]);
    assert!(a.trouble().contains("certificate"), "{}", a.trouble());
    assert_eq!(b.log.words(), []);
}

#[test]
fn a_node_without_encryption_does_not_link_with_one_that_asks_for_it() {
    let (a, b) = (Node::new("a"), Node::with("b", encrypted(tls(&authority()))));
    a.links.keep(&[b.peer()]);
    a.trouble();
    b.links.keep(&[a.peer()]);
    b.trouble();
    assert_eq!((a.log.words(), b.log.words()), (Vec::new(), Vec::new()));
}
