//! Servers that a company manages: whole, pinned, and never a project's.

use plenipo_config::{Config, ConfigError, Origin, TransportSettings, parse};

const ACCOUNT: &str = "[account]\nissuer = \"https://i.example\"\nclient_id = \"c\"\n";
const IDP: &str = r#"
[mcp_enterprise_managed_auth.idp]
issuer = "https://login.example.com"
client_id = "plenipo"
"#;
const SERVER: &str = r#"
[mcp_servers.crm]
url = "https://crm.example.com/mcp"
auth = "enterprise"
scopes = ["crm.read"]
oauth_resource = "https://crm.example.com/mcp"
oauth = { client_id = "plenipo-crm", authorization_server_issuer = "https://auth.crm.example.com" }
"#;

fn read(text: &str, origin: Origin) -> Result<Config, ConfigError> {
    parse(text, "plenipo.toml", origin)
}

/// The fault of the one server.
fn fault(text: &str) -> String {
    let config = read(text, Origin::User).unwrap();
    let (_, server) = config.servers.first_key_value().unwrap();
    server.as_ref().unwrap_err().to_string()
}

fn changed(from: &str, to: &str) -> String {
    assert!(SERVER.contains(from), "{from}");
    SERVER.replace(from, to)
}

#[test]
fn ema_a_server_of_the_company() {
    for word in ["enterprise", "ema_auth"] {
        let text = format!("{IDP}{}", changed("\"enterprise\"", &format!("\"{word}\"")));
        let config = read(&text, Origin::Managed).unwrap();
        let provider = config.identity_provider.as_ref().unwrap();
        assert_eq!(provider.issuer.as_str(), "https://login.example.com");
        assert_eq!(provider.client_id, "plenipo");
        let (_, server) = config.servers.first_key_value().unwrap();
        let TransportSettings::Http(http) = &server.as_ref().unwrap().transport else { panic!() };
        assert!(http.enterprise.is_some());
        assert!(!http.may_sign_in(), "nobody signs in to it");
    }
    let plain = read(&changed("\"enterprise\"", "\"oauth\""), Origin::User).unwrap();
    let (_, server) = plain.servers.first_key_value().unwrap();
    let TransportSettings::Http(http) = &server.as_ref().unwrap().transport else { panic!() };
    assert!(http.enterprise.is_none() && http.may_sign_in());
}

#[test]
fn ema_the_section_is_whole_or_not_at_all() {
    for (text, expected) in [
        ("issuer = \"https://i.example\"", "has no `client_id`"),
        ("client_id = \"c\"", "has no `issuer`"),
        ("issuer = \"http://i.example\"\nclient_id = \"c\"", "not encrypted"),
        ("issuer = \"https://i.example\"\nclient_id = \"\"", "is empty"),
        ("issuer = \"https://i.example\"\nclient_id = \"c\"\nclient = 1", "not a known key"),
        (
            "issuer = \"https://i.example\"\nclient_id = \"c\"\ntoken_endpoint_auth_method = \"client_secret_post\"",
            "does not fit",
        ),
        (
            "issuer = \"https://i.example\"\nclient_id = \"c\"\nclient_secret_file = \"/s\"\nprivate_key_file = \"/k\"",
            "both a secret and a key",
        ),
        ("issuer = \"https://i.example\"\nclient_id = \"c\"\nprivate_key_id = \"k\"", "names none"),
    ] {
        for section in ["mcp_enterprise_managed_auth.idp", "account"] {
            let error = read(&format!("[{section}]\n{text}"), Origin::User).unwrap_err();
            let shown = error.to_string();
            assert!(shown.contains(expected), "{text}: {shown}");
            assert!(!format!("{shown} {error:?}").contains("hunter2"));
        }
    }
    let error = read("[mcp_enterprise_managed_auth]\n", Origin::User).unwrap_err();
    assert!(error.to_string().contains("has no `idp`"), "{error}");
}

#[test]
fn ema_no_secret_is_read_from_a_configuration_file() {
    for (section, key) in [(IDP, "mcp_enterprise_managed_auth.idp"), (ACCOUNT, "account")] {
        for origin in [Origin::User, Origin::Managed] {
            let error =
                read(&format!("{section}client_secret = \"hunter2\"\n"), origin).unwrap_err();
            let shown = error.to_string();
            assert!(shown.contains(&format!("{key}.client_secret` is never read")), "{shown}");
            assert!(error.hint().unwrap().contains("`client_secret_file`"));
            assert!(!format!("{shown} {error:?}").contains("hunter2"));
            // The control.
            read(&format!("{section}client_secret_env_var = \"S\"\n"), origin).unwrap();
        }
    }
}

#[test]
fn ema_a_project_may_set_none_of_it() {
    for section in [IDP, ACCOUNT] {
        let error = read(section, Origin::Project).unwrap_err().to_string();
        assert!(error.contains("may not be set by a project's file"), "{error}");
    }
    let config = read(SERVER, Origin::Project).unwrap();
    let (_, server) = config.servers.first_key_value().unwrap();
    let error = server.as_ref().unwrap_err().to_string();
    assert!(error.contains("mcp_servers.crm.auth") && error.contains("project's file"), "{error}");
}

#[test]
fn ema_everything_about_a_server_of_the_company_is_pinned() {
    let with = |more: &str| format!("{SERVER}{more}\n");
    for (text, expected) in [
        (with("bearer_token_env_var = \"T\""), "and `bearer_token_env_var`"),
        (with("http_headers = { X = \"1\" }"), "and `http_headers`"),
        (with("env_http_headers = { X = \"Y\" }"), "and `env_http_headers`"),
        (with("http_headers_helper = [\"/bin/h\"]"), "and `http_headers_helper`"),
        (changed("client_id = \"plenipo-crm\", ", ""), "no `oauth.client_id`"),
        (
            changed(
                "authorization_server_issuer = \"https://auth.crm.example.com\"",
                "client_secret_env_var = \"S\"",
            ),
            "no `oauth.authorization_server_issuer`",
        ),
        (
            changed("client_id = \"plenipo-crm\"", "client_id = \"p\", callback_port = 1"),
            "a callback",
        ),
        (changed("\"enterprise\"", "\"oauth\"") + "enterprise = {}\n", "but not `auth"),
        (changed("\"enterprise\"", "\"sso\""), "should be one of"),
        (with("enterprise = { assertion = \"plain\" }"), "should be one of signed, encrypted"),
        (with("enterprise = { algorithms = [] }"), "is empty"),
        (with("enterprise = { algorithms = [\"HS256\"] }"), "should hold some of"),
        (with("enterprise = { max_token_lifetime_sec = 301 }"), "300 seconds at most"),
        (with("enterprise = { skip = true }"), "not a known key"),
        (
            "[mcp_servers.x]\ncommand = \"x\"\nauth = \"enterprise\"\n".to_owned(),
            "is not supported for a server with `command`",
        ),
    ] {
        let shown = fault(&text);
        assert!(shown.contains(expected), "{text}: {shown}");
    }
    let text = with(
        "enterprise = { assertion = \"encrypted\", algorithms = [\"ES256\"], max_token_lifetime_sec = 60 }",
    );
    let config = read(&text, Origin::User).unwrap();
    let (_, server) = config.servers.first_key_value().unwrap();
    let TransportSettings::Http(http) = &server.as_ref().unwrap().transport else { panic!() };
    let enterprise = http.enterprise.as_ref().unwrap();
    assert!(enterprise.encrypted);
    assert_eq!(enterprise.max_lifetime, Some(std::time::Duration::from_secs(60)));
}
