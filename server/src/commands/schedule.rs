//! `schedule`: hands in one task.

use std::collections::BTreeMap;

use clap::Args;
use punctual_wire::{NewTask, Retry, ScheduleOutcome, Scheduled, Span, Standing, Time};

use super::body::BodyOptions;
use super::failure::{Failure, help};
use super::moment::exact;
use super::{Session, show};

const EXAMPLES: &str = help!(
    "\
Examples:
  punctual schedule order-unpaid '{\"order\": 7}' --in 15m --id order-7 --key user-1
  punctual schedule reminders 'Your coupon ends soon' --at 2026-12-24T16:00:00Z
  pg_dump shop | punctual schedule backups - --in 1d --header kind=dump"
);

/// Schedule a task: hand it over when its time comes.
///
/// The body is sent as JSON if it is an object or a list, as text otherwise, as bytes if it is not
/// even text. The same topic and id twice is one task, so a command that failed may be repeated if
/// it names an id.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct ScheduleArgs {
    /// Where it is scheduled: one business type.
    topic: String,
    /// What is handed to the consumer; - reads it from stdin.
    body: Option<String>,
    #[command(flatten)]
    options: BodyOptions,
    /// So long from now, such as 15m, 1h30m or 250ms. Without this and --at it is due at once.
    #[arg(long = "in", value_name = "SPAN", conflicts_with = "at")]
    delay: Option<Span>,
    /// At this time: RFC 3339, or milliseconds since 1970.
    #[arg(long, value_name = "TIME")]
    at: Option<Time>,
    /// Its id within the topic; by default one is made up.
    #[arg(long)]
    id: Option<String>,
    /// What it can be found by together with others: a user, an order.
    #[arg(long)]
    key: Option<String>,
    /// Lower comes first; by default the topic's (65536 unless changed).
    #[arg(long)]
    priority: Option<u32>,
    /// How long after its due time it is worth handing over.
    #[arg(long, value_name = "SPAN")]
    ttl: Option<Span>,
    /// How long a consumer may work on it if it does not say; by default as long as the queue gives.
    #[arg(long, value_name = "SPAN")]
    lease: Option<Span>,
    /// How long a lease on it lasts at most, whoever asks for more; by default as long as the queue allows.
    #[arg(long, value_name = "SPAN")]
    max_lease: Option<Span>,
    /// Handed over along with the body; may be given several times.
    #[arg(long = "header", value_name = "NAME=VALUE", value_parser = header)]
    headers: Vec<(String, String)>,
    /// What the topic's bindings look at.
    #[arg(long, value_name = "WORDS")]
    routing_key: Option<String>,
    /// Take the place of a task of the same id that was not handed out yet, or is finished: arm it again.
    #[arg(long, requires = "id")]
    replace: bool,
    /// How many attempts may fail before it is a dead letter; 0 for any number. The waits between
    /// them are then the usual ones (1s up to 1h), not the queue's.
    #[arg(long, value_name = "N")]
    attempts: Option<u32>,
}

/// Reads `name=value`.
pub fn header(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.into(), value.into())),
        _ => Err("write it as name=value".into()),
    }
}

/// Schedules it and says what became of it.
pub async fn run(args: ScheduleArgs, mut session: Session) -> Result<(), Failure> {
    let body = args.options.read(args.body.as_deref())?;
    let form = body.in_words();
    let (body, text, base64) = body.into_fields();
    let scheduled = session
        .client
        .schedule(NewTask {
            topic: args.topic,
            id: args.id,
            delay: args.delay,
            at: args.at,
            body,
            text,
            base64,
            headers: args.headers.into_iter().collect::<BTreeMap<_, _>>(),
            key: args.key,
            routing_key: args.routing_key,
            priority: args.priority,
            ttl: args.ttl,
            retry: args.attempts.map(|attempts| Retry { attempts, ..Retry::default() }),
            lease: args.lease,
            max_lease: args.max_lease,
            replace: args.replace,
        })
        .await?;
    session.output.either(&scheduled, || in_words(&scheduled, &form, args.replace, Time::now()))
}

fn in_words(scheduled: &Scheduled, form: &str, replace: bool, now: Time) -> String {
    let Scheduled { topic, id, outcome, due, standing, .. } = scheduled;
    let due = due.map_or("at once".into(), |due| exact(due, now));
    match outcome {
        ScheduleOutcome::Created => format!("scheduled {topic} {id}, due {due}, {form}"),
        ScheduleOutcome::Replaced => format!("replaced {topic} {id}, due {due}, {form}"),
        ScheduleOutcome::Existed => {
            let standing = standing.as_ref().map_or(String::new(), |at| format!(": {}", show::sentence(at, now)));
            let hint = way_on(scheduled, replace).map_or(String::new(), |hint| format!("; {hint}"));
            format!("{topic} {id} existed already, nothing was changed{standing}{hint}")
        }
    }
}

/// How to go on, in the words of the command line. What the server says is for those who write requests.
fn way_on(scheduled: &Scheduled, replace: bool) -> Option<String> {
    let Scheduled { topic, id, standing, hint, .. } = scheduled;
    match standing {
        Some(Standing::Finished { .. }) => Some(format!(
            "to arm it again, schedule it with --replace; to hand it out as it was, `punctual history replay {topic} {id}`"
        )),
        Some(Standing::Dead { .. }) => Some(format!(
            "a dead letter keeps its id: `punctual dead replay {topic} {id}`, or `punctual dead purge {topic} {id}` and \
             schedule again"
        )),
        Some(Standing::Scheduled { .. } | Standing::Ready { .. }) if !replace => Some(format!(
            "to put this one in its place, schedule it with --replace; to move it, `punctual reschedule {topic} {id}`"
        )),
        _ => hint.clone(),
    }
}

#[cfg(test)]
mod tests {
    use punctual_wire::Ending;

    use super::*;

    #[test]
    fn headers_are_a_name_and_a_value() {
        assert_eq!(header("a=b=c"), Ok(("a".into(), "b=c".into())));
        assert_eq!(header("a="), Ok(("a".into(), String::new())));
        assert!(header("=b").is_err());
        assert!(header("a").is_err());
    }

    #[test]
    fn the_answer_says_id_due_time_and_form() {
        let mut scheduled = Scheduled {
            topic: "t".into(),
            id: "i".into(),
            outcome: ScheduleOutcome::Created,
            due: Some(Time(900_000)),
            standing: None,
            hint: None,
        };
        let told = in_words(&scheduled, "no body", false, Time(0));
        assert_eq!(told, "scheduled t i, due 1970-01-01T00:15:00.000Z (in 15m), no body");
        scheduled.outcome = ScheduleOutcome::Existed;
        scheduled.standing = Some(Standing::Scheduled { at: Time(60_000) });
        scheduled.hint = Some("what the server says".into());
        let told = in_words(&scheduled, "no body", false, Time(0));
        assert!(told.starts_with("t i existed already, nothing was changed: it is scheduled for"), "{told}");
        assert!(told.contains("--replace") && told.ends_with("`punctual reschedule t i`"), "{told}");
        let told = in_words(&scheduled, "no body", true, Time(0));
        assert!(told.ends_with("; what the server says"), "{told}");
        scheduled.standing = Some(Standing::Finished { ending: Ending::Done, at: Time(0) });
        let told = in_words(&scheduled, "no body", false, Time(0));
        assert!(told.contains("--replace") && told.ends_with("`punctual history replay t i`"), "{told}");
    }
}
