use super::*;

fn rules(rows: &[(&str, &str)]) -> Rules {
    let mut rules = Rules::new();
    for (key, word) in rows {
        rules.add(key, word).unwrap();
    }
    rules
}

#[test]
fn l3_without_rules_reads_are_allowed_and_the_rest_asks() {
    let none = Rules::new();
    #[rustfmt::skip]
    let cases = [
        ("read",  Risk::Reads,   Verdict::Allow),
        ("write", Risk::Writes,  Verdict::Ask),
        ("shell", Risk::Runs,    Verdict::Ask),
        ("read",  Risk::Outside, Verdict::Ask),
    ];
    for (tool, risk, expected) in cases {
        assert_eq!(none.judge(&[], tool, "x", risk).0, expected, "{tool} {risk:?}");
    }
}

#[test]
fn l3_the_most_specific_rule_wins_and_deny_wins_among_equals() {
    let rules = rules(&[
        ("shell", "ask"),
        ("shell:git *", "allow"),
        ("shell:git push*", "deny"),
        ("shell:git push --dry-run", "allow"),
        ("write:docs/*", "allow"),
        ("write:docs/*", "deny"),
        ("edit", "allow"),
        ("edit:*.lock", "ask"),
        ("*", "deny"),
        ("read", "allow"),
        ("read:.env*", "deny"),
        ("read:/etc/*", "allow"),
        ("read:/etc/shadow", "deny"),
    ]);
    #[rustfmt::skip]
    let cases = [
        ("shell", "ls",                   Risk::Runs,    Verdict::Ask),
        ("shell", "git log -1",           Risk::Runs,    Verdict::Allow),
        ("shell", "git push origin",      Risk::Runs,    Verdict::Deny),
        ("shell", "git push --dry-run",   Risk::Runs,    Verdict::Allow),
        ("write", "docs/a.md",            Risk::Writes,  Verdict::Deny),
        ("write", "src/a.rs",             Risk::Writes,  Verdict::Deny),
        ("edit",  "src/a.rs",             Risk::Writes,  Verdict::Allow),
        ("edit",  "deep/Cargo.lock",      Risk::Writes,  Verdict::Ask),
        ("other", "x",                    Risk::Runs,    Verdict::Deny),
        ("read",  "src/a.rs",             Risk::Reads,   Verdict::Allow),
        ("read",  ".env.local",           Risk::Reads,   Verdict::Deny),
        ("read",  "/etc/hosts",           Risk::Outside, Verdict::Ask),
        ("read",  "/etc/shadow",          Risk::Outside, Verdict::Deny),
    ];
    for (tool, subject, risk, expected) in cases {
        assert_eq!(rules.judge(&[], tool, subject, risk).0, expected, "{tool} {subject}");
    }
    let (_, rule) = rules.judge(&[], "shell", "git push origin", Risk::Runs);
    assert_eq!(rule.map(ToString::to_string).as_deref(), Some("shell:git push*"));
    assert!(rules.lets_be_read("read", "src/a.rs") && !rules.lets_be_read("read", ".env"));
}

#[test]
fn l3_a_command_does_not_ride_on_what_is_allowed_for_its_first_word() {
    let rules = rules(&[("shell:git status*", "allow"), ("shell:ls *", "allow"), ("shell:rm *", "deny")]);
    #[rustfmt::skip]
    let cases = [
        ("git status",                        Verdict::Allow),
        ("git status --short",                Verdict::Allow),
        ("git status 2>&1",                   Verdict::Allow),
        ("git status 2>/dev/null | ls -1",    Verdict::Allow),
        ("git status && ls src",              Verdict::Allow),
        ("git status && make",                Verdict::Ask),
        ("git status; make",                  Verdict::Ask),
        ("git status | sh",                   Verdict::Ask),
        ("git status || make",                Verdict::Ask),
        ("git status & make",                 Verdict::Ask),
        ("git status\nmake",                  Verdict::Ask),
        ("git status\r\nmake",                Verdict::Ask),
        ("git status $(make)",                Verdict::Ask),
        ("git status `make`",                 Verdict::Ask),
        ("git status \"$(make)\"",            Verdict::Ask),
        ("git status > /etc/passwd",          Verdict::Ask),
        ("git status >/dev/nullx",            Verdict::Ask),
        ("git status 2>&1>x",                 Verdict::Ask),
        ("git status <(make)",                Verdict::Ask),
        ("(git status)",                      Verdict::Ask),
        ("git status \\\n; make",             Verdict::Ask),
        ("rm -r x",                           Verdict::Deny),
        ("git status && rm -r x",             Verdict::Deny),
        ("git status $(rm -r x)",             Verdict::Deny),
        ("ls x; (cd y; rm -r x)",             Verdict::Deny),
    ];
    for (command, expected) in cases {
        assert_eq!(rules.judge(&[], "shell", command, Risk::Runs).0, expected, "{command:?}");
    }
}

#[test]
fn l3_an_answer_outweighs_a_rule_to_ask_but_never_a_no() {
    let rules = rules(&[("shell", "ask"), ("shell:git push*", "ask"), ("shell:rm *", "deny"), ("edit:src/*", "ask")]);
    let answers = [
        Rule::answer("shell", Some("cd a && make > log")),
        Rule::answer("shell", Some("git push")),
        Rule::answer("shell", Some("rm -r x")),
        Rule::answer("edit", None),
        Rule::answer("read", None),
    ];
    #[rustfmt::skip]
    let cases = [
        ("shell", "cd a && make > log",    Risk::Runs,    Verdict::Allow),
        ("shell", "cd a && make > logs",   Risk::Runs,    Verdict::Ask),
        ("shell", "git push",              Risk::Runs,    Verdict::Allow),
        ("shell", "git push -f",           Risk::Runs,    Verdict::Ask),
        ("shell", "rm -r x",               Risk::Runs,    Verdict::Deny),
        ("edit",  "docs/a",                Risk::Writes,  Verdict::Allow),
        ("edit",  "src/a",                 Risk::Writes,  Verdict::Ask),
        ("write", "docs/a",                Risk::Writes,  Verdict::Ask),
        ("read",  "/etc/hosts",            Risk::Outside, Verdict::Ask),
        ("edit",  "/etc/hosts",            Risk::Outside, Verdict::Ask),
    ];
    for (tool, subject, risk, expected) in cases {
        assert_eq!(rules.judge(&answers, tool, subject, risk).0, expected, "{tool} {subject}");
    }
}

#[test]
fn l3_a_bad_rule_says_what_is_valid() {
    let mut rules = Rules::new();
    assert_eq!(rules.add("shell", "maybe").unwrap_err().to_string(), "unknown verdict `maybe`; use allow, ask or deny");
    for key in ["", ":x", "shell:", " "] {
        assert_eq!(rules.add(key, "ask"), Err(RuleError::Key(key.to_owned())), "{key:?}");
    }
    assert_eq!(rules, Rules::new());
}

#[test]
fn l3_stars_stand_for_any_run_of_characters() {
    #[rustfmt::skip]
    let cases = [
        ("a",      "a",        true),
        ("a",      "ab",       false),
        ("a*",     "ab/c\nd",  true),
        ("*b",     "aab",      true),
        ("*b",     "aba",      false),
        ("a*b*c",  "axbybzc",  true),
        ("a*b*c",  "acb",      false),
        ("ab*ba",  "aba",      false),
        ("*",      "",         true),
        ("A*",     "ab",       false),
    ];
    for (pattern, text, expected) in cases {
        assert_eq!(like(pattern, text), expected, "{pattern} on {text}");
    }
}
