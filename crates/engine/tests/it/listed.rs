//! What the user sees of tools and permissions, switches and takes back.

use std::fs;

use aside_core::conversation::Tool as Spec;
use aside_core::turn::TurnEnd;
use aside_engine::tools::{Job, Mode, Permissions, Permit, ProjectMemory, Switch, Tool, Toolbox};
use serde_json::json;

use crate::simulated::{simulator, talk_to};
use crate::support::{Scratch, Scripted, fails, ok, rules_of, run};
use crate::talk::say;

fn remembering(scratch: &Scratch) -> Toolbox {
    let memory = ProjectMemory::open(&scratch.beside("data/permissions.json"), &scratch.root()).unwrap();
    let rules = rules_of(&[("shell:git *", "allow"), ("write:docs/*", "deny")]);
    Toolbox::standard(&scratch.work(), Permissions::new(rules, Mode::Ask).remembering(memory))
}

fn listed(tools: &Toolbox) -> Vec<String> {
    let line = |ruled: aside_engine::tools::Ruled| format!("{} {} {}", ruled.rule, ruled.verdict, ruled.source);
    tools.permissions().list().into_iter().map(line).collect()
}

#[tokio::test]
async fn l3_every_rule_is_listed_with_who_made_it() {
    let scratch = Scratch::new("listed");
    let tools = remembering(&scratch);
    let asker = Scripted::new([Permit::Project, Permit::Session]);
    assert!(!run(&tools, &asker, "write", json!({"path": "a", "content": "a"})).await.is_error);
    assert!(!run(&tools, &asker, "shell", json!({"command": "touch b"})).await.is_error);
    let expected = [
        "shell:touch b allow this session",
        "write allow this project",
        "shell:git * allow config",
        "write:docs/* deny config",
    ];
    assert_eq!(listed(&tools), expected);
}

#[tokio::test]
async fn l3_an_answer_that_is_forgotten_is_asked_again_in_later_sessions_too() {
    let scratch = Scratch::new("forgotten");
    let tools = remembering(&scratch);
    let asker = Scripted::new([Permit::Project, Permit::Session]);
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
        ("shell:git *",  "`shell:git *` stands in the config; change it there"),
    ];
    for (rule, expected) in cases {
        assert_eq!(forget(rule), expected, "{rule}");
    }
    fails(&tools, "write", json!({"path": "c", "content": "c"})).await;
    fails(&tools, "shell", json!({"command": "touch b"})).await;
    fails(&remembering(&scratch), "write", json!({"path": "c", "content": "c"})).await;
    let stored = fs::read_to_string(scratch.beside("data/permissions.json")).unwrap();
    assert_eq!(serde_json::from_str::<serde_json::Value>(&stored).unwrap(), json!({"allowed": {}}));
}

/// A tool of somebody else.
struct Theirs(&'static str);

impl Tool for Theirs {
    fn spec(&self) -> Spec {
        Spec { name: self.0.to_owned(), description: "theirs".to_owned(), parameters: "{}".to_owned() }
    }

    fn server(&self) -> Option<&str> {
        Some("maps")
    }

    fn plan(&self, _: &str) -> Result<Box<dyn Job>, String> {
        Err("it does nothing".to_owned())
    }
}

fn offered(tools: &Toolbox) -> Vec<&str> {
    tools.specs().iter().map(|spec| spec.name.as_str()).collect()
}

#[tokio::test]
async fn l2_tools_are_switched_one_by_one_by_server_and_all_at_once() {
    let scratch = Scratch::new("switched");
    scratch.file("a.txt", "a");
    let mut tools = scratch.tools(Mode::AllowAll);
    tools.add(Box::new(Theirs("maps__route"))).unwrap();
    tools.add(Box::new(Theirs("maps__find"))).unwrap();
    assert_eq!(tools.switch(Some("maps"), Switch::Off), Ok(2));
    assert_eq!(tools.switch(Some("shell"), Switch::Off), Ok(1));
    assert_eq!(offered(&tools), ["read", "list", "glob", "grep", "edit", "write"]);
    let said = fails(&tools, "shell", json!({"command": "touch b"})).await;
    assert_eq!(said, "the user has switched `shell` off");
    assert_eq!(tools.switch(Some("maps__find"), Switch::On), Ok(1));
    assert_eq!(offered(&tools).last(), Some(&"maps__find"));
    let unknown = tools.switch(Some("dance"), Switch::Off).unwrap_err();
    assert_eq!(unknown.to_string(), "there is no tool `dance`");
    tools.switch(None, Switch::Off).unwrap();
    assert!(offered(&tools).is_empty());
    // What comes later is as off as the rest.
    tools.add(Box::new(Theirs("maps__late"))).unwrap();
    assert!(offered(&tools).is_empty());
    let late = tools.list().last().map(|tool| (tool.name, tool.server, tool.switch));
    assert_eq!(late, Some(("maps__late", Some("maps"), Switch::Off)));
    tools.switch(None, Switch::On).unwrap();
    assert_eq!(offered(&tools).len(), 10);
    ok(&tools, "read", json!({"path": "a.txt"})).await;
}

#[tokio::test]
async fn l2_a_model_without_tools_is_offered_none_and_goes_on() {
    let simulator = simulator().await;
    for dialect in ["deepseek", "anthropic", "openai", "gemini", "mistral"] {
        let scratch = Scratch::new(&format!("without-{dialect}"));
        let mut session = talk_to(&simulator, dialect, &scratch);
        assert_eq!(say(&mut session, "sim: tool-loop 1").await.0, TurnEnd::Answered, "{dialect}");
        session.tools.switch(None, Switch::Off).unwrap();
        // Its history has calls, and the provider takes it all the same.
        let (end, heard) = say(&mut session, "sim: tool-loop 1").await;
        assert_eq!(end, TurnEnd::Answered, "{dialect}: {:?}", heard.lines);
        assert!(!heard.lines.iter().any(|line| line.starts_with("started")), "{dialect}: {:?}", heard.lines);
        assert!(heard.text.contains("No tool was offered"), "{dialect}: {}", heard.text);
    }
}
