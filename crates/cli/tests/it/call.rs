//! `plenipo call`: arguments in, text or JSON out, one sentence when it fails.

use std::collections::BTreeMap;

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::support::{Bench, Ran, as_each_user, data, python};

/// The configuration of the server in `tests/data/show.py`.
fn show_server(bench: &Bench) -> Option<String> {
    let python = python()?;
    let script = bench.fixture.file("show.py", std::fs::read(data("tests/data/show.py")).unwrap());
    let text = format!("[mcp_servers.show]\ncommand = {python:?}\nargs = [{script:?}]\n");
    Some(bench.configuration(&text))
}

fn call(bench: &Bench, config: &str, words: &[&str]) -> Ran {
    let mut arguments = vec!["call", "--config", config];
    arguments.extend(words);
    bench.run(arguments)
}

#[test]
fn a_command_writes_where_its_policy_lets_it_and_nowhere_else() {
    as_each_user(|bench| {
        let outside = bench.fixture.join("outside");
        let command =
            format!("echo hello > note.txt && cat note.txt && touch {}", outside.display());
        let ran = bench.run(["call", "workspace.run", &format!("command={command}")]);
        ran.expect(1);
        assert!(ran.stdout.starts_with("hello\n"), "{}", ran.stdout);
        assert!(ran.stdout.contains("Read-only file system"), "{}", ran.stdout);
        assert!(!outside.exists());
        assert_eq!(bench.fixture.read("workspace/note.txt").as_deref(), Some("hello\n"));
    });
}

#[test]
fn a_read_only_profile_refuses_every_write() {
    as_each_user(|bench| {
        let words =
            ["call", "workspace.run", "--profile", ":read-only", "command=echo x > note.txt"];
        bench.run(words).expect(1);
        assert!(!bench.fixture.exists("workspace/note.txt"));
    });
}

#[test]
fn the_control_could_write_there() {
    as_each_user(|bench| {
        let outside = bench.fixture.join("outside");
        let touch = format!("touch {}", outside.display());
        let run = [
            "call",
            "workspace.run",
            "--profile",
            ":danger-full-access",
            &format!("command={touch}"),
        ];
        bench.run(run).expect(0);
        assert!(outside.exists());
    });
}

#[test]
fn json_shows_the_result_and_the_profile_in_force() {
    let bench = Bench::new();
    let ran = bench.run(["call", "workspace.run", "command=printf hi", "--json"]);
    ran.expect(0);
    let answer: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(answer["profile"], ":workspace");
    assert_eq!(answer["server"], "workspace");
    assert_eq!(answer["sandbox_state"]["permissionProfile"]["type"], "managed");
    assert_eq!(answer["result"]["structuredContent"]["stdout"], "hi");
    assert_eq!(answer["result"]["structuredContent"]["enforcement"]["status"], "enforced");
    let spoken = bench.run(["-v", "call", "workspace.run", "command=true"]);
    assert!(spoken.stderr.contains("profile :workspace in "), "{}", spoken.stderr);
}

#[test]
fn words_are_typed_by_the_schema() {
    let bench = Bench::new();
    let Some(config) = show_server(&bench) else { return };
    bench.fixture.file("workspace/text.txt", "from a file\n");
    let cases: BTreeMap<&str, Value> = BTreeMap::from([
        ("text=5", json!({"text": "5"})),
        ("text=@text.txt", json!({"text": "from a file\n"})),
        ("text=@@at", json!({"text": "@at"})),
        ("text=a=b", json!({"text": "a=b"})),
        ("text:=\"[1]\"", json!({"text": "[1]"})),
    ]);
    for (word, expected) in cases {
        assert_eq!(shown(&call(&bench, &config, &["show.show", word])), expected, "{word}");
    }
    let rest = [
        ("count=7", json!(7)),
        ("count=-0", json!(0)),
        ("ratio=1.50", json!(1.5)),
        ("flag=true", json!(true)),
        ("maybe=null", Value::Null),
        ("choice=12", json!(12)),
        ("choice=twelve", json!("twelve")),
        ("free=12", json!("12")),
        ("tags=one", json!(["one"])),
        ("sizes=3", json!([3])),
        ("sizes=[1,2]", json!([1, 2])),
        ("nested={\"a\":1}", json!({"a": 1})),
        ("unlisted=x", json!("x")),
    ];
    for (word, expected) in rest {
        let name = word.split('=').next().unwrap();
        let answer = shown(&call(&bench, &config, &["show.show", "text=t", word]));
        assert_eq!(answer[name], expected, "{word}");
    }
    let list = shown(&call(&bench, &config, &["show.show", "text=t", "tags=a", "tags=b"]));
    assert_eq!(list["tags"], json!(["a", "b"]));
}

