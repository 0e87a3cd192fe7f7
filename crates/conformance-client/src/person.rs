//! Stands for the person at a host: says yes to forms and gives everything else its plainest answer.

use plenipo_connect::input::{
    InputAnswer, InputFuture, InputHandler, InputKind, InputOffer, InputRefusal, InputRequest, Root,
};
use plenipo_wire::Fragment;

use crate::sample;

#[derive(Debug)]
pub(crate) struct Person;

impl InputHandler for Person {
    fn offers(&self) -> InputOffer {
        let mut offer = InputOffer::ELICITATION;
        offer.sampling = true;
        offer.roots = true;
        offer
    }

    fn answer<'a>(
        &'a self,
        request: &'a InputRequest,
    ) -> InputFuture<'a, Result<InputAnswer, InputRefusal>> {
        Box::pin(std::future::ready(answer(request)))
    }
}

fn answer(request: &InputRequest) -> Result<InputAnswer, InputRefusal> {
    println!("asked: {}", request.params);
    match &request.kind {
        // What is not required is left to the form's defaults.
        InputKind::Form { .. } => Ok(InputAnswer::Accept(Some(sample::form(&request.params)))),
        InputKind::Url { .. } => Ok(InputAnswer::Decline),
        InputKind::Sampling { .. } => {
            let message = r#"{"role":"assistant","content":{"type":"text","text":"sample"},"model":"none","stopReason":"endTurn"}"#;
            let message = Fragment::parse(message);
            message.map(InputAnswer::Message).map_err(|_| InputRefusal::new("no message"))
        }
        InputKind::Roots => Ok(InputAnswer::Roots(vec![Root::new("file:///", None)])),
        _ => Err(InputRefusal::new("a question of another kind")),
    }
}
