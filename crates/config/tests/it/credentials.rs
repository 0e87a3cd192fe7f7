//! Where credentials are kept, and how a server's tokens are got.

use std::path::PathBuf;

use plenipo_config::{
    CredentialsConfig, CredentialsStore, GrantKind, OAuthConfig, Origin, Sealing, ServerConfig,
    TextSource, TransportSettings, parse,
};
use plenipo_connect::ServerName;
use plenipo_oauth::AuthenticationMethod;

fn credentials(text: &str) -> Result<Option<CredentialsConfig>, String> {
    let config = parse(text, "plenipo.toml", Origin::User).map_err(|fault| fault.to_string())?;
    Ok(config.credentials)
}

fn file(path: &str) -> TextSource {
    TextSource::File(PathBuf::from(path))
}

fn variable(name: &str) -> TextSource {
    TextSource::Variable(name.to_owned())
}

#[test]
fn each_store_has_the_keys_that_it_needs() {
    assert_eq!(credentials("launcher = \"/x\"").unwrap(), None);
    for (name, store) in [
        ("auto", CredentialsStore::Auto),
        ("keyring", CredentialsStore::Keyring),
        ("file", CredentialsStore::File),
    ] {
        let read = credentials(&format!("credentials_store = \"{name}\"")).unwrap().unwrap();
        assert_eq!((read.store, read.sealing, read.directory), (store, None, None));
        assert_eq!(store.as_str(), name);
    }
    let read = credentials(
        "credentials_store = \"file\"\n[credentials]\ndirectory = \"/srv/c\"\npassphrase_env_var = \"P\"",
    );
    let read = read.unwrap().unwrap();
    assert_eq!(read.directory, Some(PathBuf::from("/srv/c")));
    assert_eq!(read.sealing, Some(Sealing::Passphrase(variable("P"))));
    let read = credentials("[credentials]\nkey_file = \"/run/key\"").unwrap().unwrap();
    assert_eq!(
        (read.store, read.sealing),
        (CredentialsStore::Auto, Some(Sealing::Key(file("/run/key"))))
    );
    let read = credentials(
        "credentials_store = \"postgres\"\n[credentials]\nkey_env_var = \"K\"\ndatabase_url_file = \"/run/url\"",
    );
    let read = read.unwrap().unwrap();
    assert_eq!(read.database_url, Some(file("/run/url")));
    assert_eq!(read.sealing, Some(Sealing::Key(variable("K"))));
}

#[test]
fn keys_that_fit_no_store_are_faults() {
    for (text, expected) in [
        ("credentials_store = \"keychain\"", "should be one of auto, keyring, file, postgres"),
        ("credentials_store = 1", "should be a string, found integer"),
        ("[credentials]\npassphrase = \"x\"", "is not a known key"),
        (
            "[credentials]\npassphrase_env_var = \"P\"\nkey_env_var = \"K\"",
            "has both a passphrase and a key",
        ),
        ("[credentials]\nkey_env_var = \"K\"\nkey_file = \"/k\"", "is a second source of the same"),
        ("[credentials]\nkey_file = \"k\"", "should be an absolute path"),
        ("[credentials]\nkey_env_var = \"\"", "is not the name of an environment variable"),
        (
            "credentials_store = \"keyring\"\n[credentials]\ndirectory = \"/x\"",
            "has `directory`, which `credentials_store = \"keyring\"` does not take",
        ),
        (
            "[credentials]\ndatabase_url_env_var = \"U\"",
            "has `database_url_env_var`, which `credentials_store = \"auto\"` does not take",
        ),
        (
            "credentials_store = \"postgres\"\n[credentials]\nkey_env_var = \"K\"",
            "needs `database_url_env_var` or `database_url_file`",
        ),
        (
            "credentials_store = \"postgres\"\n[credentials]\ndatabase_url_env_var = \"U\"",
            "needs `key_env_var` or `key_file`",
        ),
    ] {
        let fault = credentials(text).unwrap_err();
        assert!(fault.contains(expected), "{text}: {fault}");
    }
    for key in ["credentials_store = \"file\"", "[credentials]\ndirectory = \"/x\""] {
        let fault = parse(key, "plenipo.toml", Origin::Project).unwrap_err().to_string();
        assert!(fault.contains("may not be set by a project's file"), "{fault}");
    }
}