/// What the tool `show` was given.
#[track_caller]
fn shown(ran: &Ran) -> Value {
    ran.expect(0);
    serde_json::from_str(&ran.stdout).unwrap()
}

#[test]
fn a_whole_number_with_a_point_is_an_integer() {
    let bench = Bench::new();
    let Some(config) = show_server(&bench) else { return };
    for word in ["count=3.0", "count=3e0", "count=3.000"] {
        let ran = call(&bench, &config, &["show.show", "text=t", word]);
        assert_eq!(shown(&ran)["count"], json!(3.0), "{word}");
    }
    let whole = call(&bench, &config, &["show.show", "--args", r#"{"text":"t","count":1.0}"#]);
    assert_eq!(shown(&whole)["count"], json!(1.0), "the schema's check agrees");
    for word in ["count=3.5", "count=1e400", "count=9007199254740993.0"] {
        call(&bench, &config, &["show.show", "text=t", word]).expect(2);
    }
}

#[test]
fn a_whole_object_goes_out_as_it_was_written() {
    let bench = Bench::new();
    let Some(config) = show_server(&bench) else { return };
    let object = r#"{ "text":"t", "free":1.10, "nested":{"z":1,"a":12345678901234567890123} }"#;
    let ran = call(&bench, &config, &["show.show", "--args", object]);
    assert_eq!(shown(&ran), serde_json::from_str::<Value>(object).unwrap());
    let file = bench.fixture.file("workspace/args.json", object);
    let from_file =
        call(&bench, &config, &["show.show", "--args", &format!("@{}", file.display())]);
    assert_eq!(from_file.stdout, ran.stdout);
    let words = ["call", "--config", &config, "show.show", "--args", "-", "text=over"];
    let from_input = bench.run_with_input(&words, object.as_bytes());
    assert_eq!(shown(&from_input)["text"], "over");
    assert_eq!(shown(&from_input)["nested"]["z"], 1);
}

#[test]
fn wrong_words_are_refused_before_anything_is_sent() {
    let bench = Bench::new();
    let Some(config) = show_server(&bench) else { return };
    let said = |words: &[&str]| call(&bench, &config, words).shown(&bench);
    assert_snapshot!(said(&["show.show"]), @r"
    exit 2
    error: show needs the argument `text`
    hint: the tool is show(text: string, choice?: integer | string, count?: integer, flag?: boolean, free?: any, maybe?: integer | null, nested?: object, ratio?: number, sizes?: integer[], tags?: string[])
    ");
    assert_snapshot!(said(&["show.closed", "text=t", "txt=u"]), @r"
    exit 2
    error: closed takes no argument `txt`, only choice, count, flag, free, maybe, nested, ratio, sizes, tags, text
    hint: the tool is closed(text: string, choice?: integer | string, count?: integer, flag?: boolean, free?: any, maybe?: integer | null, nested?: object, ratio?: number, sizes?: integer[], tags?: string[])
    ");
    assert_snapshot!(said(&["show.show", "text=t", "count=1.5"]), @r#"
    exit 2
    error: the argument `count` should be integer, found "1.5"
    "#);
    assert_snapshot!(said(&["show.show", "text=t", "text=u"]), @r"
    exit 2
    error: the argument `text` is given more than once
    hint: only a list takes several, each as KEY=ITEM
    ");
    assert_snapshot!(said(&["show.show", "nonsense"]), @r#"
    exit 2
    error: expected KEY=VALUE, KEY:=JSON or KEY=@FILE, found "nonsense"
    "#);
    assert_snapshot!(said(&["show.show", "text:={"]), @r"
    exit 2
    error: the value of `text` is not JSON: failed to read text as one JSON value: EOF while parsing an object at line 1 column 1
    hint: write text={ to pass it as text
    ");
    assert_snapshot!(said(&["show.show", "--args", "[1]"]), @r"
    exit 2
    error: --args is not a JSON object: failed to read text as a JSON object: found array
    ");
    assert_snapshot!(said(&["show.shwo"]), @r"
    exit 2
    error: server `show` has no tool `shwo`
    hint: did you mean `show.show`?
    ");
    assert_snapshot!(said(&["show"]), @r"
    exit 2
    error: `show` names a server and no tool
    hint: write it as show.TOOL
    ");
    assert_snapshot!(said(&["shaw.show"]), @r"
    exit 2
    error: no configured server fits `shaw.show`, which should be SERVER.TOOL
    hint: known servers: show, workspace
    ");
}

#[test]
fn tool_errors_protocol_errors_and_timeouts_have_their_own_codes() {
    let bench = Bench::new();
    let Some(config) = show_server(&bench) else { return };
    let failed = call(&bench, &config, &["show.fails"]);
    failed.expect(1);
    assert_eq!(failed.stdout, "it did not work\n");
    assert_snapshot!(call(&bench, &config, &["show.refuses"]).shown(&bench), @r"
    exit 4
    error: failed to call tool `refuses` of server `show`: the server answered with error -32602 (invalid params): bad params
    ");
    assert_snapshot!(call(&bench, &config, &["show.hangs", "--timeout", "1500ms"]).shown(&bench), @r"
    exit 124
    error: failed to call tool `hangs` of server `show`: the 1.5 s that `--timeout` allows are over
    hint: raise `--timeout`
    ");
    assert_snapshot!(call(&bench, &config, &["show.hangs", "--timeout", "soon"]).shown(&bench), @r#"
    exit 2
    error: invalid value 'soon' for '--timeout <TIME>': expected a time like 30s, 2m or 500ms, found "soon"

    For more information, try '--help'.
    "#);
}

/// `--timeout` holds over everything, and says where it ran out.
#[test]
fn a_timeout_covers_the_start_and_the_list_of_tools_too() {
    let bench = Bench::new();
    let Some(python) = python() else { return };
    let script = "import sys,json,time\nfor line in sys.stdin:\n  m=json.loads(line)\n  \
         if m['method']=='initialize':\n    print(json.dumps({'jsonrpc':'2.0','id':m['id'],'result':\
         {'protocolVersion':'2025-06-18','capabilities':{'tools':{}},'serverInfo':{}}}),flush=True)\n  \
         elif m['method']=='server/discover':\n    print(json.dumps({'jsonrpc':'2.0','id':m['id'],'error':\
         {'code':-32601,'message':'no'}}),flush=True)\n";
    let config = bench.configuration(&format!(
        "[mcp_servers.mute]\ncommand = \"/bin/sleep\"\nargs = [\"600\"]\n\
         [mcp_servers.lists]\ncommand = {python:?}\nargs = [\"-c\", {script:?}]\n"
    ));
    assert_snapshot!(call(&bench, &config, &["mute.x", "--timeout", "500ms"]).shown(&bench), @r"
    exit 124
    error: failed to start server `mute`: the 0.5 s that `--timeout` allows are over
    hint: raise `--timeout`
    ");
    assert_snapshot!(call(&bench, &config, &["lists.x", "--timeout", "4s"]).shown(&bench), @r"
    exit 124
    error: failed to list the tools of server `lists`: the 4 s that `--timeout` allows are over
    hint: raise `--timeout`
    ");
}

#[test]
fn arguments_that_readers_would_take_differently_are_refused() {
    let bench = Bench::new();
    for (words, place) in [
        (vec!["--args", r#"{"a":1,"\u0061":2}"#], "--args has the member `a` twice"),
        (vec!["--args", r#"{"a":[{"b":{},"b":{}}]}"#], "--args has the member `a[0].b` twice"),
        (vec![r#"x:={"k":1,"k":1}"#], "the value of `x` has the member `k` twice"),
    ] {
        let refused = bench.run([vec!["call", "workspace.run"], words].concat());
        refused.expect(2);
        assert!(refused.stderr.contains(place), "{}", refused.stderr);
    }
}

#[test]
fn content_that_is_not_text_goes_into_files() {
    let bench = Bench::new();
    let Some(config) = show_server(&bench) else { return };
    assert_snapshot!(call(&bench, &config, &["show.picture"]).shown(&bench), @r"
    exit 0
    a picture
    [image, image/png, 9 bytes; keep it with --output DIR]
    ");
    let kept = call(&bench, &config, &["show.picture", "--output", "out"]);
    kept.expect(0);
    assert_eq!(std::fs::read(bench.workspace.join("out/image-2.png")).unwrap(), b"\x89PNG fake");
    // A second run overwrites nothing and loses nothing.
    assert_eq!(
        call(&bench, &config, &["show.picture", "--output", "out"]).expect(0).stdout,
        "a picture\n"
    );
    assert!(bench.workspace.join("out/image-2-1.png").exists());
    // What cannot be kept is told, and costs nothing else of the answer.
    bench.fixture.file("workspace/taken", "");
    let lost = call(&bench, &config, &["show.picture", "--output", "taken"]);
    assert_eq!(lost.expect(3).stdout, "a picture\n");
    assert!(lost.stderr.contains("[image, image/png, 9 bytes: not kept]"), "{}", lost.stderr);
    assert!(lost.stderr.contains("failed to write into taken: File exists"), "{}", lost.stderr);
    let half = "ulimit -f 0; exec \"$0\" \"$@\"";
    let words = ["call", "--config", &config, "show.picture", "--output", "half"];
    let mut limited = bench.command_of("/bin/sh".into(), ["-c", half]);
    let ran = Ran::of(limited.arg(bench.program()).args(words).output().unwrap());
    assert_eq!(ran.expect(3).stdout, "a picture\n");
    assert_eq!(std::fs::read_dir(bench.workspace.join("half")).unwrap().count(), 0);
    let structured = call(&bench, &config, &["show.structured"]);
    assert_eq!(structured.stdout, "{\"n\": 12345678901234567890123, \"z\": 1.1}\n");
}

#[test]
fn a_server_that_did_not_opt_in_gets_no_sandbox_keys() {
    let bench = Bench::new();
    let Some(config) = show_server(&bench) else { return };
    assert!(!call(&bench, &config, &["show.meta"]).stdout.contains("codex/"));
}

#[test]
fn broken_configurations_are_named_by_file_line_and_key() {
    let bench = Bench::new();
    let said = |text: &str| {
        let config = bench.configuration(text);
        call(&bench, &config, &["x.y"]).shown(&bench)
    };
    assert_snapshot!(said("[mcp_servers.x\n"), @r"
    exit 2
    error: failed to read FIXTURE/plenipo.toml:1: is not TOML: unclosed table, expected `]`
    ");
    assert_snapshot!(said("[mcp_servers.x]\ncomand = \"a\"\n"), @r"
    exit 2
    error: failed to read FIXTURE/plenipo.toml:2: `mcp_servers.x.comand` is not a known key
    hint: did you mean `command`?
    ");
    assert_snapshot!(said("[mcp_servers.x]\ncommand = \"a\"\nenabled = false\n"), @r"
    exit 2
    error: server `x` is disabled: `enabled = false`
    ");
    assert_snapshot!(said("[mcp_servers.x]\ncommand = \"/nonexistent/server\"\n"), @r"
    exit 3
    error: failed to start server `x`: program `/nonexistent/server` was not found
    hint: check the path in `command`
    ");
    let missing = bench.run(["call", "--config", "/nonexistent/plenipo.toml", "x.y"]);
    assert_snapshot!(missing.shown(&bench), @r"
    exit 2
    error: failed to read the configuration /nonexistent/plenipo.toml: No such file or directory (os error 2)
    ");
}

#[test]
fn global_options_stand_before_or_after_the_command() {
    let bench = Bench::new();
    let Some(config) = show_server(&bench) else { return };
    for words in [
        ["--config", &config, "call", "show.show", "text=t"],
        ["call", "--config", &config, "show.show", "text=t"],
        ["call", "show.show", "text=t", "--config", &config],
    ] {
        assert_eq!(shown(&bench.run(words)), json!({"text": "t"}));
    }
}

#[test]
fn the_root_directory_is_no_workspace_and_home_only_when_named() {
    let bench = Bench::new();
    let at_root =
        bench.command(["call", "workspace.run", "command=true"]).current_dir("/").output();
    Ran::of(at_root.unwrap()).expect(2);
    let at_home =
        bench.command(["call", "workspace.run", "command=true"]).current_dir(&bench.home).output();
    Ran::of(at_home.unwrap()).expect(2);
    let home = bench.home.display().to_string();
    bench.run(["call", "workspace.run", "command=true", "-C", &home]).expect(0);
}

#[test]
fn progress_keeps_a_call_alive_whoever_listens() {
    let bench = Bench::new();
    let Some(python) = python() else { return };
    let script =
        bench.fixture.file("trickle.py", std::fs::read(data("tests/data/trickle.py")).unwrap());
    let config = bench.configuration(&format!(
        "[mcp_servers.trickle]\ncommand = {python:?}\nargs = [{script:?}]\ntool_timeout_sec = 1\n"
    ));
    for words in [vec!["trickle.slow"], vec!["trickle.slow", "-v"]] {
        assert_eq!(call(&bench, &config, &words).expect(0).stdout, "done\n");
    }
}

#[test]
fn nobody_reading_stderr_changes_no_exit_code() {
    let bench = Bench::new();
    let full = || std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    for (words, code) in [
        (vec!["call", "nosuch.tool"], 2),
        (vec!["sandbox", "-P", ":nope", "--", "true"], 2),
        (vec!["sandbox", "--sandbox-state-json", "{", "--", "true"], 125),
        (vec!["call", "workspace.run", "command=true", "-v"], 0),
    ] {
        let mut command = bench.command(&words);
        let status = command.stderr(full()).stdout(std::process::Stdio::null()).status().unwrap();
        assert_eq!(status.code(), Some(code), "{words:?}");
    }
}

#[test]
fn nonsense_sizes_are_usage_errors() {
    let bench = Bench::new();
    for size in ["0", "-1", "many", "100"] {
        bench.run(["call", "workspace.run", "command=true", "--max-message-size", size]).expect(2);
    }
}

/// A server whose tool `big` answers with lines of text, 20 MiB of them.
fn big_server(bench: &Bench) -> Option<String> {
    const SERVER: &str = r#"
import json, sys
for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request:
        continue
    results = {
        "initialize": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "big", "version": "0"}},
        "tools/list": {"tools": [{"name": "big", "inputSchema": {"type": "object"}}]},
        "tools/call": {"content": [{"type": "text", "text": "0123456789 é\n" * 1_500_000}, {"type": "text", "text": "end"}]},
    }
    result = results.get(request["method"])
    answer = {"result": result} if result else {"error": {"code": -32601, "message": "no"}}
    print(json.dumps({"jsonrpc": "2.0", "id": request["id"], **answer}), flush=True)
"#;
    let python = python()?;
    let script = bench.fixture.file("big.py", SERVER);
    let text = format!("[mcp_servers.big]\ncommand = {python:?}\nargs = [{script:?}]\n");
    Some(bench.configuration(&text))
}

#[test]
fn a_large_result_is_whole_and_one_over_the_limit_names_it() {
    let bench = Bench::new();
    let Some(config) = big_server(&bench) else { return };
    let expected = "0123456789 é\n".repeat(1_500_000);
    let ran = call(&bench, &config, &["big.big", "--max-message-size", "64MiB"]);
    ran.expect(0);
    assert!(ran.stdout == format!("{expected}end\n"), "{} bytes", ran.stdout.len());
    let json = call(&bench, &config, &["big.big", "--max-message-size", "64MiB", "--json"]);
    json.expect(0);
    let answer: Value = serde_json::from_str(&json.stdout).unwrap();
    assert!(answer["result"]["content"][0]["text"] == expected);
    assert_eq!((&answer["tool"], &answer["is_error"]), (&json!("big"), &json!(false)));
    let refused = call(&bench, &config, &["big.big"]);
    refused.expect(4);
    assert!(refused.stderr.contains("16777216"), "{}", refused.stderr);
    assert!(refused.stderr.contains("--max-message-size"), "{}", refused.stderr);
    call(&bench, &config, &["big.big", "--max-message-size", "1MB"]).expect(2);
}
