//! Prompts and suggestions.

use plenipo_connect::{CompletionReference, Fault, RequestOptions};
use plenipo_wire::{object, views::ContentBlock};

use crate::web::{Answer, Seen, Web};

fn answer(seen: &Seen) -> Option<Answer> {
    let result = match seen.method()?.as_str() {
        "server/discover" => {
            r#"{"supportedVersions":["2026-07-28"],"capabilities":{"prompts":{},"completions":{}}}"#
        }
        "prompts/list" => {
            r#"{"prompts":[{"name":"review","arguments":[{"name":"language","required":true}],"new":1.10},{"title":"no name"}]}"#
        }
        "prompts/get" => {
            r#"{"messages":[{"role":"user","content":{"type":"text","text":"Review."}}],"tools":[],"new":1.10}"#
        }
        "completion/complete" => r#"{"completion":{"values":["rust","ruby"],"hasMore":true}}"#,
        _ => return None,
    };
    Some(Answer::json(&seen.result(result)))
}

#[tokio::test]
async fn prompts_are_listed_filled_in_and_completed() {
    let web = Web::modern(answer).await;
    let connection = web.connect().await.unwrap();
    let options = RequestOptions::default();
    let listed = connection.prompts(&options).await.unwrap();
    assert_eq!((listed.items.len(), listed.dropped.len()), (1, 1));
    let prompt = &listed.items[0];
    assert!(prompt.view().unwrap().arguments[0].required);
    assert!(prompt.raw().as_str().contains("1.10"));

    let filled = connection.prompt(prompt.name(), &[("language", "R\"")], &options).await.unwrap();
    let view = filled.view().unwrap();
    assert!(
        matches!(&view.messages[0].content[..], [ContentBlock::Text(text)] if text == "Review.")
    );
    assert!(filled.result().get().contains("1.10"));
    let sent = &web.of("prompts/get")[0];
    assert_eq!(sent.header("mcp-name"), Some("review"));
    let arguments = object::member(&sent.params().unwrap(), "arguments").unwrap().get().to_owned();
    assert_eq!(arguments, r#"{"language":"R\""}"#);

    let reference = CompletionReference::Prompt("review");
    let found = connection.complete(reference, ("language", "ru"), &[("style", "short")], &options);
    let found = found.await.unwrap();
    assert_eq!(found.view().unwrap().values, ["rust", "ruby"]);
    let sent = &web.of("completion/complete")[0];
    assert_eq!(sent.header("mcp-name"), None);
    let params = sent.params().unwrap();
    let [reference, argument, context] =
        object::select(&params, ["ref", "argument", "context"]).unwrap();
    assert_eq!(reference.unwrap().get(), r#"{"type":"ref/prompt","name":"review"}"#);
    assert_eq!(argument.unwrap().get(), r#"{"name":"language","value":"ru"}"#);
    assert_eq!(context.unwrap().get(), r#"{"arguments":{"style":"short"}}"#);
}

#[tokio::test]
async fn a_server_without_suggestions_is_not_asked() {
    let web = Web::modern(|_| None).await;
    let connection = web.connect().await.unwrap();
    let reference = CompletionReference::Resource("file:///{path}");
    let error = connection.complete(reference, ("path", ""), &[], &RequestOptions::default()).await;
    assert!(matches!(error.unwrap_err().fault(), Fault::NotOffered { capability: "completions" }));
    assert_eq!(web.log(), ["server/discover"]);
}
