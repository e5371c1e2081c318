//! What clients may send: commands, good and bad, puts with their bodies, and noise.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

/// Numbers at the borders of their ranges, and what is none.
const NUMBERS: &str = "0|1|7|19|20|21|007||x|+5|-1|5x|0x5|1,2|1.5|- 5|+-5|2147483647|2147483648|4294967295|4294967296|\
    -2147483649|-4294967295|9223372036854775807|9223372036854775808|-9223372036854775808|-9223372036854775809|\
    18446744073709551615|18446744073709551616|-18446744073709551615|-18446744073709551616";

fn number() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => (0u32..30).prop_map(|number| number.to_string()),
        3 => select(NUMBERS.split('|').collect::<Vec<_>>()).prop_map(str::to_owned),
        1 => "[0-9]{1,45}",
    ]
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        5 => "[a-z0-9+/;.$_()-]{1,4}",
        1 => (195usize..204).prop_map(|length| "n".repeat(length)),
        1 => select(vec!["-a", "a b", "", "ä", "a,b", "a\u{1}"]).prop_map(str::to_owned),
    ]
}

fn blank() -> impl Strategy<Value = &'static str> {
    prop_oneof![12 => Just(" "), 1 => select(vec!["", "  ", "\t", "\n", "\u{b}", "\0"])]
}

fn end() -> impl Strategy<Value = &'static str> {
    prop_oneof![20 => Just("\r\n"), 1 => select(vec!["", "\n", "\r", "\r\r\n", " \r\n", "x\r\n"])]
}

/// The words, and some that are none.
const WORDS: &str = "put peek peek-ready peek-delayed peek-buried reserve reserve-with-timeout reserve-job delete \
    release bury kick kick-job touch stats stats-job stats-tube use watch ignore list-tubes list-tube-used \
    list-tubes-watched list-tube pause-tube peek- STATS";

fn word() -> impl Strategy<Value = &'static str> {
    select(WORDS.split(' ').collect::<Vec<_>>())
}

/// A word with arguments that may fit it or not.
pub fn line() -> impl Strategy<Value = Vec<u8>> {
    let argument = prop_oneof![3 => number(), 2 => name()];
    let arguments = vec((blank(), argument), 0..5);
    (word(), arguments, end()).prop_map(|(word, arguments, end)| {
        let arguments: String = arguments.into_iter().map(|(blank, argument)| format!("{blank}{argument}")).collect();
        format!("{word}{arguments}{end}").into_bytes()
    })
}

/// A word with the arguments that it takes, each of them maybe bad.
pub fn fitting_line() -> impl Strategy<Value = Vec<u8>> {
    let of_id = select(vec!["peek", "reserve-job", "delete", "kick-job", "touch", "stats-job"]);
    let of_name = select(vec!["use", "watch", "ignore", "stats-tube"]);
    let lenient = select(vec!["kick", "reserve-with-timeout"]);
    let text = prop_oneof![
        (prop_oneof![of_id, lenient], number()).prop_map(|(word, number)| format!("{word} {number}")),
        (of_name, name()).prop_map(|(word, name)| format!("{word} {name}")),
        (number(), number(), blank()).prop_map(|(id, pri, blank)| format!("bury {id}{blank}{pri}")),
        (number(), number(), number()).prop_map(|(id, pri, delay)| format!("release {id} {pri} {delay}")),
        (blank(), name(), blank(), number())
            .prop_map(|(one, name, two, pause)| format!("pause-tube{one}{name}{two}{pause}")),
    ];
    (text, end()).prop_map(|(text, end)| format!("{text}{end}").into_bytes())
}

/// A put whose body mostly is as long as it says.
fn put() -> impl Strategy<Value = Vec<u8>> {
    let body = vec(prop_oneof![any::<u8>(), select(&b"\r\nq "[..])], 0..30);
    let off_by = prop_oneof![8 => Just(0i64), 1 => -3i64..4];
    let behind = prop_oneof![12 => Just(""), 1 => select(vec![" ", "x", " 1", "\0"])];
    let numbers = prop_oneof![3 => Just("1 2 3".to_owned()), 1 => (number(), number(), number()).prop_map(|(a, b, c)| format!("{a} {b} {c}"))];
    (numbers, body, off_by, behind, end()).prop_map(|(numbers, body, off_by, behind, end)| {
        let length = (body.len() as i64 + off_by).max(0);
        let line = format!("put {numbers} {length}{behind}\r\n");
        [line.as_bytes(), &body, end.as_bytes()].concat()
    })
}

/// Lines around the longest and around its multiples, and what is no line at all.
fn noise() -> impl Strategy<Value = Vec<u8>> {
    let long = (prop_oneof![215usize..235, 440usize..455, 660usize..680], end())
        .prop_map(|(length, end)| [&vec![b'x'; length], end.as_bytes()].concat());
    let mess = vec(select(&b"\r\n\r\n\0 ab1-"[..]), 0..300);
    prop_oneof![long, mess, vec(any::<u8>(), 0..40)]
}

/// All of it, in any order.
pub fn conversation() -> impl Strategy<Value = Vec<u8>> {
    let quit = select(vec![&b"quit\r\n"[..], b"quitx\r\n"]).prop_map(<[u8]>::to_vec);
    let piece = prop_oneof![10 => line(), 20 => fitting_line(), 10 => put(), 4 => noise(), 1 => quit];
    vec(piece, 0..15).prop_map(|pieces| pieces.concat())
}
