//! What a program gets, and why one does not start.

use plenipo_process::{ProcessGroups, Running, StartFault, StdioCommand};
use plenipo_testkit::Fixture;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

async fn fault(command: &StdioCommand) -> StartFault {
    command.spawn(&ProcessGroups::new()).await.map(drop).unwrap_err()
}

#[tokio::test]
async fn a_program_gets_its_words_its_variables_and_its_directory_and_nothing_else() {
    let fixture = Fixture::new();
    let directory = fixture.directory("here");
    let mut command = StdioCommand::new("sh");
    command
        .args(["-c", "read line; echo \"$line|$1|$A|$(pwd)\"; env >&2"])
        .args(["sh", "a 'b' $(c)"])
        .environment([("PATH", "/usr/bin:/bin"), ("A", "first"), ("A", "second")])
        .current_dir(&directory);
    let running = command.spawn(&ProcessGroups::new()).await.unwrap();
    let Running { mut stdin, mut stdout, mut stderr, process, .. } = running;
    stdin.write_all(b"words\n").await.unwrap();
    drop(stdin);
    let (mut said, mut variables) = (String::new(), String::new());
    stdout.read_to_string(&mut said).await.unwrap();
    stderr.read_to_string(&mut variables).await.unwrap();
    assert_eq!(said, format!("words|a 'b' $(c)|second|{}\n", directory.display()));
    let names = variables.lines().filter_map(|line| line.split('=').next());
    let names: Vec<_> =
        names.filter(|name| !["PWD", "_", "SHLVL", "OLDPWD"].contains(name)).collect();
    assert!(names.len() == 2 && names.contains(&"PATH") && names.contains(&"A"), "{variables}");
    assert_eq!(process.wait().await.unwrap().code(), Some(0));
    assert!(!format!("{command:?}").contains("second"));
}

#[tokio::test]
async fn why_a_program_does_not_start_is_told_apart() {
    let fixture = Fixture::new();
    let script = fixture.executable("no-interpreter", "#!/nowhere/at/all\n");
    let plain = fixture.file("plain", "words");
    let folder = fixture.path().display().to_string();
    let said = async |program: &str| {
        let mut command = StdioCommand::new(program);
        command.environment([("PATH", &folder)]);
        fault(&command).await
    };
    match said("absent").await {
        StartFault::ProgramNotFound { program, searched } => {
            assert_eq!((program.as_str(), searched.as_ref()), ("absent", Some(&folder)));
        }
        other => assert_eq!(other.to_string(), "not found"),
    }
    let path = said("/absent/program").await;
    assert!(matches!(path, StartFault::ProgramNotFound { searched: None, .. }), "{path}");
    for program in ["no-interpreter", script.to_str().unwrap()] {
        let fault = said(program).await;
        assert!(matches!(fault, StartFault::InterpreterMissing { .. }), "{fault}");
    }
    let refused = said(plain.to_str().unwrap()).await;
    assert!(matches!(refused, StartFault::Spawn { .. }), "{refused}");
    let mut command = StdioCommand::new("sh");
    command.current_dir(fixture.join("absent"));
    let nowhere = fault(&command).await;
    assert!(matches!(nowhere, StartFault::WorkingDirectory { .. }), "{nowhere}");
}