fn server(oauth: &str, origin: Origin) -> Result<ServerConfig, String> {
    let text = format!("[mcp_servers.x]\nurl = \"https://x.example/mcp\"\noauth = {{ {oauth} }}\n");
    let config = parse(&text, "plenipo.toml", origin).unwrap();
    config.servers[&ServerName::new("x").unwrap()].clone().map_err(|fault| fault.to_string())
}

fn oauth(text: &str) -> Result<OAuthConfig, String> {
    match server(text, Origin::User)?.transport {
        TransportSettings::Http(http) => Ok(*http.oauth),
        _ => unreachable!("it has a url"),
    }
}

#[test]
fn every_way_to_get_a_token_can_be_configured() {
    let read = oauth(
        "grant = \"client_credentials\", client_id = \"c\", private_key_file = \"/run/key.pem\", \
         private_key_id = \"k1\", private_key_algorithm = \"ES256\", \
         token_endpoint_auth_method = \"private_key_jwt\", dpop = true",
    );
    let read = read.unwrap();
    assert_eq!(read.grant, GrantKind::ClientCredentials);
    assert_eq!(read.proof.private_key, Some(file("/run/key.pem")));
    assert_eq!(read.proof.method, Some(AuthenticationMethod::PrivateKeyJwt));
    assert_eq!(read.proof.private_key_id.as_deref(), Some("k1"));
    assert!(read.dpop);
    assert_eq!(read.files().count(), 1);

    let read = oauth("grant = \"jwt_bearer\", client_id = \"c\", assertion_file = \"/run/token\"");
    let read = read.unwrap();
    assert_eq!((read.grant, read.assertion), (GrantKind::JwtBearer, Some(file("/run/token"))));

    let read = oauth(
        "client_id = \"c\", client_secret_file = \"/run/s\", \
         token_endpoint_auth_method = \"client_secret_post\", callback_url = \"http://localhost:8765/back\"",
    );
    let read = read.unwrap();
    assert_eq!(read.proof.secret, Some(file("/run/s")));
    assert_eq!(read.callback_url.unwrap().as_str(), "http://localhost:8765/back");
    let read = oauth("client_id_metadata_document = \"https://x.example/client.json\"").unwrap();
    assert_eq!(read.client_id_metadata_document.as_deref(), Some("https://x.example/client.json"));
    assert_eq!(read.grant, GrantKind::AuthorizationCode);
}

#[test]
fn ways_that_do_not_fit_together_are_faults() {
    for (text, expected) in [
        (
            "grant = \"implicit\"",
            "should be one of authorization_code, client_credentials, jwt_bearer",
        ),
        ("client_secret_env_var = \"S\"", "but no `client_id`"),
        (
            "client_id = \"c\", client_secret_env_var = \"S\", private_key_env_var = \"K\"",
            "both a secret and a key",
        ),
        ("client_id = \"c\", private_key_id = \"k\"", "but names none"),
        ("token_endpoint_auth_method = \"none\"", "but no `client_id`"),
        ("client_id = \"c\", token_endpoint_auth_method = \"client_secret_post\"", "does not fit"),
        (
            "client_id = \"c\", client_secret_env_var = \"S\", token_endpoint_auth_method = \"none\"",
            "does not fit",
        ),
        ("client_id = \"c\", client_id_metadata_document = \"https://x/y\"", "a client has one id"),
        (
            "client_id_metadata_document = \"http://127.0.0.1/y\"",
            "should be an `https` URL with a path",
        ),
        ("grant = \"client_credentials\", client_id = \"c\"", "needs the client's secret or key"),
        ("grant = \"client_credentials\", client_secret_env_var = \"S\"", "but no `client_id`"),
        ("grant = \"jwt_bearer\", client_id = \"c\"", "needs an assertion"),
        (
            "assertion_file = \"/x\"",
            "needs an assertion for the grant `jwt_bearer`, and for no other",
        ),
        (
            "grant = \"client_credentials\", client_id = \"c\", client_secret_env_var = \"S\", callback_port = 1",
            "has a callback",
        ),
        ("callback_url = \"http://x.example:1/cb\"", "callback_url"),
        ("callback_url = \"http://127.0.0.1/cb\"", "with a port"),
        ("callback_url = \"https://x.example/cb?a=b\"", "without a query"),
        ("dpop = \"yes\"", "should be true or false"),
        ("private_key_file = \"key.pem\"", "should be an absolute path"),
        ("private_key_algorithm = \"HS256\"", "should be one of ES256, RS256, EdDSA"),
    ] {
        let fault = oauth(text).unwrap_err();
        assert!(fault.contains(expected), "{text}: {fault}");
    }
}

