use plenipo_policy::{WorkspaceRoots, parse_permissions};
use plenipo_testkit::Fixture;

use super::*;

/// The lines that are entries, without their reasons.
fn entries(text: &str) -> Vec<&str> {
    let lines = text.lines().filter(|line| line.starts_with('"'));
    lines.map(|line| line.split("  #").next().unwrap().trim_end()).collect()
}

/// What the configuration reads out of the proposal; it is one.
#[track_caller]
fn read(proposal: &Proposal, directory: &Path, home: &Path) {
    let tables = parse_permissions(&proposal.toml(), "proposal").unwrap();
    let roots = WorkspaceRoots::new(directory, Some(home), false).unwrap();
    tables.profile(proposal.name(), &roots).unwrap();
}

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
    home.directory("temporary");
    home
}

fn proposal(home: &Fixture, records: &[Record], arguments: &[String]) -> Proposal {
    let around = Surroundings {
        home: Some(home.path().to_path_buf()),
        directory: home.join("work"),
        temporary: Some(home.join("temporary")),
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
        Record::Make(at(&home, "temporary/x")),
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
    // Whose secrets the machine has, and may read, is another matter.
    let lines = text.split_inclusive('\n');
    let shown: String = lines.filter(|line| !line.starts_with("\"/etc/")).collect();
    let shown = shown.replace(home.path().to_str().unwrap(), "HOME");
    insta::assert_snapshot!(shown);
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

#[test]
fn secrets_in_a_temporary_directory_are_denied_whatever_it_is_called() {
    let own = Fixture::new();
    for file in ["home/.ssh/id_rsa", "home/.aws/credentials", "other/.env"] {
        own.file(file, "x");
    }
    let shared = tempfile::Builder::new().prefix("plenipo-").tempdir_in("/tmp").unwrap();
    std::fs::create_dir_all(shared.path().join("home/.ssh")).unwrap();
    for (place, key) in [(own.path(), own.path().to_str().unwrap()), (shared.path(), ":slash_tmp")]
    {
        let around = Surroundings {
            home: Some(place.join("home")),
            directory: PathBuf::from("/usr"),
            temporary: (place == own.path()).then(|| place.to_path_buf()),
            ..Surroundings::default()
        };
        let made = Record::Make(place.join("x").display().to_string());
        let proposal = Proposal::new("s", &Survey::from_iter([made]), around);
        let text = proposal.toml();
        let entries = entries(&text);
        assert!(entries.contains(&format!("\"{key}\" = \"write\"").as_str()), "{text}");
        assert!(entries.contains(&"\"~/.ssh\" = \"deny\""), "{text}");
        let other = format!("{:?} = \"deny\"", place.join("other/.env"));
        assert!(key == ":slash_tmp" || entries.contains(&other.as_str()), "{text}");
        read(&proposal, &place.join("home"), &place.join("home"));
    }
}

#[test]
fn secrets_in_a_granted_directory_are_denied_though_the_server_touched_none() {
    let (home, work) = (Fixture::new(), Fixture::new());
    let secrets = [".env", ".npmrc", "[x]/.env", "id_rsa", "server.pem", "sub/.env"];
    for file in secrets.iter().chain(&["README.md", ".env.example"]) {
        work.file(file, "x");
    }
    let around = Surroundings {
        home: Some(home.path().to_path_buf()),
        directory: work.path().to_path_buf(),
        ..Surroundings::default()
    };
    let proposal = Proposal::new("s", &Survey::default(), around.clone());
    let text = proposal.toml();
    let mut expected = vec![format!("{:?} = \"read\"", work.path())];
    expected.extend(secrets.map(|file| {
        let file = file.replace("[x]", "[[]x[]]");
        format!("\"{}/{file}\" = \"deny\"", work.path().display())
    }));
    assert_eq!(entries(&text), expected, "{text}");
    assert!(!proposal.is_incomplete());
    read(&proposal, work.path(), home.path());
    // Where there is too much in it, that is what is said.
    let mut proposal = Proposal::new("s", &Survey::default(), around);
    proposal.deny(Search::of_entries(2));
    assert!(proposal.is_incomplete());
    assert_eq!(proposal.unsearched().collect::<Vec<_>>(), [work.path()]);
    assert!(proposal.toml().contains("# SECRETS MAY BE READABLE in \"/"), "{}", proposal.toml());
}

#[test]
fn secrets_of_the_system_that_this_user_can_read_are_denied() {
    let place = Fixture::new();
    for (directory, executed) in [(place.path(), Some("/bin/sh")), (Path::new("/"), None)] {
        let around = Surroundings {
            home: Some(place.path().to_path_buf()),
            directory: directory.to_path_buf(),
            ..Surroundings::default()
        };
        let records = executed.map(|program| Record::Execute(program.to_owned()));
        let proposal = Proposal::new("s", &records.into_iter().collect(), around);
        let text = proposal.toml();
        for secret in ["/etc/shadow", "/etc/gshadow", "/etc/ssl/private"] {
            let readable = rustix::fs::access(secret, rustix::fs::Access::READ_OK).is_ok();
            let entry = format!("\"{secret}\" = \"deny\"");
            assert_eq!(entries(&text).contains(&entry.as_str()), readable, "{secret} in {text}");
        }
    }
}

#[test]
fn files_of_secrets_that_arguments_name_are_secrets() {
    let home = home();
    home.file(".aws/credentials", "x");
    home.file("work/.env", "x");
    let key = at(&home, ".ssh/id");
    for (word, secret) in [
        (key.clone(), ".ssh"),
        (format!("--x={}", at(&home, ".aws/credentials")), ".aws"),
        (format!("-i{key}"), ".ssh"),
        (format!("name:{key},ro"), ".ssh"),
        ("~/.ssh/id".to_owned(), ".ssh"),
        (".env".to_owned(), "work/.env"),
    ] {
        let proposal = proposal(&home, &[], std::slice::from_ref(&word));
        assert_eq!(proposal.secrets().collect::<Vec<_>>(), [home.join(secret)], "{word}");
    }
    for word in ["http://example.org/.env", "plain", "--x=y"] {
        assert_eq!(proposal(&home, &[], &[word.to_owned()]).secrets().count(), 0, "{word}");
    }
}

#[test]
fn a_proposal_is_right_when_it_is_pasted_whatever_things_are_called() {
    let home = home();
    let around = Surroundings {
        home: Some(home.path().to_path_buf()),
        directory: home.join(".ssh"),
        ..Surroundings::default()
    };
    home.file("many/[x]", "x");
    let names = ["odd/a\u{202e}b", "odd/c\u{85}d", "odd/e\u{7f}\u{e0001}"];
    let records = names.map(|name| Record::Read(home.file(name, "x").display().to_string()));
    let records = records.into_iter().chain([Record::Read(at(&home, "many/[x]"))]);
    let proposal = Proposal::new("a.b", &records.collect(), around);
    let text = proposal.toml();
    read(&proposal, home.path(), home.path());
    assert!(!text.contains(['\u{202e}', '\u{85}', '\u{7f}', '\u{e0001}']), "{text:?}");
    assert!(!entries(&text).iter().any(|entry| entry.starts_with("\"~/.ssh\"")), "{text}");
    assert_eq!(proposal.secrets().collect::<Vec<_>>(), [home.join(".ssh")]);
    let said = "# LEFT OUT: ";
    assert!(text.lines().any(|line| line.starts_with(said) && line.contains("many/[x]")), "{text}");
    let confining = proposal.confining("a.b");
    assert_eq!(confining, "# Then confine it:\n# [mcp_servers.\"a.b\"]\n# sandbox = \"a.b\"\n");
}
