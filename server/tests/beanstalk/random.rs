//! Scripts that nobody thought of: made up from a seed, the same every time. What they do does not depend on time:
//! nobody waits, delays are long and differ, times to run are longer.

use std::fmt::Write;

use punctual_chance::Chance;

const TUBES: [&str; 4] = ["default", "a", "b", "c"];
const SPEAKERS: [char; 3] = ['A', 'B', 'C'];
/// A tube that vanishes forgets its counters there and not here; so somebody watches them all.
const ALL_ARE_WATCHED: &str = "K: watch a\nK: watch b\nK: watch c\n";

fn priority(chance: &mut Chance) -> u64 {
    *chance.pick(&[0, 1, 2, 1_023, 1_024, 4_294_967_295])
}

/// Tens of seconds, which is what the time left is rounded to.
fn delay(chance: &mut Chance) -> u64 {
    if chance.below(3) > 0 { 0 } else { 10 * (100 + chance.below(100_000)) }
}

/// Mostly a young one.
fn id(chance: &mut Chance, put: u64) -> String {
    let age = if chance.below(4) > 0 { chance.below(10) } else { chance.below(put + 2) };
    format!("${}", put.saturating_sub(age).max(1))
}

/// A script of so many good commands.
pub fn commands(seed: u64, count: usize) -> String {
    let mut chance = Chance::new(seed);
    let mut script = ALL_ARE_WATCHED.to_owned();
    let mut put = 0;
    for _ in 0..count {
        let who = *chance.pick(&SPEAKERS);
        if chance.below(100) == 0 {
            _ = writeln!(script, "{who} closes");
            continue;
        }
        let command = command(&mut chance, &mut put);
        _ = writeln!(script, "{who}: {command}");
        // Of two that are buried in the same millisecond the smaller id stands first here.
        if command.starts_with("bury") {
            script += "sleep 2ms\n";
        }
    }
    script
}

/// A script of so many writes with several good commands each.
pub fn bursts(seed: u64, count: usize) -> String {
    let mut chance = Chance::new(seed);
    let mut script = ALL_ARE_WATCHED.to_owned();
    let mut put = 0;
    for _ in 0..count {
        let who = *chance.pick(&SPEAKERS);
        let length = 1 + chance.below(16);
        let mut burst = String::new();
        for _ in 0..length {
            let mut command = command(&mut chance, &mut put);
            // As above: two of them would be buried in the same millisecond.
            if command.starts_with("bury") && burst.contains("bury") {
                command = "peek-buried".to_owned();
            }
            burst += &(command.replace(" | ", r"\r\n") + r"\r\n");
        }
        _ = writeln!(script, "{who}~ {burst}\n{who}< {length}\nsleep 2ms");
    }
    script
}

fn command(chance: &mut Chance, put: &mut u64) -> String {
    let (id, tube) = (id(chance, *put), *chance.pick(&TUBES));
    match chance.below(100) {
        0..24 => {
            *put += 1;
            let (priority, delay, length) = (priority(chance), delay(chance), chance.below(20));
            format!("put {priority} {delay} 2000000 {length} | \\{{x*{length}}}")
        }
        24..44 => "reserve-with-timeout 0".to_owned(),
        44..48 => format!("reserve-job {id}"),
        48..58 => format!("delete {id}"),
        58..65 => format!("release {id} {} {}", priority(chance), delay(chance)),
        65..71 => format!("bury {id} {}", priority(chance)),
        71..73 => format!("kick {}", chance.below(4)),
        73..76 => format!("kick-job {id}"),
        76..78 => format!("touch {id}"),
        78..80 => format!("peek {id}"),
        80..84 => (*chance.pick(&["peek-ready", "peek-delayed", "peek-buried"])).to_owned(),
        84..88 => format!("stats-job {id}"),
        88..90 => format!("stats-tube {tube}"),
        90..92 => format!("use {tube}"),
        92..95 => format!("watch {tube}"),
        95..97 => format!("ignore {tube}"),
        97 => format!("pause-tube {tube} {}", chance.pick(&[0, 0, 1_000_000])),
        98 => (*chance.pick(&["list-tubes", "list-tubes-watched", "list-tube-used"])).to_owned(),
        _ => "stats".to_owned(),
    }
}

/// Pieces of lines. No small number is among them, since a job might have it as its id, and nothing that counts
/// connections, since one that was closed may still be counted for a moment.
const PIECES: &str = r"
    \r \n \0 \s \s \t \xff \{n*97} x -
    put\s9\s0\s9\s3\r\nabc\r\n put\s9\s0\s9\s3\r\nab put\s9\s0\s9\s0 put\s9\s900\s9\s9\r\n put\s9
    peek-ready peek-delayed peek\s stats-job\s stats-tube\s list-tube list-tube-used list-tubes-watched
    reservex reserve-job\s delete\s touch\s kick\s kick-job\s release\s999999999\s9 bury\s999999999
    use\st use\s watch\s ignore\s pause-tube
    999999999 \s999999999 \s4294967296 18446744073709551616 -9 \s0 nowhere
";

/// A script of so many connections that talk nonsense, and now and then sense.
pub fn noise(seed: u64, connections: usize) -> String {
    let mut chance = Chance::new(seed);
    let pieces: Vec<&str> = PIECES.split_whitespace().collect();
    let mut script = String::new();
    for _ in 0..connections {
        let length = 1 + chance.below(40);
        let piece = |_| if chance.below(4) == 0 { r"\r\n" } else { *chance.pick(&pieces) };
        let noise: String = (0..length).map(piece).collect();
        _ = writeln!(script, "A~ {noise}\nA half-closes\nA is closed");
    }
    script
}
