use std::fs as std_fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use super::*;

fn directory() -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let real = directory.path().canonicalize().unwrap();
    (directory, real)
}

fn reserved(place: &Path) -> Placeholders {
    let mut placeholders = Placeholders::default();
    assert!(placeholders.reserve(place).unwrap());
    placeholders
}

fn names(directory: &Path) -> Vec<OsString> {
    std_fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name()).collect()
}

#[test]
fn a_missing_name_is_there_while_it_is_held() {
    let (_keep, root) = directory();
    let place = root.join(".git");
    let held = reserved(&place);
    assert_eq!(held.paths().collect::<Vec<_>>(), [place.as_path()]);
    assert!(is_placeholder(&place, &place.symlink_metadata().unwrap()));
    drop(held);
    assert!(names(&root).is_empty());
}

#[test]
fn the_last_holder_removes_it() {
    let (_keep, root) = directory();
    let place = root.join(".git");
    let (first, second) = (reserved(&place), reserved(&place));
    drop(first);
    assert!(place.is_dir());
    drop(second);
    assert!(names(&root).is_empty());
}

#[test]
fn one_that_was_left_behind_is_taken_over() {
    let (_keep, root) = directory();
    let place = root.join(".git");
    std::mem::forget(reserved(&place).held.drain(..).map(|held| held.parent).collect::<Vec<_>>());
    assert!(place.is_dir());
    drop(reserved(&place));
    assert!(names(&root).is_empty());
}

#[test]
fn what_the_user_has_there_is_neither_held_nor_removed() {
    let (_keep, root) = directory();
    type Make = fn(&Path);
    let make: [(&str, Make); 4] = [
        ("empty", |place| std_fs::create_dir(place).unwrap()),
        ("closed", |place| {
            std_fs::create_dir(place).unwrap();
            std_fs::set_permissions(place, PermissionsExt::from_mode(MODE)).unwrap();
        }),
        ("file", |place| std_fs::write(place, "").unwrap()),
        ("link", |place| symlink("/", place).unwrap()),
    ];
    for (name, make) in make {
        let place = root.join(name);
        make(&place);
        let held = reserved(&place);
        assert_eq!(held.paths().count(), 0, "{name}");
        drop(held);
        assert!(place.symlink_metadata().is_ok(), "{name}");
    }
}

#[test]
fn one_that_was_filled_stays() {
    let (_keep, root) = directory();
    let place = root.join(".git");
    let held = reserved(&place);
    std_fs::set_permissions(&place, PermissionsExt::from_mode(0o755)).unwrap();
    std_fs::write(place.join("file"), "somebody's").unwrap();
    drop(held);
    assert!(place.join("file").exists());
}

#[test]
fn marks_on_a_directory_with_content_mean_nothing() {
    let (_keep, root) = directory();
    let place = root.join("sub");
    std_fs::create_dir(&place).unwrap();
    std_fs::write(place.join("file"), "").unwrap();
    mark(&open_directory(std_fs::File::open(&root).unwrap().as_fd(), "sub".as_ref()).unwrap())
        .unwrap();
    let metadata = place.symlink_metadata().unwrap();
    assert!(has_marks(
        metadata
            .modified()
            .unwrap()
            .duration_since(std::time::UNIX_EPOCH)
            .unwrap()
            .as_secs()
            .cast_signed(),
        metadata.permissions().mode()
    ));
    assert!(!is_placeholder(&place, &metadata));
}

#[test]
fn one_that_was_replaced_stays() {
    let (_keep, root) = directory();
    let place = root.join(".git");
    let held = reserved(&place);
    std_fs::rename(&place, root.join("moved")).unwrap();
    std_fs::create_dir(&place).unwrap();
    drop(held);
    assert!(place.is_dir() && root.join("moved").is_dir());
}

#[test]
fn a_directory_behind_a_link_is_refused() {
    let (_keep, root) = directory();
    std_fs::create_dir(root.join("real")).unwrap();
    symlink("real", root.join("link")).unwrap();
    assert!(Placeholders::default().reserve(&root.join("link/.git")).is_err());
    assert!(names(&root.join("real")).is_empty());
}

#[test]
fn a_missing_directory_needs_no_placeholder() {
    let (_keep, root) = directory();
    assert!(!Placeholders::default().reserve(&root.join("gone/.git")).unwrap());
}

#[test]
fn parallel_holders_never_see_it_missing_or_unmarked() {
    let (_keep, root) = directory();
    let place = root.join(".git");
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..50 {
                    let held = reserved(&place);
                    assert_eq!(held.paths().count(), 1);
                    assert!(is_placeholder(&place, &place.symlink_metadata().unwrap()));
                }
            });
        }
    });
    assert!(names(&root).is_empty(), "{:?}", names(&root));
}

/// A command of another sandbox that may write in the same directory, and takes away whatever appears there.
#[test]
fn somebody_who_takes_new_names_away_does_not_make_it_count_as_impossible() {
    let (_keep, root) = directory();
    let place = root.join(".git");
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(std::sync::atomic::Ordering::Relaxed) {
                for name in names(&root).iter().filter(|name| *name != ".git") {
                    drop(std_fs::remove_dir(root.join(name)));
                }
            }
        });
        // Made, or refused: never "nobody can make it".
        let given_up = (0..300)
            .filter(|_| matches!(Placeholders::default().reserve(&place), Ok(false)))
            .count();
        done.store(true, std::sync::atomic::Ordering::Relaxed);
        assert_eq!(given_up, 0);
    });
}
