//! What `--help` says, and the man pages made from it.

use insta::assert_snapshot;

use crate::support::Bench;

#[test]
fn help_of_every_command() {
    let bench = Bench::new();
    for words in [
        vec!["--help"],
        vec!["call", "--help"],
        vec!["sandbox", "--help"],
        vec!["add", "--help"],
        vec!["remove", "--help"],
        vec!["login", "--help"],
        vec!["logout", "--help"],
        vec!["auth", "status", "--help"],
        vec!["enterprise", "--help"],
        vec!["enterprise", "login", "--help"],
        vec!["account", "logout", "--help"],
        vec!["trust", "--help"],
        vec!["config", "--help"],
        vec!["doctor", "--help"],
        vec!["server", "workspace", "--help"],
    ] {
        let ran = bench.run(&words);
        ran.expect(0);
        assert_snapshot!(words.join("_").replace("--", ""), ran.stdout);
    }
}

#[test]
fn man_pages_come_from_the_same_text() {
    let bench = Bench::new();
    bench.run(["man", "pages"]).expect(0);
    let pages = bench.fixture.names("workspace/pages");
    for page in ["plenipo.1", "plenipo-call.1", "plenipo-sandbox.1", "plenipo-doctor.1"] {
        assert!(pages.iter().any(|name| name == page), "{pages:?}");
    }
    assert!(bench.fixture.read("workspace/pages/plenipo-call.1").unwrap().contains("input schema"));
}

#[test]
fn unknown_words_are_usage_errors() {
    let bench = Bench::new();
    for words in
        [vec!["cal"], vec![], vec!["call"], vec!["sandbox"], vec!["call", "a.b", "--nonsense"]]
    {
        bench.run(words).expect(2);
    }
}