#[test]
fn a_fault_of_a_table_is_on_the_line_of_the_key_that_makes_it() {
    let text = "[mcp_servers.x]\nurl = \"https://x\"\n[mcp_servers.x.oauth]\ndpop = true\n\
                grant = \"client_credentials\"\n";
    let config = parse(text, "plenipo.toml", Origin::User).unwrap();
    let fault = config.servers.values().next().unwrap().as_ref().unwrap_err();
    assert_eq!((fault.line, fault.key.as_str()), (5, "mcp_servers.x.oauth"));
    let text = "[mcp_servers.x]\nurl = \"https://x\"\n[mcp_servers.x.oauth]\nclient_id = \"c\"\n\
                client_secret_file = \"/s\"\n";
    let config = parse(text, "plenipo.toml", Origin::Project).unwrap();
    let fault = config.servers.values().next().unwrap().as_ref().unwrap_err();
    assert_eq!((fault.line, fault.key.as_str()), (5, "mcp_servers.x.oauth.client_secret_file"));
    let text =
        "[account]\nissuer = \"https://i.example\"\nclient_id = \"c\"\nprivate_key_id = \"k\"\n";
    assert_eq!(parse(text, "plenipo.toml", Origin::User).unwrap_err().line, 4);
}

#[test]
fn a_project_names_no_files_of_secrets() {
    for oauth in [
        "client_id = \"c\", client_secret_file = \"/home/ada/.netrc\"",
        "client_id = \"c\", private_key_file = \"/home/ada/.ssh/id_ed25519\"",
        "grant = \"jwt_bearer\", client_id = \"c\", assertion_file = \"/home/ada/.netrc\"",
    ] {
        assert!(server(oauth, Origin::User).is_ok(), "{oauth}");
        let fault = server(oauth, Origin::Project).unwrap_err();
        assert!(fault.contains("may not be set by a project's file"), "{fault}");
    }
    assert!(server("client_id = \"c\", client_secret_env_var = \"S\"", Origin::Project).is_ok());
}

#[test]
fn a_client_secret_is_never_read_from_a_file() {
    for origin in [Origin::Managed, Origin::User, Origin::Project] {
        let text = "[mcp_servers.x]\nurl = \"https://x.example/mcp\"\n\
                    oauth = { client_id = \"c\", client_secret = \"hunter2\" }\n";
        let config = parse(text, "plenipo.toml", origin).unwrap();
        let fault = config.servers[&ServerName::new("x").unwrap()].as_ref().unwrap_err();
        let shown = fault.to_string();
        assert!(shown.contains("`mcp_servers.x.oauth.client_secret` is never read"), "{shown}");
        assert!(fault.hint().unwrap().contains("`client_secret_env_var`"), "{fault:?}");
        assert!(!format!("{shown} {fault:?}").contains("hunter2"), "{fault:?}");
    }
}

