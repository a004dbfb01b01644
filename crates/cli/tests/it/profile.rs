//! `aside profile` on real files.

use std::fs;

use crate::support::{CONFIG, TestConfig, aside};

#[test]
fn s2_a_profile_is_saved_loaded_listed_shown_and_deleted() {
    let config = TestConfig::with("profile", CONFIG);
    config.stdout("profile save deep -m kimi/k2 --set reasoning.effort=max --set request.temperature=1");
    assert_eq!(
        config.read("profiles/deep.toml"),
        "\
# aside profile load deep. What is not here is left to config.toml and the dialect.

model = \"kimi/k2\"

[settings]
\"reasoning.effort\" = \"max\"
\"reasoning.display\" = \"full\"
"
    );
    let said = config.run("profile save other --set reasoning.effort=max --set screen.theme=dark").stderr;
    let note = "note: screen.theme: not saved; a profile holds only the model and `reasoning.*`\n";
    assert!(said.starts_with("saved profile `other` to ") && said.ends_with(note), "{said}");
    config.stdout("profile delete other");
    config.stdout("profile save plain");
    assert_eq!(config.stdout("profile list"), "deep\nplain\n");
    assert_eq!(
        config.stdout("profile show deep"),
        "model = kimi/k2\nreasoning.effort = max\nreasoning.display = full\n"
    );
    assert_eq!(config.stdout("config get reasoning.effort"), "low\n", "saved is not loaded");

    config.stdout("profile load deep");
    assert_eq!(config.read("config.toml"), CONFIG.replacen("# cheap\n", "# cheap\nprofile = \"deep\"\n", 1));
    assert_eq!(config.stdout("profile list"), "deep (active)\nplain\n");
    assert_eq!(config.stdout("config get reasoning.effort"), "max\n", "ec_005: at once");
    assert_eq!(config.stdout("config get model"), "kimi/k2\n");
    assert_eq!(config.stdout("config get reasoning.effort -p plain"), "low\n");
    assert_eq!(config.stdout("config get reasoning.effort --set reasoning.effort=none"), "none\n");
    let said = config.run("config set reasoning.effort minimal").stderr;
    assert!(said.contains("note: profile `deep` overrides it with max"), "{said}");

    let said = config.run("profile delete deep").stderr;
    assert_eq!(said, "deleted profile `deep`; no profile is active now\n");
    assert_eq!(config.stdout("profile list"), "plain\n");
    assert_eq!(config.read("config.toml"), CONFIG.replace("= \"low\"     #", "= \"minimal\"     #"));
}

#[test]
fn req_think_006_6_every_thinking_setting_is_saved_and_no_default_is() {
    let config = TestConfig::new("every");
    let values = [
        "reasoning.enabled=false",
        "reasoning.effort=high",
        "reasoning.maxTokens=4096",
        "reasoning.includeInContext=true",
        "reasoning.includeInResponse=false",
        "reasoning.stripFromContext=allButLast",
        "reasoning.format=native",
        "reasoning.fieldName=pondering",
        "reasoning.sendEmpty=space",
        "reasoning.tags=preopened",
        "reasoning.summary=detailed",
        "reasoning.display=collapsed",
    ];
    let arguments: Vec<&str> =
        ["profile", "save", "all"].into_iter().chain(values.iter().flat_map(|value| ["--set", value])).collect();
    assert_eq!(aside(&arguments, b"", Some(&config)).code, 0);
    let shown: String = values.iter().map(|value| format!("{}\n", value.replacen('=', " = ", 1))).collect();
    assert_eq!(config.stdout("profile show all"), shown);
    config.stdout("profile load all");
    for (name, value) in values.iter().filter_map(|value| value.split_once('=')) {
        assert_eq!(config.stdout(&format!("config get {name}")), format!("{value}\n"));
    }
    // A default in a profile would override the dialect.
    config.stdout("config unset profile");
    config.stdout("profile save none");
    assert_eq!(config.stdout("profile show none"), "");
}

#[test]
fn saving_a_profile_again_changes_it_in_place() {
    let config = TestConfig::new("again");
    config.stdout("profile save mine --set reasoning.effort=low --set reasoning.display=full");
    let path = config.0.join("profiles/mine.toml");
    let text =
        fs::read_to_string(&path).unwrap().replace("\"low\"", "\"low\" # enough") + "\"request.temperature\" = 0.5\n";
    fs::write(&path, &text).unwrap();
    config.stdout("profile save mine --set reasoning.effort=high");
    let expected = text.replace("\"low\"", "\"high\"").replace("\"reasoning.display\" = \"full\"\n", "");
    assert_eq!(config.read("profiles/mine.toml"), expected);
}
