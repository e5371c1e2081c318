//! The command line as people write it.
#![allow(clippy::unwrap_used, reason = "a test says what is wrong by panicking")]

use clap::{CommandFactory, Parser};

use super::Remote;

#[derive(Debug, Parser)]
struct Line {
    #[command(subcommand)]
    remote: Remote,
}

fn parses(line: &str) -> bool {
    let words = std::iter::once("punctual").chain(line.split_whitespace());
    Line::try_parse_from(words).is_ok()
}

#[test]
fn the_tree_is_well_formed() {
    Line::command().debug_assert();
}

#[test]
fn the_examples_in_the_help_can_be_typed() {
    for line in [
        "schedule order-unpaid {} --in 15m --id order-7 --key user-1",
        "schedule reminders hello --at 2026-12-24T16:00:00Z",
        "schedule backups - --in 1d --header kind=dump",
        "schedule t --file f --text --attempts 3 --ttl 1h --routing-key a.b --id x --replace --priority 1",
        "cancel order-unpaid order-7",
        "cancel --key user-1 --topic reminders --dry-run",
        "reschedule order-unpaid order-7 --in 30m",
        "reschedule order-unpaid order-7 --by -2h --priority 10",
        "reschedule --key user-1 --by 1d",
        "schedule t --lease 5m",
        "get order-unpaid order-7",
        "get --number 4711",
        "find order-7",
        "uncancel order-unpaid order-7",
        "consumers --queue order-unpaid",
        "sweep --topic coupon-end --do spread --over 10m --start 2026-11-18T15:00:00Z",
        "sweep --topic reminders --state scheduled --do cancel --dry-run",
        "sweep --queue sms --reason out-of-attempts --note-prefix timeout --do replay --yes",
        "sweep --topic orders --do move --by -1h --no-wait",
        "sweeps",
        "sweeps show 1795042012345678",
        "sweeps stop 1795042012345678",
        "sweeps undo 1795042012345678 --yes",
        "hasten order-unpaid order-7 --queue q",
        "topics set t --ttl 5m --if-version 0123456789abcdef",
        "list --topic order-unpaid --until +1h",
        "list --key user-1 --state finished",
        "list --all --bodies --from -15m",
        "work order-unpaid -- ./close-order",
        "work mails orders --concurrency 16 --lease 1m --limit 5 -- sh -c true",
        "work order-unpaid --drain --reject-code 3 -- cat",
        "work order-unpaid --once -- cat",
        "topics",
        "topics list",
        "topics show t",
        "topics set order-unpaid --history 7d --rate 500 --owner shop@example.org",
        "topics set orders --feeds billing=order.paid --feeds audit --unset ttl",
        "topics delete order-unpaid --force",
        "queues set order-unpaid --lease 2m --attempts 10 --backoff-first 5s --backoff-longest 10m",
        "queues pause order-unpaid --for 15m",
        "queues set q --max-length 10000 --overflow drop-oldest --unset dead-letter",
        "dead --queue order-unpaid",
        "dead list --from -1h",
        "dead groups --by reason,note",
        "dead groups --queue q --from -1h --reason expired",
        "dead --note timeout",
        "forecast --topic order-unpaid",
        "forecast --unit hour --top 5",
        "forecast --from +30d --slots 24",
        "dead replay order-unpaid order-7",
        "dead replay --queue order-unpaid --from -1h --dry-run",
        "dead purge --topic order-unpaid --until -30d --yes",
        "history --topic order-unpaid --from -1h",
        "history replay order-unpaid order-7",
        "history --archive /var/lib/punctual/archive --all",
        "forecast --unit hour --slots 24",
        "top --once",
        "events --what died --what failed",
        "export tasks.jsonl",
        "export --topic order-unpaid -",
        "import - --state dead",
        "bench --tasks 100000 --connections 32 --batch 100 --rate 5 --body-bytes 0 --keep",
        "health",
    ] {
        assert!(parses(line), "{line}");
    }
}

#[test]
fn what_contradicts_itself_is_refused() {
    for line in [
        "schedule",
        "schedule t body --in 15m --at 2026-12-24T16:00:00Z",
        "schedule t body --in fortnight",
        "schedule t body --at tomorrow",
        "schedule t body --text --body-json",
        "schedule t body --replace",
        "schedule t body --header nothing",
        "cancel",
        "cancel t",
        "cancel t i --key k",
        "cancel t i --dry-run",
        "reschedule t i --in 1m --by 1m",
        "reschedule --key k",
        "reschedule --key k --by 1h --priority 3",
        "schedule t body --lease soon",
        "get",
        "get t",
        "get t i --number 3",
        "get --number seven",
        "list --state lost",
        "list --all --limit 3",
        "work -- cat",
        "work q",
        "work q --concurrency 0 -- cat",
        "topics set",
        "topics set t --rate 0",
        "queues pause q --for 1m --until +1m",
        "queues set q --overflow sideways",
        "dead replay t",
        "dead --topic t replay --all",
        "forecast --unit year",
        "bench --tasks 0",
        "export",
    ] {
        assert!(!parses(line), "{line}");
    }
}

#[test]
fn every_command_has_an_example_and_says_its_exit_codes() {
    for command in Line::command().get_subcommands() {
        let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        assert!(help.contains("Example") && help.contains("Exit codes"), "{} has none", command.get_name());
    }
}
