//! Whether a request is meant for this server and was sent of somebody's own will: all pass here before they are routed.
//!
//! A browser sends what a page tells it to, from inside networks that the page's author cannot reach. A page gets at
//! a server there in two ways. It asks for the server's address: then `Origin` or `Sec-Fetch-Site` say that the page
//! is of elsewhere. Or the name under which the page was loaded is made to resolve to the server's address (DNS
//! rebinding): then the page is of the same origin, and nothing but the name in `Host` gives it away.
//!
//! **Invariant**: which server is meant is read in one place, as RFC 9112 says, and is never in doubt: where it stands
//! twice or not at all, the request is refused.

use std::net::{Ipv4Addr, Ipv6Addr};

use http::header::{HOST, HeaderName, ORIGIN};
use http::{HeaderMap, Method, Request, Version};
use punctual_console::PLACE;
use punctual_core::scope::fits;

use crate::fault::{Code, Fault};

/// Where a browser says which site a request comes from.
const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// What a browser wants to do with the answer, and where it will show it.
const SEC_FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");
const SEC_FETCH_DEST: HeaderName = HeaderName::from_static("sec-fetch-dest");

/// How the names end that are always this machine.
const LOCAL: &str = ".localhost";

/// The names under which the server may be asked, besides `localhost` and its addresses: patterns in lower case in
/// which `*` stands for any characters.
#[derive(Clone, Debug, Default)]
pub struct Hosts(Vec<String>);

impl Hosts {
    /// These names.
    pub fn new(patterns: impl IntoIterator<Item = String>) -> Hosts {
        Hosts(patterns.into_iter().map(|pattern| pattern.to_ascii_lowercase()).collect())
    }

    /// An address is never the name of a page's server, and names under `localhost` are nobody's to give away
    /// (RFC 6761): neither can be made to resolve to something else.
    fn fit(&self, host: &str) -> bool {
        let host = host.strip_suffix('.').unwrap_or(host);
        let ending = host.len().checked_sub(LOCAL.len()).map(|at| &host.as_bytes()[at..]);
        host.parse::<Ipv4Addr>().is_ok()
            || host.eq_ignore_ascii_case(&LOCAL[1..])
            || ending.is_some_and(|ending| ending.eq_ignore_ascii_case(LOCAL.as_bytes()))
            || self.0.iter().any(|pattern| fits(pattern, &host.to_ascii_lowercase()))
    }
}

/// Refuses what is not meant for this server, and what a page of elsewhere has sent.
pub(crate) fn check<B>(request: &Request<B>, hosts: &Hosts) -> Result<(), Fault> {
    let authority = authority(request)?;
    if let Some(authority) = authority {
        let host =
            host_of(authority).ok_or_else(|| bad("`Host` must be a host name or address, with or without a port"))?;
        if let Host::Name(name) = host
            && !hosts.fit(name)
        {
            let detail = format!(
                "this server is not known as {name:?}: use its address, or ask its operator to add the name to \
                 `http.hosts`"
            );
            return Err(Fault::new(Code::MisdirectedRequest, detail));
        }
    }
    if is_visit(request) { Ok(()) } else { check_page(request.headers(), authority) }
}

/// Whether somebody follows a link into the console. Links stand on pages of elsewhere, in a chat or a report, and what
/// they lead to is the same for everybody; other pages can neither read it nor show it in a frame.
fn is_visit<B>(request: &Request<B>) -> bool {
    let headers = request.headers();
    let path = request.uri().path();
    let is_console = path == "/" || path == PLACE.trim_end_matches('/') || path.starts_with(PLACE);
    let navigates = headers.get(SEC_FETCH_MODE).is_some_and(|mode| mode == "navigate");
    let is_page = headers.get(SEC_FETCH_DEST).is_some_and(|dest| dest == "document");
    is_console && navigates && is_page && request.method() == Method::GET && !headers.contains_key(ORIGIN)
}

fn bad(detail: &str) -> Fault {
    Fault::new(Code::BadRequest, detail)
}

/// The only line of this name, if there is one.
fn only<'a>(headers: &'a HeaderMap, name: &HeaderName, twice: &str) -> Result<Option<&'a [u8]>, Fault> {
    let mut lines = headers.get_all(name).iter();
    match (lines.next(), lines.next()) {
        (_, Some(_)) => Err(bad(twice)),
        (line, None) => Ok(line.map(|line| line.as_bytes())),
    }
}