#[test]
fn a_value_in_the_place_of_a_variables_name_is_a_fault_that_does_not_show_it() {
    let http = "[mcp_servers.x]\nurl = \"https://x.example/mcp\"\n";
    let stdio = "[mcp_servers.x]\ncommand = \"x\"\n";
    for (before, key, after) in [
        (http, "bearer_token_env_var = ", ""),
        (http, "env_http_headers = { X-Api-Key = ", " }"),
        (http, "oauth = { client_id = \"c\", client_secret_env_var = ", " }"),
        (http, "oauth = { client_id = \"c\", private_key_env_var = ", " }"),
        (http, "oauth = { client_id = \"c\", grant = \"jwt_bearer\", assertion_env_var = ", " }"),
        (stdio, "env_vars = [", "]"),
        (stdio, "env_vars = [{ name = ", " }]"),
        ("[credentials]\n", "passphrase_env_var = ", ""),
    ] {
        let read = |value: &str| {
            let text = format!("{before}{key}{value:?}{after}\n");
            let config = parse(&text, "plenipo.toml", Origin::User)?;
            config.servers.into_values().next().transpose()
        };
        for value in ["Bearer sk-hunter2", "sk-hunter2", "1hunter2", "hunter2=", ""] {
            let fault = read(value).unwrap_err();
            let shown = format!("{fault} {fault:?}");
            assert!(shown.contains("is not the name of an environment variable"), "{shown}");
            assert!(!shown.contains("hunter2"), "{key}: {shown}");
        }
        for value in ["TOKEN", "_token_2"] {
            assert!(read(value).is_ok(), "the control: {key}");
        }
    }
}

#[test]
fn a_project_holds_no_credential_itself() {
    let read = |headers: &str, origin: Origin| {
        let text = format!("[mcp_servers.x]\nurl = \"https://x.example/mcp\"\n{headers}\n");
        let config = parse(&text, "plenipo.toml", origin).unwrap();
        config.servers[&ServerName::new("x").unwrap()].clone().map_err(|fault| fault.to_string())
    };
    for (name, value) in [
        ("Authorization", "Bearer hunter2"),
        ("authorization", "Bearer hunter2"),
        ("Authorization", "Bearer ${NOBODY_SETS_THIS:-hunter2}"),
        ("Authorization", "Bearer hunter2${HOME:-}"),
        ("Authorization", "${SCHEME}hunter2"),
        ("X-Api-Key", "hunter2"),
        ("X-Foo", "Bearer hunter2"),
        ("X-Foo", "basic hunter2${HOME:-}"),
        ("X-Foo", "${SCHEME:-DPoP hunter2}"),
        ("X-Auth-Token", "${TOKEN:-hunter2}"),
        ("Proxy-Authorization", "Basic hunter2"),
        ("Cookie", "sid=hunter2"),
        ("Cookie", "sid=${SID}hunter2"),
    ] {
        let written = format!("http_headers = {{ {name} = \"{value}\" }}");
        assert!(read(&written, Origin::User).is_ok());
        let fault = read(&written, Origin::Project).unwrap_err();
        assert!(fault.contains("holds a credential") && !fault.contains("hunter2"), "{fault}");
    }
    for fine in [
        "http_headers = { Authorization = \"Bearer ${TOKEN}\" }",
        "http_headers = { Authorization = \"${TOKEN:-}\" }",
        "env_http_headers = { Authorization = \"TOKEN\" }",
        "bearer_token_env_var = \"TOKEN\"",
        "http_headers = { X-Team = \"blue\" }",
        "http_headers = { X-Foo = \"Bearer ${TOKEN}\" }",
        "http_headers = { Cookie = \"sid=${SID}; theme=${THEME}\" }",
        "http_headers = { X-Api-Key = \"${KEY}\" }",
    ] {
        assert!(read(fine, Origin::Project).is_ok(), "{fine}");
    }
    for origin in [Origin::User, Origin::Project] {
        let fault = read("bearer_token = \"hunter2\"", origin).unwrap_err();
        assert!(
            fault.contains("is never read from a file") && !fault.contains("hunter2"),
            "{fault}"
        );
    }
}
