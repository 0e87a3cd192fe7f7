//! Skills: nothing early, nothing unverified.

use plenipo_connect::{Connection, ErrorKind, Fault, RequestOptions, SkillFault};

use crate::web::{Answer, Seen, Web};

const TEXT: &str = "---\nname: pdf\ndescription: Fill in forms\n---\n\nDo it.\n";
const FORMS: &str = "forms\n";

fn digest(text: &str) -> String {
    use sha2::Digest as _;
    sha2::Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn entry(description: &str, text: &str) -> String {
    format!(
        r#"{{"uri":"skill://pdf/SKILL.md","frontmatter":{{"name":"pdf","description":"{description}"}},"resources":[
        {{"uri":"skill://pdf/SKILL.md","digest":"sha256:{}","size":{}}},
        {{"uri":"skill://pdf/FORMS.md","digest":"sha256:{}","size":{}}}],"new":1.10}}"#,
        digest(text),
        text.len(),
        digest(FORMS),
        FORMS.len()
    )
}

/// Lists `entry` and gives `text` for its `SKILL.md`.
async fn server(entry: String, text: &'static str) -> Web {
    Web::modern(move |seen: &Seen| {
        let result = match seen.method()?.as_str() {
            "server/discover" => {
                r#"{"supportedVersions":["2026-07-28"],"capabilities":{"resources":{},"extensions":{"io.modelcontextprotocol/skills":{}}}}"#.to_owned()
            }
            "skills/list" => format!(r#"{{"skills":[{entry},{{"uri":"bad"}}]}}"#),
            "skills/get" => format!(r#"{{"skill":{entry}}}"#),
            "resources/read" => {
                let uri = crate::support::member(&seen.params()?, "uri")?;
                let text = if uri.ends_with("SKILL.md") { text } else { FORMS };
                let text = plenipo_wire::Fragment::string(text);
                format!(r#"{{"contents":[{{"uri":"{uri}","text":{text}}}]}}"#)
            }
            _ => return None,
        };
        Some(Answer::json(&seen.result(&result)))
    })
    .await
}

async fn connect(web: &Web) -> Connection {
    web.connect().await.unwrap()
}

#[tokio::test]
async fn a_skill_is_listed_loaded_and_its_files_are_read() {
    let web = server(entry("Fill in forms", TEXT), TEXT).await;
    let connection = connect(&web).await;
    let options = RequestOptions::default();
    let listed = connection.skills(&options).await.unwrap();
    assert_eq!((listed.items.len(), listed.dropped.len()), (1, 1), "a bad entry drops alone");
    assert!(listed.items[0].raw().as_str().contains("1.10"));
    let skill = connection.skill("skill://pdf/SKILL.md", &options).await.unwrap();
    assert_eq!(skill, listed.items[0]);
    assert_eq!(web.count("resources/read"), 0, "nothing is fetched ahead of need");
    let loaded = connection.load_skill(&skill, &options).await.unwrap();
    assert_eq!(loaded.text(), TEXT);
    let forms = loaded.resolve("FORMS.md").unwrap();
    let bytes = connection.read_skill_file(&loaded, &forms, &options).await.unwrap();
    assert_eq!(bytes, FORMS.as_bytes());
    let error = connection.read_skill_file(&loaded, "skill://pdf/new.md", &options).await;
    let error = error.unwrap_err();
    assert!(matches!(error.fault(), Fault::Skill(SkillFault::Unlisted { .. })));
    assert_eq!(error.kind(), ErrorKind::Refused);
    assert_eq!(web.count("resources/read"), 2, "what is not listed is not asked for");
}

#[tokio::test]
async fn what_is_not_what_its_entry_says_is_not_given_out() {
    let evil = "---\nname: pdf\ndescription: Fill in forms\n---\n\nNo it.\n";
    let longer = "---\nname: pdf\ndescription: Fill in forms\n---\n\nDo it.\nAnd more.\n";
    let other = "---\nname: pdf\ndescription: Send all files\n---\n\nDo it.\n";
    let load = async |entry: String, text: &'static str| {
        let web = server(entry, text).await;
        let connection = connect(&web).await;
        let options = RequestOptions::default();
        let skill = connection.skill("skill://pdf/SKILL.md", &options).await.unwrap();
        match connection.load_skill(&skill, &options).await {
            Ok(_) => None,
            Err(error) => match error.fault() {
                Fault::Skill(fault) => Some(fault.to_string()),
                other => panic!("{other}"),
            },
        }
    };
    let good = || entry("Fill in forms", TEXT);
    assert_eq!(load(good(), TEXT).await, None);
    let said = [
        load(good(), evil).await,
        load(good(), longer).await,
        load(entry("Fill in forms", other), other).await,
        load(good().replace('[', "\"dynamic\",\"was\":["), TEXT).await,
    ];
    insta::assert_snapshot!(said.map(Option::unwrap).join("\n"), @r"
    `skill://pdf/SKILL.md` is not what its entry says (SHA-256)
    `skill://pdf/SKILL.md` has 63 bytes, and its entry says 53
    its frontmatter is not what its entry says: `description` differs
    its content is dynamic, so that nothing can be verified
    ");
}
