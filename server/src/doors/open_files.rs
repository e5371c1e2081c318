//! How many files the process may have open: each connection is one.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::Doorway;

/// Files besides connections: the store's, the log, the archive.
const OTHERS: u64 = 512;

/// Takes as many as the system grants. The usual limit is from times when programs could not handle more, and
/// systems grant far more to those who ask.
pub fn allow(doorways: &[Doorway]) {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let of = |doorway: &Doorway| (doorway.connections as u64).saturating_mul(doorway.addresses.len() as u64);
    let wanted = doorways.iter().map(of).fold(OTHERS, u64::saturating_add);
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
        let settings: Vec<String> = doorways.iter().map(|doorway| format!("`{}.connections`", doorway.name)).collect();
        tracing::warn!(
            allowed,
            wanted,
            "the limit on open files is lower than {} need, so further connections will wait: \
             raise it (ulimit -n, LimitNOFILE)",
            settings.join(" and ")
        );
    }
}
