//! What the almanac relies on in a disk, real or simulated, as long as nothing goes wrong.

use std::io::ErrorKind;
use std::sync::Arc;

use proptest::prelude::*;
use punctual_disk::{Directory, Disk, File};
use punctual_simulated_disk::SimulatedDisk;

use super::{content, kind};

/// What every disk must do as long as nothing goes wrong.
fn keeps_the_contract(disk: &dyn Disk) {
    assert_eq!(disk.list().unwrap(), [""; 0]);
    assert_eq!(kind(disk.open("a")), ErrorKind::NotFound);

    // Files are read where they were written, and nowhere else.
    let file = disk.create("a").unwrap();
    assert!(file.is_empty().unwrap());
    file.write_at(b"hello", 0).unwrap();
    file.write_at(b"world", 10_000).unwrap();
    file.write_at(b"", 20_000).unwrap();
    assert_eq!(file.len().unwrap(), 10_005);
    let mut piece = [9; 7];
    file.read_at(&mut piece, 3).unwrap();
    assert_eq!(&piece, b"lo\0\0\0\0\0");
    assert_eq!(kind(file.read_at(&mut piece, 10_000)), ErrorKind::UnexpectedEof);
    assert_eq!(kind(file.read_at(&mut piece, 50_000)), ErrorKind::UnexpectedEof);
    file.read_at(&mut [], 10_005).unwrap();
    assert_eq!(content(&*disk.open("a").unwrap()), content(&*file));
    file.sync().unwrap();
    disk.sync().unwrap();

    // Room is reserved without touching what is there, and never shortens.
    file.allocate(40_000).unwrap();
    file.allocate(100).unwrap();
    file.allocate(0).unwrap();
    assert_eq!(file.len().unwrap(), 40_000);
    let bytes = content(&*file);
    assert_eq!(&bytes[10_000..10_005], b"world");
    assert!(bytes[10_005..].iter().all(|byte| *byte == 0));

    // Punching leaves the length, and zeros.
    file.punch(2, 9_999).unwrap();
    file.punch(0, 0).unwrap();
    file.punch(39_000, 50_000).unwrap();
    file.punch(60_000, 50_000).unwrap();
    assert_eq!(file.len().unwrap(), 40_000);
    let bytes = content(&*file);
    assert_eq!(&bytes[..3], b"he\0");
    assert_eq!(&bytes[9_999..10_005], b"\0\0orld");

    // Creating again empties the same file.
    disk.create("a").unwrap();
    assert!(file.is_empty().unwrap());
    file.write_at(b"again", 0).unwrap();

    // A name moves, and takes the place of another; who has that open can still read it.
    let replaced = disk.create("b").unwrap();
    replaced.write_at(b"replaced", 0).unwrap();
    disk.rename("a", "b").unwrap();
    assert_eq!(disk.list().unwrap(), ["b"]);
    assert_eq!(content(&*disk.open("b").unwrap()), b"again");
    assert_eq!(content(&*replaced), b"replaced");
    assert_eq!(kind(disk.rename("a", "c")), ErrorKind::NotFound);

    // So it is with what is removed.
    disk.create("c").unwrap();
    assert_eq!(disk.list().unwrap(), ["b", "c"]);
    disk.remove("b").unwrap();
    assert_eq!(kind(disk.remove("b")), ErrorKind::NotFound);
    disk.sync().unwrap();
    assert_eq!(disk.list().unwrap(), ["c"]);
    file.write_at(b"!", 5).unwrap();
    assert_eq!(content(&*file), b"again!");
    file.sync().unwrap();

    // One holds the lock; its file is an ordinary one.
    let hold = disk.lock("lock").unwrap();
    assert_eq!(kind(disk.lock("lock")), ErrorKind::WouldBlock);
    drop(hold);
    let _hold = disk.lock("lock").unwrap();
    assert_eq!(disk.list().unwrap(), ["c", "lock"]);
}

#[test]
fn a_directory_keeps_the_contract() {
    let place = tempfile::tempdir().unwrap();
    let disk = Directory::open(place.path().join("made/when/missing")).unwrap();
    keeps_the_contract(&disk);
    assert!(disk.place().ends_with("made/when/missing"));
    let same = Directory::open(place.path().join("made/when/missing")).unwrap();
    assert_eq!(same.list().unwrap(), ["c", "lock"]);
}

#[test]
fn a_simulated_disk_keeps_the_contract() {
    keeps_the_contract(&SimulatedDisk::new(1));
}

