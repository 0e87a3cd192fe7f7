//! What a person is asked on a terminal, and what happens where nobody can be asked.

use std::ffi::OsString;
use std::process::Command;

use serde_json::{Value, json};

use crate::layers::managed_command;
use crate::support::{Bench, Ran, data, python};

/// What to wait for, and what to type then.
pub(crate) type Steps<'a> = &'a [(&'a str, &'a str)];

const FORM: &str = r##"params:={"message":"Who are you?\nSend this? [Y/n]\u001b[2J\u202e","requestedSchema":{"type":"object","required":["name"],"properties":{"name":{"type":"string","title":"Your name","minLength":2},"age":{"type":"integer","default":30},"colour":{"type":"string","oneOf":[{"const":"#f00","title":"Red"},{"const":"#0f0","title":"Green"}]},"sure":{"type":"boolean","default":true}}}}"##;

/// A configuration with the server that asks.
fn asking(bench: &Bench, more: &str) -> Option<String> {
    let python = python()?;
    let script = data("../connect/tests/data/servers/asks.py");
    Some(format!(
        "[mcp_servers.asks]\ncommand = {python:?}\nargs = [{script:?}]\n\
         env = {{ PYTHONDONTWRITEBYTECODE = \"1\", F_LOG = {:?} }}\n{more}",
        bench.fixture.join("log")
    ))
}

/// Runs on a terminal of its own, without colours.
pub(crate) fn on_terminal(mut command: Command, steps: Steps<'_>) -> Ran {
    let steps: Vec<_> = steps.iter().map(|(see, text)| json!([see, text])).collect();
    let program = command.get_program().to_owned();
    let arguments: Vec<OsString> = command.get_args().map(ToOwned::to_owned).collect();
    let mut driven = Command::new(python().unwrap());
    driven.arg(data("tests/data/drive.py")).arg(Value::from(steps).to_string());
    driven.arg(absolute(program)).args(arguments).env_clear().env("NO_COLOR", "1");
    for (name, value) in command.get_envs() {
        driven.env(name, value.unwrap_or_default());
    }
    driven.current_dir(command.get_current_dir().unwrap());
    command.stdin(std::process::Stdio::null());
    Ran::of(driven.output().unwrap())
}

fn absolute(program: OsString) -> OsString {
    let name = program.to_string_lossy().into_owned();
    match name.contains('/') {
        true => program,
        false => plenipo_testkit::find_tool(&name).unwrap().into(),
    }
}

fn ask(bench: &Bench, config: &str, more: &[&str]) -> Command {
    let config = bench.configuration(config);
    let mut words = vec!["call", "--config", &config, "asks.ask", "method=elicitation/create"];
    words.extend(more);
    bench.command(words)
}

fn received(bench: &Bench) -> usize {
    let log = bench.fixture.read("log").unwrap_or_default();
    log.lines().filter(|line| line.contains("\"tools/call\"")).count()
}

#[test]
fn a_form_is_filled_in_on_the_terminal() {
    let bench = Bench::new();
    let Some(config) = asking(&bench, "") else { return };
    let steps = [
        ("Your name (name)", "\n"),
        ("it is required", ""),
        ("Your name (name)", "J\n"),
        ("at least 2 characters", ""),
        ("Your name (name)", "Jo\n"),
        ("age, a whole number [30]: ", "many\n"),
        ("has to be a whole number", ""),
        ("age, a whole number [30]: ", "\n"),
        ("  2  Green (#0f0)", ""),
        ("colour, one of these (optional): ", "2\n"),
        ("sure, yes or no [yes]: ", "n\n"),
        ("Send this to `asks`? [Y]es, [e]dit, [d]ecline, [c]ancel: ", "e\n"),
        ("[Jo]: ", "\n"),
        ("[30]: ", "31\n"),
        ("[#0f0]: ", "\n"),
        ("[no]: ", "\n"),
        ("age: 31", ""),
        ("Send this to `asks`?", "\n"),
    ];
    let ran = on_terminal(ask(&bench, &config, &[FORM]), &steps);
    ran.expect(0);
    let shown = ran.stdout.replace('\r', "");
    assert!(
        shown.contains("server `asks` asks you, during `asks.ask`:\n  | Who are you?\n  | Send")
    );
    assert!(!shown.contains('\u{1b}') && !shown.contains('\u{202e}'), "{shown:?}");
    let answer = r##"{"result": {"action": "accept", "content": {"age": 31, "colour": "#0f0", "name": "Jo", "sure": false}}}"##;
    assert!(shown.contains(answer), "{shown}");
}

