//! `me`: who the server takes the caller for.

use clap::Args;
use punctual_wire::{Me, Time};

use super::Session;
use super::failure::{Failure, help};

/// Show who you are to the server, and what you may do there.
#[derive(Args, Debug)]
#[command(after_help = help!("Example:\n  punctual me"))]
pub struct MeArgs {}

/// Asks, and prints what the server says.
pub async fn run(mut session: Session) -> Result<(), Failure> {
    let me = session.client.me().await?;
    session.output.either(&me, || told(&me, Time::now()))
}

fn told(me: &Me, now: Time) -> String {
    let roles: Vec<&str> = me.roles.iter().map(|role| role.as_str()).collect();
    let Me { name, topics, version, .. } = me;
    let ahead = me.now.0.cast_signed() - now.0.cast_signed();
    let clock = match ahead {
        -999..=999 => String::new(),
        1_000.. => format!(" ({} s ahead of this machine)", ahead / 1_000),
        _ => format!(" ({} s behind this machine)", -ahead / 1_000),
    };
    format!(
        "token   {name}\nroles   {}\ntopics  {}\nserver  Punctual {version}\nclock   {}{clock}",
        roles.join(", "),
        topics.join(", "),
        me.now
    )
}

#[cfg(test)]
mod tests {
    use punctual_wire::Role;

    use super::*;

    #[test]
    fn a_clock_that_differs_is_told() {
        let me = Me {
            name: "shop".into(),
            roles: vec![Role::Produce, Role::View],
            topics: vec!["orders*".into(), "mails".into()],
            version: "1.2.3".into(),
            now: Time(100_000),
        };
        let lines = "token   shop\nroles   produce, view\ntopics  orders*, mails\nserver  Punctual 1.2.3\nclock   ";
        let clock = "1970-01-01T00:01:40.000Z";
        assert_eq!(told(&me, Time(99_500)), format!("{lines}{clock}"));
        assert_eq!(told(&me, Time(98_000)), format!("{lines}{clock} (2 s ahead of this machine)"));
        assert_eq!(told(&me, Time(105_500)), format!("{lines}{clock} (5 s behind this machine)"));
    }
}
