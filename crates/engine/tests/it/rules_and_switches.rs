//! Listing and forgetting rules, and switching tools on and off.

use std::fs;

use aside_core::conversation::ToolSpec;
use aside_core::turn::TurnEnd;
use aside_engine::tools::{
    PermissionAnswer, PermissionMode, Permissions, PlannedCall, ProjectMemory, Switch, Tool, Toolbox,
};
use serde_json::json;

use crate::session_support::send;
use crate::simulated::{simulated_session, simulator};
use crate::support::{ScriptedAsker, TestDir, fails, ok, rules_of, run};

fn toolbox_with_memory(test_dir: &TestDir) -> Toolbox {
    let memory = ProjectMemory::open(&test_dir.beside("data/permissions.json"), &test_dir.root()).unwrap();
    let rules = rules_of(&[("shell:git *", "allow"), ("write:docs/*", "deny")]);
    Toolbox::standard(&test_dir.work(), Permissions::new(rules, PermissionMode::Ask).with_memory(memory))
}

fn listed_rules(tools: &Toolbox) -> Vec<String> {
    let line = |ruled: aside_engine::tools::ListedRule| format!("{} {} {}", ruled.rule, ruled.verdict, ruled.source);
    tools.permissions().list().into_iter().map(line).collect()
}

#[tokio::test]
async fn l3_every_rule_is_listed_with_its_source() {
    let test_dir = TestDir::new("listed");
    let tools = toolbox_with_memory(&test_dir);
    let asker = ScriptedAsker::new([PermissionAnswer::Project, PermissionAnswer::Session]);
    assert!(!run(&tools, &asker, "write", json!({"path": "a", "content": "a"})).await.is_error);
    assert!(!run(&tools, &asker, "shell", json!({"command": "touch b"})).await.is_error);
    let expected = [
        "shell:touch b allow this session",
        "write allow this project",
        "shell:git * allow config",
        "write:docs/* deny config",
    ];
    assert_eq!(listed_rules(&tools), expected);
}

#[tokio::test]
async fn l3_an_answer_that_is_forgotten_is_asked_again_in_later_sessions_too() {
    let test_dir = TestDir::new("forgotten");
    let tools = toolbox_with_memory(&test_dir);
    let asker = ScriptedAsker::new([PermissionAnswer::Project, PermissionAnswer::Session]);
    assert!(!run(&tools, &asker, "write", json!({"path": "a", "content": "a"})).await.is_error);
    assert!(!run(&tools, &asker, "shell", json!({"command": "touch b"})).await.is_error);
    let forget = |rule: &str| match tools.permissions().forget(rule) {
        Ok(source) => format!("of {source}"),
        Err(error) => error.to_string(),
    };
    #[rustfmt::skip]
    let cases = [
        ("write",        "of this project"),
        ("shell:touch b", "of this session"),
        ("shell:touch b", "there is no rule `shell:touch b`"),
        ("shell:git *",  "`shell:git *` is in the config; change it there"),
    ];
    for (rule, expected) in cases {
        assert_eq!(forget(rule), expected, "{rule}");
    }
    fails(&tools, "write", json!({"path": "c", "content": "c"})).await;
    fails(&tools, "shell", json!({"command": "touch b"})).await;
    fails(&toolbox_with_memory(&test_dir), "write", json!({"path": "c", "content": "c"})).await;
    let stored = fs::read_to_string(test_dir.beside("data/permissions.json")).unwrap();
    assert_eq!(serde_json::from_str::<serde_json::Value>(&stored).unwrap(), json!({"allowed": {}}));
}

/// A tool of an MCP server.
struct ServerTool(&'static str);

impl Tool for ServerTool {
    fn spec(&self) -> ToolSpec {
        ToolSpec::new(self.0.to_owned(), "theirs", "{}")
    }

    fn server(&self) -> Option<&str> {
        Some("maps")
    }

    fn plan(&self, _: &str) -> Result<Box<dyn PlannedCall>, String> {
        Err("it does nothing".to_owned())
    }
}

fn offered_tools(tools: &Toolbox) -> Vec<&str> {
    tools.specs().iter().map(|spec| spec.name.as_str()).collect()
}

#[tokio::test]
async fn l2_tools_are_switched_one_by_one_by_server_and_all_at_once() {
    let test_dir = TestDir::new("switched");
    test_dir.file("a.txt", "a");
    let mut tools = test_dir.tools(PermissionMode::AllowAll);
    tools.add(Box::new(ServerTool("maps__route"))).unwrap();
    tools.add(Box::new(ServerTool("maps__find"))).unwrap();
    assert_eq!(tools.switch(Some("maps"), Switch::Off), Ok(2));
    assert_eq!(tools.switch(Some("shell"), Switch::Off), Ok(1));
    assert_eq!(offered_tools(&tools), ["read", "list", "glob", "grep", "edit", "write"]);
    let output = fails(&tools, "shell", json!({"command": "touch b"})).await;
    assert_eq!(output, "the user has switched `shell` off");
    assert_eq!(tools.switch(Some("maps__find"), Switch::On), Ok(1));
    assert_eq!(offered_tools(&tools).last(), Some(&"maps__find"));
    let unknown = tools.switch(Some("dance"), Switch::Off).unwrap_err();
    assert_eq!(unknown.to_string(), "there is no tool `dance`");
    tools.switch(None, Switch::Off).unwrap();
    assert!(offered_tools(&tools).is_empty());
    // Tools added later are off too.
    tools.add(Box::new(ServerTool("maps__late"))).unwrap();
    assert!(offered_tools(&tools).is_empty());
    let late = tools.list().last().map(|tool| (tool.name, tool.server, tool.switch));
    assert_eq!(late, Some(("maps__late", Some("maps"), Switch::Off)));
    tools.switch(None, Switch::On).unwrap();
    assert_eq!(offered_tools(&tools).len(), 10);
    ok(&tools, "read", json!({"path": "a.txt"})).await;
}

#[tokio::test]
async fn l2_with_all_tools_off_none_are_offered_and_the_session_continues() {
    let simulator = simulator().await;
    for dialect in ["deepseek", "anthropic", "openai", "gemini", "mistral"] {
        let test_dir = TestDir::new(&format!("without-{dialect}"));
        let mut session = simulated_session(&simulator, dialect, &test_dir);
        assert_eq!(send(&mut session, "sim: tool-loop 1").await.0, TurnEnd::Answered, "{dialect}");
        session.tools.switch(None, Switch::Off).unwrap();
        // The history has tool calls, and the provider accepts it anyway.
        let (end, recorded) = send(&mut session, "sim: tool-loop 1").await;
        assert_eq!(end, TurnEnd::Answered, "{dialect}: {:?}", recorded.lines);
        assert!(!recorded.lines.iter().any(|line| line.starts_with("started")), "{dialect}: {:?}", recorded.lines);
        assert!(recorded.text.contains("No tool was offered"), "{dialect}: {}", recorded.text);
    }
}
