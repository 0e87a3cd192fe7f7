//! Short runs.

use std::time::Duration;

use plenipo_process::{Brief, run_briefly};

use crate::support::Marked;

const LONG: Duration = Duration::from_secs(60);

#[tokio::test]
async fn a_short_run_tells_what_was_said_and_whether_it_went_well() {
    for (script, success) in [("echo words; echo no >&2", true), ("echo words; exit 1", false)] {
        let ran = run_briefly(&Marked::new(script).command, LONG, 6).await.unwrap();
        let Brief::Ended(output) = ran else { unreachable!("{ran:?}") };
        assert_eq!((output.stdout.as_slice(), output.success), (&b"words\n"[..], success));
    }
}

#[tokio::test]
async fn a_short_run_is_bounded_in_time_and_output_and_leaves_nothing() {
    let (slow, much) = (Marked::new("sleep 1000 & sleep 1000"), Marked::new("sleep 1000 & yes"));
    let ran = run_briefly(&slow.command, Duration::from_millis(300), 6).await.unwrap();
    assert!(matches!(ran, Brief::TooSlow), "{ran:?}");
    let ran = run_briefly(&much.command, LONG, 6).await.unwrap();
    assert!(matches!(ran, Brief::TooMuch), "{ran:?}");
    assert!(slow.comes_to(0) && much.comes_to(0));
}
