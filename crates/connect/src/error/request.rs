//! Requests in words.

use plenipo_wire::protocol::methods;

/// What a request does, fit to be followed by "of server …".
pub(super) fn doing(method: &str, subject: &str) -> String {
    match method {
        methods::RESOURCES_LIST => "list the resources".to_owned(),
        methods::RESOURCE_TEMPLATES_LIST => "list the resource templates".to_owned(),
        methods::RESOURCES_READ => format!("read resource `{subject}`"),
        methods::DIRECTORY_READ => format!("list directory `{subject}`"),
        methods::PROMPTS_LIST => "list the prompts".to_owned(),
        methods::PROMPTS_GET => format!("fill in prompt `{subject}`"),
        methods::COMPLETE => format!("complete argument `{subject}`"),
        methods::SKILLS_LIST => "list the skills".to_owned(),
        methods::SKILLS_GET => format!("look up skill `{subject}`"),
        methods::TASKS_GET | methods::TASKS_RESULT => format!("follow task `{subject}`"),
        methods::TASKS_UPDATE => format!("answer task `{subject}`"),
        methods::TASKS_CANCEL => format!("cancel task `{subject}`"),
        _ => format!("ask `{method}`"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_named_by_what_it_does() {
        assert_eq!(doing("resources/read", "a:"), "read resource `a:`");
        assert_eq!(doing("new/method", ""), "ask `new/method`");
    }
}
