//! The documents as beanstalkd 1.12 writes them.

use super::*;

fn text(document: Bytes) -> String {
    String::from_utf8(document.to_vec()).unwrap()
}

#[test]
fn a_jobs_document_has_its_fourteen_lines() {
    let stats = JobStats {
        id: 12,
        tube: "mail",
        state: JobState::Delayed,
        pri: u32::MAX,
        age: Duration::from_millis(1_999),
        delay: Duration::from_secs(u32::MAX.into()),
        ttr: Duration::from_secs(60),
        time_left: Duration::from_millis(59_001),
        reserves: 1,
        timeouts: 2,
        releases: 3,
        buries: 4,
        kicks: 5,
    };
    let expected = "---\nid: 12\ntube: mail\nstate: delayed\npri: 4294967295\nage: 1\ndelay: 4294967295\nttr: 60\n\
                    time-left: 59\nfile: 0\nreserves: 1\ntimeouts: 2\nreleases: 3\nburies: 4\nkicks: 5\n";
    assert_eq!(text(stats.document()), expected);
}

#[test]
fn a_tubes_document_has_its_fourteen_lines() {
    let stats = TubeStats {
        name: "mail",
        jobs: JobCounts { urgent: 1, ready: 2, reserved: 3, delayed: 4, buried: 5 },
        total_jobs: 6,
        using: 7,
        watching: 8,
        waiting: 9,
        deletes: 10,
        pauses: 11,
        pause: Duration::from_secs(12),
        pause_left: Duration::from_millis(11_999),
    };
    let expected = "---\nname: mail\ncurrent-jobs-urgent: 1\ncurrent-jobs-ready: 2\ncurrent-jobs-reserved: 3\n\
                    current-jobs-delayed: 4\ncurrent-jobs-buried: 5\ntotal-jobs: 6\ncurrent-using: 7\n\
                    current-watching: 8\ncurrent-waiting: 9\ncmd-delete: 10\ncmd-pause-tube: 11\npause: 12\n\
                    pause-time-left: 11\n";
    assert_eq!(text(stats.document()), expected);
}

#[test]
fn the_servers_document_has_its_lines_in_order() {
    let mut commands = [0; Kind::COUNT];
    for (place, count) in commands.iter_mut().enumerate() {
        *count = 100 + place as u64;
    }
    let stats = ServerStats {
        jobs: JobCounts { urgent: 1, ready: 2, reserved: 3, delayed: 4, buried: 5 },
        commands: &commands,
        timeouts: 6,
        total_jobs: 7,
        max_job_size: 65_535,
        tubes: 8,
        connections: Connections { current: 9, producers: 10, workers: 11, waiting: 12, total: 13 },
        pid: 14,
        version: "1.12",
        user_time: Duration::from_micros(15_000_016),
        system_time: Duration::from_nanos(999_999),
        uptime: Duration::from_millis(17_999),
        is_draining: false,
        id: 0xfe,
        hostname: "host",
        os: "#1 SMP",
        platform: "x86_64",
    };
    let expected = "---\n\
        current-jobs-urgent: 1\ncurrent-jobs-ready: 2\ncurrent-jobs-reserved: 3\ncurrent-jobs-delayed: 4\n\
        current-jobs-buried: 5\n\
        cmd-put: 100\ncmd-peek: 101\ncmd-peek-ready: 102\ncmd-peek-delayed: 103\ncmd-peek-buried: 104\n\
        cmd-reserve: 105\ncmd-reserve-with-timeout: 106\ncmd-delete: 107\ncmd-release: 108\ncmd-use: 109\n\
        cmd-watch: 110\ncmd-ignore: 111\ncmd-bury: 112\ncmd-kick: 113\ncmd-touch: 114\ncmd-stats: 115\n\
        cmd-stats-job: 116\ncmd-stats-tube: 117\ncmd-list-tubes: 118\ncmd-list-tube-used: 119\n\
        cmd-list-tubes-watched: 120\ncmd-pause-tube: 121\n\
        job-timeouts: 6\ntotal-jobs: 7\nmax-job-size: 65535\ncurrent-tubes: 8\ncurrent-connections: 9\n\
        current-producers: 10\ncurrent-workers: 11\ncurrent-waiting: 12\ntotal-connections: 13\npid: 14\n\
        version: \"1.12\"\nrusage-utime: 15.000016\nrusage-stime: 0.000999\nuptime: 17\n\
        binlog-oldest-index: 0\nbinlog-current-index: 0\nbinlog-records-migrated: 0\nbinlog-records-written: 0\n\
        binlog-max-size: 10485760\ndraining: false\nid: 00000000000000fe\nhostname: host\nos: #1 SMP\n\
        platform: x86_64\n";
    assert_eq!(text(stats.document()), expected);
    let draining = ServerStats { is_draining: true, ..stats };
    assert!(text(draining.document()).contains("\ndraining: true\n"));
}

#[test]
fn lists_have_a_line_for_each_tube() {
    assert_eq!(text(list(["default", "a+b"])), "---\n- default\n- a+b\n");
    assert_eq!(text(list([])), "---\n");
}

#[test]
fn every_state_has_its_word() {
    let states = [JobState::Ready, JobState::Reserved, JobState::Delayed, JobState::Buried];
    assert_eq!(states.map(JobState::name), ["ready", "reserved", "delayed", "buried"]);
}