/// Which server is meant, with its port. A name in the request line counts instead of the one in `Host`; clients of
/// HTTP/1.0, which no browser is, may give none.
fn authority<B>(request: &Request<B>) -> Result<Option<&str>, Fault> {
    let host = only(request.headers(), &HOST, "the request has several `Host` headers: send one")?;
    if host.is_none() && request.version() > Version::HTTP_10 {
        return Err(bad("the request has no `Host` header: send one"));
    }
    if let Some(authority) = request.uri().authority() {
        return Ok(Some(authority.as_str()));
    }
    host.map(|host| str::from_utf8(host).map_err(|_| bad("`Host` is not text"))).transpose()
}

enum Host<'a> {
    /// A name, or an IPv4 address.
    Name(&'a str),
    Ipv6,
}

/// The host in a host and port; `None` if it is not that.
fn host_of(authority: &str) -> Option<Host<'_>> {
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => {
            let (address, port) = rest.split_once(']')?;
            address.parse::<Ipv6Addr>().ok()?;
            (Host::Ipv6, port)
        }
        None => {
            let name = authority.split(':').next()?;
            let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
            if name.is_empty() || !name.bytes().all(is_name) {
                return None;
            }
            (Host::Name(name), &authority[name.len()..])
        }
    };
    let is_port = port.is_empty() || port.strip_prefix(':')?.bytes().all(|byte| byte.is_ascii_digit());
    is_port.then_some(host)
}

