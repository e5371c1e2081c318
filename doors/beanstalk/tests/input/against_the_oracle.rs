//! The input and the oracle hear the same bytes and understand the same, however the bytes are cut into reads.

use proptest::collection::vec;
use proptest::prelude::*;

use crate::conversation::{conversation, fitting_line, line};
use crate::oracle::Oracle;
use crate::talk::Talk;

/// Small, so that bodies of all sizes around it are short.
const MAX_JOB: u32 = 20;

/// One read, and how much of what is there is taken after it.
#[derive(Clone, Copy, Debug)]
struct Cut {
    bytes: usize,
    taken: usize,
}

fn cuts() -> impl Strategy<Value = Vec<Cut>> {
    let bytes = prop_oneof![3 => 1usize..4, 3 => 1usize..60, 2 => 200usize..250, 1 => Just(100_000)];
    let taken = prop_oneof![4 => Just(usize::MAX), 1 => 0usize..3];
    vec((bytes, taken).prop_map(|(bytes, taken)| Cut { bytes, taken }), 1..20)
}

/// Hears the bytes in these cuts, again and again, and takes all in the end.
fn hear(mut bytes: &[u8], cuts: &[Cut], max_job: u32) -> Talk {
    let mut talk = Talk::new(max_job);
    for cut in cuts.iter().cycle() {
        if bytes.is_empty() {
            break;
        }
        let read = talk.read(&bytes[..cut.bytes.min(bytes.len())]);
        bytes = &bytes[read..];
        assert!(talk.input.buffer().capacity() <= 128 * 1024, "the buffer is bounded");
        if !talk.take(cut.taken) {
            return talk;
        }
    }
    talk.take(usize::MAX);
    talk
}

fn compare(bytes: &[u8], cuts: &[Cut], max_job: u32) -> Result<(), TestCaseError> {
    let mut talk = hear(bytes, cuts, max_job);
    let mut oracle = Oracle::new(max_job);
    oracle.hear(bytes);
    prop_assert_eq!(&talk.said, &oracle.said);
    prop_assert_eq!(talk.counted(), oracle.counted);
    prop_assert_eq!(talk.input.has_produced(), oracle.has_produced);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(3_000) })]

    #[test]
    fn what_is_understood_is_what_the_oracle_understands(bytes in conversation(), cuts in cuts()) {
        compare(&bytes, &cuts, MAX_JOB)?;
    }

    #[test]
    fn single_lines_are_what_the_oracle_says(bytes in prop_oneof![fitting_line(), line()]) {
        compare(&bytes, &[Cut { bytes: bytes.len(), taken: usize::MAX }], MAX_JOB)?;
    }

    #[test]
    fn any_cutting_of_the_same_bytes_gives_the_same(bytes in conversation(), one in cuts(), other in cuts()) {
        let (mut one, mut other) = (hear(&bytes, &one, MAX_JOB), hear(&bytes, &other, MAX_JOB));
        prop_assert_eq!(&one.said, &other.said);
        prop_assert_eq!(one.counted(), other.counted());
    }

    #[test]
    fn random_bytes_are_understood_without_panic(
        bytes in vec(any::<u8>(), 0..3_000), cuts in cuts(), max_job in any::<u32>(),
    ) {
        compare(&bytes, &cuts, max_job)?;
    }
}
