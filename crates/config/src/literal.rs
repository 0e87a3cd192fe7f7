//! Credentials that stand in a configuration as they are, where others can see them.
//!
//! A text is taken for one by the name that goes with it (`--api-key`, `?token=`), or by what tokens of well-known issuers
//! begin with. What only stands for one (`<your token>`), a path, a switch or a short word is none.

use crate::error::ConfigError;
use crate::template::Template;

/// What a name ends in whose value is a credential.
const NAMES: [&str; 19] = [
    "token",
    "secret",
    "password",
    "passwd",
    "passphrase",
    "apikey",
    "api_key",
    "access_key",
    "secret_key",
    "private_key",
    "auth_key",
    "account_key",
    "subscription_key",
    "service_key",
    "credential",
    "credentials",
    "authorization",
    "bearer",
    "pat",
];
/// What tokens begin with, and how long they are at least.
const PREFIXES: [(&str, usize); 17] = [
    ("ghp_", 30),
    ("gho_", 30),
    ("ghs_", 30),
    ("ghu_", 30),
    ("github_pat_", 30),
    ("glpat-", 20),
    ("xoxb-", 20),
    ("xoxp-", 20),
    ("xapp-", 20),
    ("sk-", 30),
    ("sk_live_", 20),
    ("AKIA", 20),
    ("AIza", 35),
    ("hf_", 30),
    ("npm_", 30),
    ("pypi-", 50),
    ("eyJ", 60),
];
/// What is in a text that only stands for a credential.
const STANDINS: [&str; 9] =
    ["your", "example", "changeme", "placeholder", "xxxx", "...", "…", "<", "insert"];
/// Nobody's credential is shorter.
const SHORTEST: usize = 8;

/// In the arguments of a program: every user of the machine sees them.
pub(crate) fn of_arguments(args: &[Template]) -> Vec<ConfigError> {
    let texts: Vec<String> = args.iter().map(Template::own_text).collect();
    let before = std::iter::once("").chain(texts.iter().map(String::as_str));
    let found = args.iter().zip(&texts).zip(before).filter_map(|((arg, text), before)| {
        let option = before.starts_with('-') && !before.contains('=');
        let what = match text.split_once('=') {
            Some((name, value)) if is_name(name) && is_value(value) => name.to_owned(),
            _ if option && is_name(before) && is_value(text) && !text.starts_with('-') => {
                before.to_owned()
            }
            _ => in_url(text).or_else(|| is_token(text).then(|| "it".to_owned()))?,
        };
        let mut warning = arg.fault(format!(
            "has a credential ({}), which every user of this machine sees in the list of processes",
            named(&what)
        ));
        warning.hint =
            Some("use `env_vars` or `env`, if the server takes it from there".to_owned());
        Some(warning)
    });
    found.collect()
}

/// In a URL, which is logged on the way.
pub(crate) fn of_url(url: &Template) -> Option<ConfigError> {
    let text = url.own_text();
    let in_path = || text.split(['/', '?', '&', '=']).any(is_token).then(|| "it".to_owned());
    let what = in_url(&text).or_else(in_path)?;
    let mut warning =
        url.fault(format!("has a credential ({}), which ends in logs on the way", named(&what)));
    warning.hint = Some(
        "send it in a header, by `bearer_token_env_var` or `env_http_headers`, if the server takes it from there"
            .to_owned(),
    );
    Some(warning)
}

/// In a variable of a project's file.
pub(crate) fn of_project_variable(name: &str, value: &Template) -> Option<ConfigError> {
    let text = value.own_text();
    if !(is_name(name) && is_value(&text) || is_token(&text)) {
        return None;
    }
    let mut warning =
        value.fault("has a credential, in a project's file, which goes where the project goes");
    warning.hint =
        Some(format!("set it in your own environment, and write `env_vars = [{name:?}]`"));
    Some(warning)
}

fn named(what: &str) -> String {
    match what.trim_start_matches('-') {
        "it" => "by what it begins with".to_owned(),
        name => format!("`{}`", plenipo_connect::text::shown(name)),
    }
}

