//! How programs end, with what they started.

use plenipo_process::ProcessGroups;
use tokio::io::AsyncReadExt as _;

use crate::support::Marked;

/// Says so once it has a child in its group and one in a session of its own.
const FAMILY: &str =
    "sleep 1000 & setsid sleep 1000 & while read -r _; do :; done <&0 & echo up; wait";

async fn up(stdout: &mut plenipo_process::Output) {
    let mut word = [0; 3];
    stdout.read_exact(&mut word).await.unwrap();
    assert_eq!(&word, b"up\n");
}

#[tokio::test]
async fn what_a_server_started_ends_with_it_when_it_is_killed_and_when_it_is_dropped() {
    for drops in [false, true] {
        let marked = Marked::new(FAMILY);
        let mut running = marked.command.spawn(&ProcessGroups::new()).await.unwrap();
        up(&mut running.stdout).await;
        assert!(marked.count() >= 3, "the control");
        match drops {
            true => drop(running),
            false => {
                running.process.kill();
                assert_eq!(running.process.wait().await.unwrap().signal(), Some(9));
                assert_eq!(running.process.wait().await.unwrap().signal(), Some(9), "again");
            }
        }
        assert!(marked.comes_to(0), "{} are left", marked.count());
    }
}

#[tokio::test]
async fn what_stays_in_the_group_after_its_leader_is_known_and_released() {
    let marked = Marked::new("sleep 1000 & echo up");
    let mut running = marked.command.spawn(&ProcessGroups::new()).await.unwrap();
    up(&mut running.stdout).await;
    let exit = running.process.wait().await.unwrap();
    assert_eq!((exit.code(), exit.to_string().as_str()), (Some(0), "exited with code 0"));
    assert!(running.process.is_alive(), "its child is left");
    running.process.release();
    assert!(marked.comes_to(0), "{} are left", marked.count());
}

#[tokio::test]
async fn a_program_that_is_asked_to_end_may_do_so_in_its_own_way() {
    let marked = Marked::new("trap 'echo bye; exit 3' TERM; echo up; while :; do sleep 0.01; done");
    let mut running = marked.command.spawn(&ProcessGroups::new()).await.unwrap();
    up(&mut running.stdout).await;
    running.process.terminate();
    assert_eq!(running.process.wait().await.unwrap().code(), Some(3));
    let mut rest = String::new();
    running.stdout.read_to_string(&mut rest).await.unwrap();
    assert_eq!(rest, "bye\n");
}
