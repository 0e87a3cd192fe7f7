use plenipo_policy::{WorkspaceRoots, parse_permissions};
use plenipo_testkit::Fixture;

use super::*;

/// A home with packages, secrets and files of somebody's own.
fn home() -> Fixture {
    let home = Fixture::new();
    for file in [
        "app/node_modules/a/index.js",
        "app/node_modules/a/node_modules/b/index.js",
        "venv/pyvenv.cfg",
        "venv/lib/python3.13/site-packages/x.py",
        "node/bin/node",
        "node/lib/x.so",
        ".local/bin/tool",
        ".local/lib/python3.13/site-packages/y.py",
        ".ssh/id",
        "project/.env",
        "project/one.txt",
        "many/1",
        "many/2",
        "many/3",
        "many/4",
        "made/x/new",
        "odd/[x]",
    ] {
        home.file(file, "x");
    }
    home.symlink("link", "many/1");
    home.directory("work");
    home
}

fn proposal(home: &Fixture, records: &[Record], arguments: &[String]) -> Proposal {
    let around = Surroundings {
        home: Some(home.path().to_path_buf()),
        directory: home.join("work"),
        temporary: None,
        arguments: arguments.to_vec(),
        variables: vec![
            ("DATA".to_owned(), home.join("data").display().to_string()),
            ("TOKEN".to_owned(), "/s3cr3t".to_owned()),
        ],
    };
    Proposal::new("x.y", &records.iter().cloned().collect(), around)
}

fn at(home: &Fixture, relative: &str) -> String {
    home.join(relative).display().to_string()
}

#[test]
fn paths_become_few_entries_and_secrets_none() {
    let home = home();
    let mut records = vec![
        Record::Execute("/bin/sh".to_owned()),
        Record::Read("/nonexistent".to_owned()),
        Record::Make("/tmp/x".to_owned()),
        Record::Make(at(&home, "made/x/new")),
        Record::Write(at(&home, "project/one.txt")),
        Record::Make(at(&home, "venv/lib/python3.13/__pycache__/x.pyc")),
        Record::Look(at(&home, ".ssh")),
        Record::Internet("203.0.113.7:443".to_owned()),
        Record::Incomplete,
    ];
    for file in [
        "app/node_modules/a/index.js",
        "app/node_modules/a/node_modules/b/index.js",
        "venv/lib/python3.13/site-packages/x.py",
        "node/bin/node",
        ".local/bin/tool",
        ".local/lib/python3.13/site-packages/y.py",
        "project/.env",
        "link",
        "many/2",
        "many/3",
        "many/4",
        "odd/[x]",
    ] {
        records.push(Record::Read(at(&home, file)));
    }
    let proposal = proposal(&home, &records, &["--root=/".to_owned(), at(&home, "project")]);
    let text = proposal.toml();
    insta::assert_snapshot!(text);
    assert!(!text.contains("s3cr3t"), "the value of a variable that names no file");
    let tables = parse_permissions(&text, "proposal").unwrap();
    let roots = WorkspaceRoots::new(&home.join("work"), Some(home.path()), false).unwrap();
    tables.profile("x.y", &roots).unwrap();
    let secrets: Vec<_> = proposal.secrets().collect();
    assert_eq!(secrets, [home.join(".ssh"), home.join("project/.env")]);
}

#[test]
fn a_home_directory_is_granted_only_where_an_argument_names_it_and_then_without_its_secrets() {
    let home = home();
    let listed = [Record::Read(at(&home, "")), Record::Make(at(&home, "new"))];
    let text = proposal(&home, &listed, &[]).toml();
    assert!(text.contains("# \"~\" = \"read\"") || text.contains("# \"~\" = \"write\""), "{text}");
    assert!(!text.lines().any(|line| line.starts_with("\"~\" ")), "{text}");
    let text = proposal(&home, &[], &[at(&home, "")]).toml();
    assert!(text.lines().any(|line| line.starts_with("\"~\" = \"read\"")), "{text}");
    assert!(text.contains("AND IT HOLDS MUCH ELSE"), "{text}");
    assert!(text.lines().any(|line| line.starts_with("\"~/.ssh\" = \"deny\"")), "{text}");
}

#[test]
fn a_directory_that_a_server_starts_in_and_that_holds_much_else_is_named_as_such() {
    let home = home();
    let around = Surroundings {
        home: Some(home.path().to_path_buf()),
        directory: home.path().to_path_buf(),
        ..Surroundings::default()
    };
    let text = Proposal::new("s", &Survey::default(), around).toml();
    assert!(text.contains("AND IT HOLDS MUCH ELSE: set `cwd` of the server"), "{text}");
    assert!(text.lines().any(|line| line.starts_with("\"~/.ssh\" = \"deny\"")), "{text}");
}

#[test]
fn a_path_leads_over_each_link_to_its_end() {
    use crate::places::trail;
    let place = Fixture::new();
    place.file("real/file", "x");
    place.symlink("one", "real");
    place.symlink("two", place.join("one"));
    place.symlink("loop", "loop");
    let found = trail(&place.join("two/../two/./file")).unwrap();
    assert_eq!(found.last(), Some(&place.join("real/file")));
    assert!(found.contains(&place.join("one")) && found.contains(&place.join("two")), "{found:?}");
    assert_eq!(trail(&place.join("loop")), None);
    assert_eq!(trail(&place.join("missing/file")), None);
}

#[test]
fn a_run_that_touches_too_much_says_so() {
    let records = (0..Record::MOST + 10).map(|number| Record::Look(format!("/{number}")));
    let survey: Survey = records.collect();
    assert!(survey.is_incomplete());
    assert_eq!(survey.records().count(), Record::MOST + 1);
}