/// The name of a query's member, or `user`, with a credential.
fn in_url(text: &str) -> Option<String> {
    let (_, rest) = text.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if let Some((user, _)) = authority.rsplit_once('@')
        && user.split_once(':').is_some_and(|(_, password)| is_standing(password))
    {
        return Some("user".to_owned());
    }
    let (_, query) = rest.split_once('?')?;
    let mut members = query.split(['&', '#']).filter_map(|member| member.split_once('='));
    let is_secret = |name: &str| is_name(name) || name.eq_ignore_ascii_case("key");
    members
        .find(|(name, value)| is_secret(name) && is_value(value))
        .map(|(name, _)| name.to_owned())
}

fn is_name(name: &str) -> bool {
    let name = name.trim_start_matches('-').to_ascii_lowercase().replace(['-', '.'], "_");
    let ends = |end: &&str| {
        let before = name.strip_suffix(*end);
        before.is_some_and(|before| before.is_empty() || before.ends_with('_'))
    };
    NAMES.iter().any(ends) || name.ends_with("token") || name.ends_with("apikey")
}

fn is_value(text: &str) -> bool {
    let text = text.trim();
    let is_elsewhere = ["/", "./", "../", "~", "@"].iter().any(|start| text.starts_with(start));
    let is_word = text.bytes().all(|byte| byte.is_ascii_lowercase() || b"-_ ".contains(&byte));
    text.len() >= SHORTEST
        && !is_elsewhere
        && !text.contains("://")
        && (!is_word || text.len() >= 20)
        && is_standing(text)
}

/// Not empty, and not in the place of something else.
fn is_standing(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    !text.is_empty() && !text.contains("${") && !STANDINS.iter().any(|it| lower.contains(it))
}

fn is_token(text: &str) -> bool {
    let text = text.trim();
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.=".contains(&byte);
    PREFIXES.iter().any(|(start, least)| text.starts_with(start) && text.len() >= *least)
        && text.bytes().all(plain)
        && is_standing(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_known_by_their_names() {
        for name in [
            "--token",
            "--api-key",
            "GITHUB_PERSONAL_ACCESS_TOKEN",
            "apikey",
            "accessToken",
            "DB_PASSWORD",
        ] {
            assert!(is_name(name), "{name}");
        }
        for name in [
            "--token-limit",
            "--key",
            "--author",
            "AUTH_MODE",
            "--public-key",
            "TOKEN_FILE",
            "KEYBOARD",
            "TOKENIZERS_PARALLELISM",
            "--path",
            "compat",
            "",
        ] {
            assert!(!is_name(name), "{name}");
        }
    }

    #[test]
    fn what_stands_for_a_credential_is_none() {
        for text in ["s3cr3t-s3cr3t", "0123456789", "correct horse battery staple"] {
            assert!(is_value(text), "{text}");
        }
        for text in [
            "",
            "true",
            "none",
            "<YOUR_TOKEN>",
            "your-api-key-here",
            "${input:key}",
            "/run/secrets/token",
            "~/token",
            "https://a.example/token",
            "keyring",
            "from-environment",
            "xxxxxxxxxxxx",
        ] {
            assert!(!is_value(text), "{text}");
        }
        assert!(is_token(&format!("ghp_{}", "a1".repeat(18))));
        assert!(!is_token("sk-learn") && !is_token(&format!("ghp_{}", "x".repeat(36))));
    }

    #[test]
    fn a_url_holds_one_in_its_query_or_before_its_host() {
        let found = |text: &str| in_url(text);
        assert_eq!(
            found("https://a.example/mcp?x=1&api_key=s3cr3t-s3cr3t"),
            Some("api_key".to_owned())
        );
        assert_eq!(found("https://a.example/mcp?key=s3cr3t-s3cr3t"), Some("key".to_owned()));
        assert_eq!(found("postgresql://ada:s3cr3t@db/notes"), Some("user".to_owned()));
        for text in [
            "https://a.example/mcp?page_token=",
            "postgresql://ada@db/x",
            "https://a/?token=${T}",
            "a?token=s3cr3t-s3cr3t",
        ] {
            assert_eq!(found(text), None, "{text}");
        }
    }
}