#[test]
fn a_modern_servers_question_is_asked_on_the_terminal_too() {
    let bench = Bench::new();
    let Some(config) = asking(&bench, "") else { return };
    let config = bench.configuration(&config.replace("asks.py", "mrtr.py"));
    let command = bench.command(["call", "--config", &config, "asks.ask"]);
    let ran = on_terminal(command, &[("sure, yes or no (optional): ", "y\n"), ("Send this", "\n")]);
    let answer = r#"{"k": {"action": "accept", "content": {"sure": true}}}"#;
    assert!(ran.expect(0).stdout.contains(answer), "{}", ran.stdout);
    let ran = bench.run(["call", "--config", &config, "asks.ask"]);
    assert!(ran.expect(4).stderr.contains("was not offered"), "{}", ran.stderr);
}

#[test]
fn a_form_is_declined_cancelled_or_left_by_keys() {
    let bench = Bench::new();
    let Some(config) = asking(&bench, "") else { return };
    let first = [("Your name", "Jo\n"), ("age", "\n"), ("colour", "\n"), ("sure", "\n")];
    for (key, answer) in [("d\n", "decline"), ("c\n", "cancel"), ("\u{4}", "cancel")] {
        let mut steps = first.to_vec();
        steps.push(("Send this", key));
        let ran = on_terminal(ask(&bench, &config, &[FORM]), &steps);
        ran.expect(0);
        let answer = format!(r#"{{"result": {{"action": "{answer}"}}}}"#);
        assert!(ran.stdout.contains(&answer), "{}", ran.stdout);
    }
    let ran = on_terminal(ask(&bench, &config, &[FORM]), &[("Your name", "\u{4}")]);
    assert!(ran.expect(0).stdout.contains(r#""action": "cancel""#), "{}", ran.stdout);
    let ran = on_terminal(ask(&bench, &config, &[FORM]), &[("Your name", "\u{3}")]);
    assert!(ran.expect(130).stdout.contains("the call was cancelled"), "{}", ran.stdout);
    let log = bench.fixture.read("log").unwrap();
    assert!(log.contains("notifications/cancelled"), "the server is told");
}

#[test]
fn a_page_is_opened_only_on_consent_and_without_a_shell() {
    let bench = Bench::new();
    let Some(config) = asking(&bench, "") else { return };
    let opened = bench.fixture.join("opened");
    let script = format!("#!/bin/sh\nprintf '%s|' \"$#\" \"$1\" >> {}\n", opened.display());
    bench.fixture.executable("bin/xdg-open", script);
    let url = "https://login.xn--pple-43d.com/a?b=$(id)&c='d';e#f";
    let params = json!({"mode": "url", "message": "Sign in", "elicitationId": "e", "url": url});
    let params = format!("params:={params}");
    let run = |display: &str, steps: Steps<'_>| {
        let mut command = ask(&bench, &config, &[&params]);
        command.env("PATH", format!("{}:/usr/bin:/bin", bench.fixture.join("bin").display()));
        command.env("DISPLAY", display);
        let ran = on_terminal(command, steps);
        ran.expect(0);
        ran.stdout.replace('\r', "")
    };
    for (key, action) in [("d\n", "decline"), ("\n", ""), ("m\n", "accept"), ("\u{4}", "cancel")] {
        let mut steps = vec![("Open it in your browser? ", key)];
        if action.is_empty() {
            steps.extend([("please answer yes", ""), ("Open it", "c\n")]); // nothing is the default
        }
        let shown = run(":0", &steps);
        let action = if action.is_empty() { "cancel" } else { action };
        assert!(shown.contains(&format!(r#"{{"result": {{"action": "{action}"}}}}"#)), "{shown}");
        assert!(shown.contains(&format!("\n  {url}\n  host: login.xn--pple-43d.com\n")), "{shown}");
        assert!(shown.contains("Punycode"), "{shown}");
        assert!(!bench.fixture.exists("opened"));
    }
    let shown = run("", &[("Will you open it yourself? ", "y\n")]);
    assert!(shown.contains(r#"{"result": {"action": "accept"}}"#), "{shown}");
    assert!(!bench.fixture.exists("opened"), "without a display nothing is started");

    run(":0", &[("Open it in your browser? ", "y\n")]);
    let wanted = format!("1|{url}|");
    let arrived = || bench.fixture.read("opened").is_some_and(|text| text == wanted);
    assert!(plenipo_testkit::Deadline::poll_until(std::time::Duration::from_secs(10), arrived));
}

#[test]
fn a_call_that_needs_a_page_first_is_made_again_once_the_person_is_done() {
    let bench = Bench::new();
    let Some(config) = asking(&bench, "") else { return };
    let config = bench.configuration(&config);
    let command = bench.command(["call", "--config", &config, "asks.urls"]);
    let steps = [
        ("https://example.com/e1", ""),
        ("Will you open it yourself? ", "y\n"),
        ("Press Enter when you are done. ", "\n"),
        ("Will you open it yourself? ", "d\n"),
    ];
    let ran = on_terminal(command, &steps);
    ran.expect(6);
    assert!(ran.stdout.contains("nobody agreed"), "{}", ran.stdout);
    assert_eq!(received(&bench), 2);
}

#[test]
fn where_nobody_can_be_asked_nothing_is_declared_and_inputs_can_be_given() {
    let bench = Bench::new();
    let Some(config) = asking(&bench, "") else { return };
    let run = |more: &[&str]| Ran::of(ask(&bench, &config, more).output().unwrap());
    let ran = run(&[FORM]);
    assert!(ran.expect(0).stdout.contains("-32601"), "{}", ran.stdout);
    assert!(bench.fixture.read("log").unwrap().contains(r#""caps": {}"#));

    let ran = run(&[FORM, "--input", "name=Jo", "--input", "colour=red", "--input", "other=1"]);
    let answer = r##""content": {"age": 30, "colour": "#f00", "name": "Jo", "sure": true}"##;
    assert!(ran.expect(0).stdout.contains(answer), "{}", ran.stdout);
    insta::assert_snapshot!(ran.stderr, @"warning: the server asked for no input `other`");

    let ran = run(&[FORM, "--input", "age=4"]);
    assert!(ran.expect(0).stdout.contains(r#""action": "cancel""#), "{}", ran.stdout);
    insta::assert_snapshot!(ran.stderr, @"warning: server `asks` asks for input: `name` is required: give it with --input");
    run(&[FORM, "--input", "name"]).expect(2);

    let config = bench.configuration(&config);
    let ran = bench.run(["call", "--config", &config, "asks.urls"]);
    ran.expect(4);
    insta::assert_snapshot!(ran.stderr, @r"
    error: failed to call tool `urls` of server `asks`: the server answered with error -32042 (URL elicitation required): needed
    hint: the server has to ask a person: call it from a terminal, or give the answers with `--input`
    ");
}

#[test]
fn what_is_given_is_not_asked_again() {
    let bench = Bench::new();
    let Some(config) = asking(&bench, "") else { return };
    let given = ["--input", "name=Jo", "--input", "age=31", "--input", "colour=2"];
    let mut words = vec![FORM];
    words.extend(given);
    let steps = [("sure, yes or no [yes]: ", "\n"), ("name: Jo", ""), ("Send this", "\n")];
    let ran = on_terminal(ask(&bench, &config, &words), &steps);
    assert!(ran.expect(0).stdout.contains(r##""colour": "#0f0""##), "{}", ran.stdout);
    assert!(!ran.stdout.contains("Your name (name)"), "{}", ran.stdout);
}

#[test]
fn an_administrators_mode_asks_even_the_person_who_typed_the_call() {
    let bench = Bench::new();
    let more = "tools = { done = { approval_mode = \"prompt\" }, ask = { approval_mode = \"approve\" } }\n";
    let Some(config) = asking(&bench, more) else { return };
    let audit = bench.fixture.join("audit.jsonl");
    let managed = format!("audit.file = {:?}\n{config}", audit.display().to_string());
    let words = ["call", "asks.done", "a=1", "b:={\"c\":1.10}"];
    let Some(mut alone) = managed_command(&bench, &managed, &words) else { return };
    let ran = Ran::of(alone.output().unwrap());
    ran.expect(6);
    insta::assert_snapshot!(ran.stderr, @r"
    error: failed to call tool `done` of server `asks`: the call needs approval, and nobody is there to give it
    hint: call it where somebody can be asked, or see `approval_mode` in the server's configuration
    ");
    assert_eq!(received(&bench), 0, "nothing was sent");

    let command = || managed_command(&bench, &managed, &words).unwrap();
    for key in ["\n", "n\n", "\u{4}"] {
        on_terminal(command(), &[("Make this call? [y]es, [N]o: ", key)]).expect(6);
    }
    assert_eq!(received(&bench), 0, "nothing was sent");
    let ran = on_terminal(command(), &[("Make this call?", "y\n")]);
    let shown = ran.expect(0).stdout.replace('\r', "");
    assert!(
        shown.contains(
            "`asks.done` needs your approval (mode `prompt`). It would be sent:\n  | {\n  |   \"a\": \"1\",\n  |   \"b\": {\"c\":1.10}\n  | }\n"
        ),
        "{shown}"
    );
    assert_eq!(received(&bench), 1);
    let words = ["call", "asks.drop"];
    Ran::of(managed_command(&bench, &managed, &words).unwrap().output().unwrap()).expect(0);
    let lines = bench.fixture.read("audit.jsonl").unwrap();
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let approvals: Vec<_> = lines.iter().map(|line| line["approval"].as_str().unwrap()).collect();
    let refused = "approver-refused";
    assert_eq!(approvals, ["nobody-to-ask", refused, refused, refused, "approver", "person"]);
    assert_eq!(lines[0]["decision"], "refused");
}

#[test]
fn a_users_own_mode_is_met_by_typing_the_call() {
    let bench = Bench::new();
    let Some(config) = asking(&bench, "default_tools_approval_mode = \"prompt\"\n") else { return };
    let config = bench.configuration(&config);
    bench.run(["call", "--config", &config, "asks.done"]).expect(0);
}