#[test]
fn two_directories_of_one_place_share_the_lock() {
    let place = tempfile::tempdir().unwrap();
    let _hold = Directory::open(place.path()).unwrap().lock("lock").unwrap();
    assert_eq!(kind(Directory::open(place.path()).unwrap().lock("lock")), ErrorKind::WouldBlock);
}

/// Something to do with one of a few names, or with one of the files that are open.
#[derive(Clone, Debug)]
enum Deed {
    Open(u8),
    Create(u8),
    Rename(u8, u8),
    Remove(u8),
    Write { file: usize, offset: u64, length: usize, byte: u8 },
    Allocate { file: usize, length: u64 },
    Punch { file: usize, offset: u64, length: u64 },
    Close { file: usize },
    SyncAll,
}

fn deed() -> impl Strategy<Value = Deed> {
    let name = 0..4_u8;
    let place = 0..20_000_u64;
    prop_oneof![
        name.clone().prop_map(Deed::Open),
        name.clone().prop_map(Deed::Create),
        (name.clone(), name.clone()).prop_map(|(from, to)| Deed::Rename(from, to)),
        name.prop_map(Deed::Remove),
        (any::<usize>(), place.clone(), 0..10_000_usize, any::<u8>())
            .prop_map(|(file, offset, length, byte)| Deed::Write { file, offset, length, byte }),
        (any::<usize>(), place.clone()).prop_map(|(file, length)| Deed::Allocate { file, length }),
        (any::<usize>(), place.clone(), place).prop_map(|(file, offset, length)| Deed::Punch { file, offset, length }),
        any::<usize>().prop_map(|file| Deed::Close { file }),
        Just(Deed::SyncAll),
    ]
}

/// Does it, and tells what can be seen of the outcome.
fn perform(deed: &Deed, disk: &dyn Disk, open: &mut Vec<Arc<dyn File>>) -> Result<(), ErrorKind> {
    let pick = |number: usize| (!open.is_empty()).then(|| number % open.len());
    let outcome = match deed {
        Deed::Open(name) => disk.open(&name.to_string()).map(|file| open.push(file)),
        Deed::Create(name) => disk.create(&name.to_string()).map(|file| open.push(file)),
        Deed::Rename(from, to) => disk.rename(&from.to_string(), &to.to_string()),
        Deed::Remove(name) => disk.remove(&name.to_string()),
        Deed::Write { file, offset, length, byte } => {
            pick(*file).map_or(Ok(()), |file| open[file].write_at(&vec![*byte; *length], *offset))
        }
        Deed::Allocate { file, length } => pick(*file).map_or(Ok(()), |file| open[file].allocate(*length)),
        Deed::Punch { file, offset, length } => pick(*file).map_or(Ok(()), |file| open[file].punch(*offset, *length)),
        Deed::Close { file } => {
            if let Some(file) = pick(*file) {
                open.swap_remove(file);
            }
            Ok(())
        }
        Deed::SyncAll => open.iter().try_for_each(|file| file.sync()).and_then(|()| disk.sync()),
    };
    outcome.map_err(|error| error.kind())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_simulated_disk_is_told_from_a_real_one_by_nothing(deeds in prop::collection::vec(deed(), 1..60)) {
        let place = tempfile::tempdir().unwrap();
        let real = Directory::open(place.path()).unwrap();
        let simulated = SimulatedDisk::new(1);
        let (mut of_real, mut of_simulated) = (Vec::new(), Vec::new());
        for deed in &deeds {
            let outcome = perform(deed, &real, &mut of_real);
            prop_assert_eq!(outcome, perform(deed, &simulated, &mut of_simulated));
            prop_assert_eq!(real.list().unwrap(), simulated.list().unwrap());
        }
        for (real, simulated) in of_real.iter().zip(&of_simulated) {
            prop_assert!(content(&**real) == content(&**simulated));
        }
        for name in real.list().unwrap() {
            let read = |disk: &dyn Disk| content(&*disk.open(&name).unwrap());
            prop_assert!(read(&real) == read(&simulated));
        }

        // When all is synced, a crash changes nothing.
        for name in real.list().unwrap() {
            simulated.open(&name).unwrap().sync().unwrap();
        }
        simulated.sync().unwrap();
        for seed in 0..4 {
            let after = simulated.crash(seed);
            prop_assert_eq!(after.names(), simulated.names());
            for name in after.names() {
                prop_assert!(after.read(&name) == simulated.read(&name));
            }
        }
    }
}
