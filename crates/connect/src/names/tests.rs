use std::collections::HashSet;

use proptest::prelude::*;

use super::*;
use crate::catalog::{Catalog, Tool, ToolFilter};
use crate::server_name::ServerName;

fn catalog(tools: &[&str]) -> Arc<Catalog> {
    let listed = tools.iter().map(|name| Tool::fake(name)).collect();
    Arc::new(Catalog::new(1, listed, Vec::new(), ToolFilter::default()))
}

fn index(servers: &[(&str, &[&str])], rules: &NameRules) -> ToolIndex {
    let named =
        servers.iter().map(|(name, tools)| (ServerName::new(name).unwrap(), catalog(tools)));
    ToolIndex::new(named, rules)
}

fn shown(index: &ToolIndex) -> String {
    let line = |tool: IndexedTool<'_>| format!("{} {}\n", tool.qualified(), tool.model_name());
    index.tools().map(line).collect()
}

#[test]
fn model_names_are_what_every_model_takes() {
    let long = "x".repeat(70);
    let tools = ["echo.it", "", "déjà vu", "a/b:c", "读取", &long];
    let index = index(&[("probe-x", &tools)], &NameRules::default());
    insta::assert_snapshot!(shown(&index), @r#"
    probe-x.echo.it mcp__probe_x__echo_it
    probe-x. mcp__probe_x___
    probe-x.déjà vu mcp__probe_x__d_j__vu
    probe-x.a/b:c mcp__probe_x__a_b_c
    probe-x.读取 mcp__probe_x____
    probe-x.xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx mcp__probe_x__xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx_f88d99427ac8
    "#);
    for tool in index.tools() {
        let name = tool.model_name();
        assert!(name.as_str().len() <= 64, "{name}");
        assert_eq!(format!("{}__{}", name.namespace(), name.name()), name.as_str());
        assert_eq!(name.namespace(), "mcp__probe_x");
    }
}

#[test]
fn name_collision_disambiguated() {
    let servers: [(&str, &[&str]); 6] = [
        ("my-srv", &["a.b", "a_b", "a-b", "c"]),
        ("my_srv", &["c"]),
        ("a", &["b-c", "b__c"]),
        ("a__b", &["c"]),
        ("a.b", &["c"]),
        ("A", &["b-c"]),
    ];
    let whole = index(&servers, &NameRules::default());
    insta::assert_snapshot!(shown(&whole), @r#"
    my-srv.a.b mcp__my_srv_e26a7ab08730__a_b_36120b644834
    my-srv.a_b mcp__my_srv_e26a7ab08730__a_b_7a7f6a72c5c9
    my-srv.a-b mcp__my_srv_e26a7ab08730__a_b_5ce0f00f1085
    my-srv.c mcp__my_srv_e26a7ab08730__c
    my_srv.c mcp__my_srv_8bdd7101b9bd__c
    a.b-c mcp__a__b_c
    a.b__c mcp__a__b__c_d0d7d45d8166
    a__b.c mcp__a__b__c_c97bf37728ce
    a.b.c mcp__a_b__c
    A.b-c mcp__A__b_c
    "#);
    let names: HashSet<_> = whole.tools().map(|tool| tool.model_name().to_string()).collect();
    assert_eq!(names.len(), whole.len());
    // Another order of servers changes no name.
    let mut turned = servers;
    turned.reverse();
    let turned = index(&turned, &NameRules::default());
    for tool in whole.tools() {
        let again = turned.by_server(tool.server().as_str(), tool.tool().name()).unwrap();
        assert_eq!(again.model_name(), tool.model_name());
    }
    // Both names hold dots: the longest server that has such a tool.
    assert_eq!(whole.by_qualified_name("a.b.c").unwrap().server().as_str(), "a.b");
    assert_eq!(whole.by_qualified_name("my-srv.a.b").unwrap().tool().name(), "a.b");
    assert!(whole.by_qualified_name("my-srv.d").is_none());
    assert!(whole.by_model_name("mcp__my_srv__c").is_none(), "neither of two takes the plain name");
}

#[test]
fn a_tool_that_is_called_like_another_ones_suffixed_name_is_told_apart() {
    let two = index(&[("s", &["a.b", "a-b"])], &NameRules::default());
    let taken = two.by_server("s", "a.b").unwrap().model_name().name().to_owned();
    let three = index(&[("s", &["a.b", "a-b", &taken])], &NameRules::default());
    let names: HashSet<_> = three.tools().map(|tool| tool.model_name().to_string()).collect();
    assert_eq!(names.len(), 3, "{names:?}");
}

#[test]
fn the_length_and_the_prefix_are_the_hosts_to_choose() {
    let rules = NameRules { max_bytes: 128, prefix: String::new() };
    let long = "x".repeat(100);
    let wide = index(&[("s", &[&long])], &rules);
    assert_eq!(wide.tools().next().unwrap().model_name().as_str(), format!("s__{long}"));
    let rules = NameRules { max_bytes: 1, ..NameRules::default() };
    let server = "s".repeat(200);
    let narrow = index(&[(&server, &["x", "y"])], &rules);
    for tool in narrow.tools() {
        assert!(tool.model_name().as_str().len() <= LEAST_BYTES, "{}", tool.model_name());
        assert!(tool.model_name().name().len() <= 13, "{}", tool.model_name());
    }
}

fn server_name() -> impl Strategy<Value = String> {
    "[ab._:/@-]{1,4}|[a-z]{1,70}"
}

proptest! {
    /// Whatever servers call themselves and their tools: each tool has one name, and the name leads back to it.
    #[test]
    fn names_are_unique_bounded_and_lead_back(
        servers in prop::collection::btree_map(
            server_name(), prop::collection::btree_set("[ab._ é-]{0,4}|.{0,90}", 0..8), 0..6),
        max_bytes in 0_usize..130,
    ) {
        let rules = NameRules { max_bytes, ..NameRules::default() };
        let catalogs = servers.iter().map(|(name, tools)| {
            let tools: Vec<&str> = tools.iter().map(String::as_str).collect();
            (ServerName::new(name).unwrap(), catalog(&tools))
        });
        let index = ToolIndex::new(catalogs, &rules);
        prop_assert_eq!(index.len(), servers.values().map(|tools| tools.len()).sum::<usize>());
        let mut seen = HashSet::new();
        for tool in index.tools() {
            let name = tool.model_name().as_str();
            prop_assert!(name.len() <= max_bytes.max(LEAST_BYTES), "{}", name);
            prop_assert!(name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_'), "{}", name);
            prop_assert!(seen.insert(name.to_owned()), "{} twice", name);
            let back = index.by_model_name(name).unwrap();
            prop_assert_eq!(back.tool().name(), tool.tool().name());
            prop_assert_eq!(back.server(), tool.server());
        }
    }
}
