//! What is done in each scenario.

use plenipo_connect::{Lookup, Tool};
use plenipo_wire::{Fragment, object};

use crate::Outcome;
use crate::host::Host;
use crate::situation::Situation;

/// Connects, does what the scenario wants to see done, and leaves.
pub(crate) async fn play(situation: &Situation) -> Outcome {
    let host = Host::connect(situation).await?;
    let outcome = act(situation, &host).await;
    host.leave().await;
    outcome
}

async fn act(situation: &Situation, host: &Host) -> Outcome {
    match situation.scenario.as_str() {
        "http-custom-headers" => calls_of_context(situation, host).await,
        "json-schema-2020-12-preservation" => echo_schema(host).await,
        // Its server offers a tool and answers no call.
        "json-schema-ref-no-deref" => host.catalog().await.map(drop).map_err(Into::into),
        "sep-2640-client-no-prefetch" => host.skills().await.map(drop).map_err(Into::into),
        name if name.starts_with("sep-2640-client-") => every_skill(host).await,
        _ => everything(host).await,
    }
}

/// Everything the server offers, each once.
async fn everything(host: &Host) -> Outcome {
    for tool in host.catalog().await?.tools() {
        host.call_sample(tool).await?;
    }
    host.read_resources().await?;
    host.fill_in_prompts().await
}

/// Every skill, loaded and read whole.
async fn every_skill(host: &Host) -> Outcome {
    for skill in host.skills().await? {
        host.use_skill(&skill).await?;
    }
    Ok(())
}

/// The context says which tools to call, and how.
async fn calls_of_context(situation: &Situation, host: &Host) -> Outcome {
    let calls = situation.context("toolCalls").and_then(object::items);
    host.catalog().await?;
    for call in calls.ok_or("find `toolCalls` in the context")? {
        let [name, arguments] = object::select(call, ["name", "arguments"]).unwrap_or_default();
        let name = name.and_then(object::text).ok_or("read the name of a call")?;
        host.call(&name, Fragment::from_raw(arguments.ok_or("read the arguments of a call")?))
            .await?;
    }
    Ok(())
}

/// Gives a tool's schema back as an argument, as it was listed.
async fn echo_schema(host: &Host) -> Outcome {
    let catalog = host.catalog().await?;
    let Lookup::Found(tool) = catalog.find("json_schema_2020_12_tool") else {
        return Err("find the tool whose schema is echoed".into());
    };
    let schema = Fragment::from_raw(Tool::view(tool)?.input_schema);
    let arguments = Fragment::object(|arguments| arguments.fragment("schema", &schema));
    host.call("json_schema_echo", arguments).await?;
    Ok(())
}
