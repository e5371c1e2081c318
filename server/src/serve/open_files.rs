//! How many files the process may have open: each connection is one.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::config::Config;

/// Files besides connections: the store's, the log, the archive.
const OTHERS: u64 = 512;

/// Takes as many as the system grants. The usual limit is from times when programs could not handle more, and
/// systems grant far more to those who ask.
pub fn allow(config: &Config) {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let http = (config.http.connections as u64).saturating_mul(config.listen.len() as u64);
    let beanstalk = config.beanstalk.listen.as_ref().map_or(0, |_| config.beanstalk.connections as u64);
    let wanted = http.saturating_add(beanstalk).saturating_add(OTHERS);
    let granted = maximum.map_or(wanted, |maximum| maximum.min(wanted));
    let allowed = match current {
        Some(current) if current < granted => {
            match setrlimit(Resource::Nofile, Rlimit { current: Some(granted), maximum }) {
                Ok(()) => granted,
                Err(_) => current,
            }
        }
        Some(current) => current,
        None => return,
    };
    if allowed < wanted {
        tracing::warn!(
            allowed,
            wanted,
            "the system allows fewer open files than `http.connections` and `beanstalk.connections` need, and further connections wait: \
             raise it (ulimit -n, LimitNOFILE)"
        );
    }
}