/// A browser says which page a request comes from. Pages of elsewhere have no business here: without this, any page
/// that somebody visits could give commands to a server that they reach.
fn check_page(headers: &HeaderMap, authority: Option<&str>) -> Result<(), Fault> {
    let origin = only(headers, &ORIGIN, "the request has several `Origin` headers: send at most one")?;
    let is_own = origin.is_none_or(|origin| {
        let page = origin.strip_prefix(b"http://").or_else(|| origin.strip_prefix(b"https://"));
        page.zip(authority).is_some_and(|(page, here)| page.eq_ignore_ascii_case(here.as_bytes()))
    });
    // Of the same site are also pages of other ports and of the names beside this one.
    let sites = headers.get_all(SEC_FETCH_SITE).iter();
    if is_own && sites.into_iter().all(|site| matches!(site.as_bytes(), b"same-origin" | b"none")) {
        return Ok(());
    }
    Err(Fault::new(Code::Forbidden, "requests from web pages of other origins are refused"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(version: Version, target: &str, headers: &[(&str, &str)]) -> Option<u16> {
        let mut request = Request::builder().version(version).uri(target);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let hosts = Hosts::new(["Punctual.example".to_owned(), "*.cluster.local".to_owned()]);
        let refused = check(&request.body(()).expect("the headers are well formed"), &hosts).err();
        refused.map(|fault| fault.into_problem().status)
    }

    fn host(host: &str) -> Option<u16> {
        status(Version::HTTP_11, "/", &[("host", host)])
    }

    #[test]
    fn addresses_localhost_and_configured_names_are_this_server() {
        for known in [
            "127.0.0.1",
            "127.0.0.1:7400",
            "10.1.2.3:80",
            "[::1]:7400",
            "[fe80::1]",
            "localhost",
            "localhost:",
            "LocalHost:7400",
            "localhost.:7400",
            "punctual.localhost:7400",
            "punctual.example:443",
            "PUNCTUAL.EXAMPLE.",
            "punctual.queues.svc.cluster.local",
        ] {
            assert_eq!(host(known), None, "{known}");
        }
    }

    #[test]
    fn other_names_are_not_this_server() {
        for other in [
            "evil.example",
            "evil.example:7400",
            "localhost.evil.example",
            "localhost.evil.example.",
            "127.0.0.1.nip.io",
            "127.0.0.1.nip.io:7400",
            "notlocalhost",
            "punctual.example.evil.example",
            "evil-punctual.example",
            "cluster.local",
            "2130706433",
            "0x7f.1",
            "127.1",
            "localhost..",
        ] {
            assert_eq!(host(other), Some(421), "{other}");
        }
    }

    #[test]
    fn what_is_no_host_is_refused() {
        for bad in [
            "",
            ":7400",
            "evil@localhost",
            "localhost@evil.example",
            "localhost:x",
            "localhost:80:80",
            "localhost:80@evil.example",
            "localhost/",
            "[::1",
            "[::1]x",
            "[localhost]",
            "::1",
            "localhost,evil.example",
            "localhost evil.example",
        ] {
            assert_eq!(host(bad), Some(400), "{bad}");
        }
    }

    #[test]
    fn a_request_says_once_which_server_it_means() {
        assert_eq!(status(Version::HTTP_11, "/", &[]), Some(400));
        assert_eq!(status(Version::HTTP_10, "/", &[]), None);
        for second in ["localhost", "evil.example"] {
            assert_eq!(status(Version::HTTP_11, "/", &[("host", "localhost"), ("host", second)]), Some(400));
            assert_eq!(status(Version::HTTP_10, "/", &[("host", "localhost"), ("host", second)]), Some(400));
        }
        assert_eq!(status(Version::HTTP_10, "/", &[("host", "evil.example")]), Some(421));
    }

    #[test]
    fn a_server_in_the_request_line_counts_instead_of_host() {
        let localhost = [("host", "localhost")];
        assert_eq!(status(Version::HTTP_11, "http://localhost/", &[("host", "evil.example")]), None);
        assert_eq!(status(Version::HTTP_11, "http://evil.example/", &localhost), Some(421));
        assert_eq!(status(Version::HTTP_11, "http://localhost@evil.example/", &localhost), Some(400));
        assert_eq!(status(Version::HTTP_11, "http://localhost/", &[]), Some(400));
        let page = [("host", "localhost"), ("origin", "http://localhost")];
        assert_eq!(status(Version::HTTP_11, "http://127.0.0.1/", &page), Some(403));
    }

    #[test]
    fn a_page_of_another_origin_is_refused() {
        let origin = |origin: &str| status(Version::HTTP_11, "/", &[("host", "127.0.0.1:7400"), ("origin", origin)]);
        assert_eq!(origin("http://127.0.0.1:7400"), None);
        assert_eq!(origin("https://127.0.0.1:7400"), None);
        for other in
            ["https://evil.example", "null", "", "http://127.0.0.1:3000", "127.0.0.1:7400", "ftp://127.0.0.1:7400"]
        {
            assert_eq!(origin(other), Some(403), "{other}");
        }
        let own = "http://127.0.0.1:7400";
        let twice = [("host", "127.0.0.1:7400"), ("origin", own), ("origin", own)];
        assert_eq!(status(Version::HTTP_11, "/", &twice), Some(400));
        assert_eq!(status(Version::HTTP_10, "/", &[("origin", own)]), Some(403), "who gives no host has no page");
    }

    #[test]
    fn a_page_of_another_site_is_refused() {
        let site = |site: &str| status(Version::HTTP_11, "/", &[("host", "localhost"), ("sec-fetch-site", site)]);
        assert_eq!((site("same-origin"), site("none")), (None, None));
        for other in ["cross-site", "same-site", "", "Cross-Site", "none, cross-site"] {
            assert_eq!(site(other), Some(403), "{other}");
        }
        let twice = [("host", "localhost"), ("sec-fetch-site", "none"), ("sec-fetch-site", "cross-site")];
        assert_eq!(status(Version::HTTP_11, "/", &twice), Some(403));
    }

    #[test]
    fn a_link_of_another_site_leads_into_the_console_and_nowhere_else() {
        let link = |path: &str, host: &str, mode: &str, dest: &str| {
            let headers =
                [("host", host), ("sec-fetch-site", "cross-site"), ("sec-fetch-mode", mode), ("sec-fetch-dest", dest)];
            status(Version::HTTP_11, path, &headers)
        };
        for path in ["/", "/console", "/console/", "/console/tasks/t/1?x=y"] {
            assert_eq!(link(path, "localhost", "navigate", "document"), None, "{path}");
            assert_eq!(link(path, "evil.example", "navigate", "document"), Some(421), "{path}");
            assert_eq!(link(path, "localhost", "navigate", "iframe"), Some(403), "{path}");
            assert_eq!(link(path, "localhost", "no-cors", "script"), Some(403), "{path}");
        }
        for path in ["/v1/tasks", "/metrics", "/consoles", "/healthz"] {
            assert_eq!(link(path, "localhost", "navigate", "document"), Some(403), "{path}");
        }
    }
}
