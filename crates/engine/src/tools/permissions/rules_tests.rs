use super::*;
use crate::tools::AnswerScope;

fn rules(rows: &[(&str, &str)]) -> PermissionRules {
    let mut rules = PermissionRules::new();
    for (key, word) in rows {
        rules.add(key, word).unwrap();
    }
    rules
}

/// A target without an absolute path.
fn about(subject: &str, risk: Risk) -> CallTarget {
    CallTarget::new(subject.to_owned(), risk, AnswerScope::Subject)
}

#[test]
fn l3_without_rules_reads_are_allowed_and_the_rest_asks() {
    let none = PermissionRules::new();
    #[rustfmt::skip]
    let cases = [
        ("read",  Risk::Reads,   RuleVerdict::Allow),
        ("write", Risk::Writes,  RuleVerdict::Ask),
        ("shell", Risk::Runs,    RuleVerdict::Ask),
        ("read",  Risk::Outside, RuleVerdict::Ask),
    ];
    for (tool, risk, expected) in cases {
        assert_eq!(none.verdict_for(&[], tool, &about("x", risk)).0, expected, "{tool} {risk:?}");
    }
}

#[test]
fn l3_a_deny_with_a_pattern_beats_every_allow_and_a_bare_one_is_a_default() {
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
        ("shell", "ls",                   Risk::Runs,    RuleVerdict::Ask),
        ("shell", "git log -1",           Risk::Runs,    RuleVerdict::Allow),
        ("shell", "git push origin",      Risk::Runs,    RuleVerdict::Deny),
        ("shell", "git push --dry-run",   Risk::Runs,    RuleVerdict::Deny),
        ("write", "docs/a.md",            Risk::Writes,  RuleVerdict::Deny),
        ("write", "src/a.rs",             Risk::Writes,  RuleVerdict::Deny),
        ("edit",  "src/a.rs",             Risk::Writes,  RuleVerdict::Allow),
        ("edit",  "deep/Cargo.lock",      Risk::Writes,  RuleVerdict::Ask),
        ("other", "x",                    Risk::Runs,    RuleVerdict::Deny),
        ("read",  "src/a.rs",             Risk::Reads,   RuleVerdict::Allow),
        ("read",  ".env.local",           Risk::Reads,   RuleVerdict::Deny),
        ("read",  "/etc/hosts",           Risk::Outside, RuleVerdict::Ask),
        ("read",  "/etc/shadow",          Risk::Outside, RuleVerdict::Deny),
    ];
    for (tool, subject, risk, expected) in cases {
        assert_eq!(rules.verdict_for(&[], tool, &about(subject, risk)).0, expected, "{tool} {subject}");
    }
    let (_, rule) = rules.verdict_for(&[], "shell", &about("git push origin", Risk::Runs));
    assert_eq!(rule.map(ToString::to_string).as_deref(), Some("shell:git push*"));
    assert!(rules.may_read("read", "src/a.rs", "/w/src/a.rs") && !rules.may_read("read", ".env", "/w/.env"));
}

#[test]
fn l3_allowing_a_command_does_not_allow_what_follows_it() {
    let rules = rules(&[("shell:git status*", "allow"), ("shell:ls *", "allow"), ("shell:rm *", "deny")]);
    #[rustfmt::skip]
    let cases = [
        ("git status",                        RuleVerdict::Allow),
        ("git status --short",                RuleVerdict::Allow),
        ("git status 2>&1",                   RuleVerdict::Allow),
        ("git status 2>/dev/null | ls -1",    RuleVerdict::Allow),
        ("git status && ls src",              RuleVerdict::Allow),
        ("git status && make",                RuleVerdict::Ask),
        ("git status; make",                  RuleVerdict::Ask),
        ("git status | sh",                   RuleVerdict::Ask),
        ("git status || make",                RuleVerdict::Ask),
        ("git status & make",                 RuleVerdict::Ask),
        ("git status\nmake",                  RuleVerdict::Ask),
        ("git status\r\nmake",                RuleVerdict::Ask),
        ("git status $(make)",                RuleVerdict::Ask),
        ("git status `make`",                 RuleVerdict::Ask),
        ("git status \"$(make)\"",            RuleVerdict::Ask),
        ("git status > /etc/passwd",          RuleVerdict::Ask),
        ("git status >/dev/nullx",            RuleVerdict::Ask),
        ("git status 2>&1>x",                 RuleVerdict::Ask),
        ("git status <(make)",                RuleVerdict::Ask),
        ("(git status)",                      RuleVerdict::Ask),
        ("git status \\\n; make",             RuleVerdict::Ask),
        ("rm -r x",                           RuleVerdict::Deny),
        ("git status && rm -r x",             RuleVerdict::Deny),
        ("git status $(rm -r x)",             RuleVerdict::Deny),
        ("ls x; (cd y; rm -r x)",             RuleVerdict::Deny),
    ];
    for (command, expected) in cases {
        assert_eq!(rules.verdict_for(&[], "shell", &about(command, Risk::Runs)).0, expected, "{command:?}");
    }
}

#[test]
fn l3_an_answer_overrides_a_rule_to_ask_but_never_a_denial() {
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
        ("shell", "cd a && make > log",    Risk::Runs,    RuleVerdict::Allow),
        ("shell", "cd a && make > logs",   Risk::Runs,    RuleVerdict::Ask),
        ("shell", "git push",              Risk::Runs,    RuleVerdict::Allow),
        ("shell", "git push -f",           Risk::Runs,    RuleVerdict::Ask),
        ("shell", "rm -r x",               Risk::Runs,    RuleVerdict::Deny),
        ("edit",  "docs/a",                Risk::Writes,  RuleVerdict::Allow),
        ("edit",  "src/a",                 Risk::Writes,  RuleVerdict::Ask),
        ("write", "docs/a",                Risk::Writes,  RuleVerdict::Ask),
        ("read",  "/etc/hosts",            Risk::Outside, RuleVerdict::Ask),
        ("edit",  "/etc/hosts",            Risk::Outside, RuleVerdict::Ask),
    ];
    for (tool, subject, risk, expected) in cases {
        assert_eq!(rules.verdict_for(&answers, tool, &about(subject, risk)).0, expected, "{tool} {subject}");
    }
}

#[test]
fn l3_rules_of_write_cover_edit_and_those_of_read_what_edit_shows() {
    let rules = rules(&[
        ("*", "ask"),
        ("write", "allow"),
        ("read", "allow"),
        ("write:docs/*", "deny"),
        ("write:src/*", "ask"),
        ("edit:src/a.rs", "allow"),
        ("read:.env*", "deny"),
        ("read:private/*", "ask"),
    ]);
    #[rustfmt::skip]
    let cases = [
        ("edit",  "a.txt",      RuleVerdict::Allow, Some("write")),
        ("edit",  "docs/a",     RuleVerdict::Deny,  Some("write:docs/*")),
        ("edit",  "src/b.rs",   RuleVerdict::Ask,   Some("write:src/*")),
        ("edit",  "src/a.rs",   RuleVerdict::Allow, Some("edit:src/a.rs")),
        ("edit",  ".env",       RuleVerdict::Deny,  Some("read:.env*")),
        ("edit",  "private/a",  RuleVerdict::Ask,   Some("read:private/*")),
        ("write", ".env",       RuleVerdict::Allow, Some("write")),
        ("write", "src/a.rs",   RuleVerdict::Ask,   Some("write:src/*")),
    ];
    for (tool, subject, verdict, made_by) in cases {
        let (judged, rule) = rules.verdict_for(&[], tool, &about(subject, Risk::Writes));
        assert_eq!((judged, rule.map(ToString::to_string).as_deref()), (verdict, made_by), "{tool} {subject}");
    }
    let only_reading = self::rules(&[("write", "deny")]);
    assert_eq!(only_reading.verdict_for(&[], "edit", &about("a", Risk::Writes)).0, RuleVerdict::Deny);
    let edits = self::rules(&[("write", "deny"), ("edit", "allow")]);
    assert_eq!(edits.verdict_for(&[], "edit", &about("a", Risk::Writes)).0, RuleVerdict::Allow);
}

#[test]
fn l3_a_denied_absolute_path_is_also_denied_as_a_relative_path() {
    let rules = rules(&[("read:/home/me/.ssh/*", "deny"), ("read", "allow")]);
    let target = CallTarget { path: Some("/home/me/.ssh/id".to_owned()), ..about(".ssh/id", Risk::Reads) };
    assert_eq!(rules.verdict_for(&[], "read", &target).0, RuleVerdict::Deny);
    assert!(!rules.may_read("grep", ".ssh/id", "/home/me/.ssh/id"));
    assert!(rules.may_read("grep", ".ssh2/id", "/home/me/.ssh2/id"));
}

#[test]
fn l3_commands_not_fully_understood_ask_and_denied_ones_are_found_in_them() {
    let rules = rules(&[("shell:*", "allow"), ("shell:echo ${A}", "allow"), ("shell:rm *", "deny")]);
    #[rustfmt::skip]
    let cases = [
        ("echo a",                     RuleVerdict::Allow),
        ("echo $A",                    RuleVerdict::Allow),
        ("echo a\necho b",             RuleVerdict::Allow),
        ("echo ${A}",                  RuleVerdict::Ask),
        ("echo $'a'",                  RuleVerdict::Ask),
        ("echo $(id)",                 RuleVerdict::Ask),
        ("echo `id`",                  RuleVerdict::Ask),
        ("diff <(a) b",                RuleVerdict::Ask),
        ("cat <<E\nx\nE",              RuleVerdict::Ask),
        ("echo 'a",                    RuleVerdict::Ask),
        ("echo a > b",                 RuleVerdict::Ask),
        ("for a in b; do c; done",     RuleVerdict::Ask),
        // Invisible and control characters.
        ("echo a\u{9d};b\u{9c}",       RuleVerdict::Ask),
        ("echo \u{1b}[2K",             RuleVerdict::Ask),
        ("echo \u{202e}a",             RuleVerdict::Ask),
        ("echo a\rb",                  RuleVerdict::Ask),
        ("echo a\tb",                  RuleVerdict::Ask),
        ("echo ${A}; sudo rm -r x",    RuleVerdict::Deny),
        ("echo $(rm -r x)",            RuleVerdict::Deny),
        ("A=1 /bin/rm -r x",           RuleVerdict::Deny),
        ("sh -c 'rm -r x'",            RuleVerdict::Deny),
        ("echo a\u{9d};rm -r x",       RuleVerdict::Deny),
    ];
    for (command, expected) in cases {
        assert_eq!(rules.verdict_for(&[], "shell", &about(command, Risk::Runs)).0, expected, "{command:?}");
    }
    // A bare rule that allows the tool needs no pattern.
    let everything = self::rules(&[("shell", "allow")]);
    assert_eq!(everything.verdict_for(&[], "shell", &about("echo $(id)", Risk::Runs)).0, RuleVerdict::Allow);
    assert_eq!(everything.verdict_for(&[], "shell", &about("echo \u{9d}", Risk::Runs)).0, RuleVerdict::Ask);
}

#[test]
fn l3_a_remembered_command_is_the_whole_line_and_no_part_of_another() {
    let answers = [Rule::answer("shell", Some("make")), Rule::answer("shell", Some("cd /elsewhere"))];
    #[rustfmt::skip]
    let cases = [
        ("make",                   RuleVerdict::Allow),
        (" make ",                 RuleVerdict::Allow),
        ("cd /elsewhere && make",  RuleVerdict::Ask),
        ("make; make",             RuleVerdict::Ask),
        ("make $(id)",             RuleVerdict::Ask),
        ("\u{200b}make",           RuleVerdict::Ask),
    ];
    for (command, expected) in cases {
        assert_eq!(
            PermissionRules::new().verdict_for(&answers, "shell", &about(command, Risk::Runs)).0,
            expected,
            "{command:?}"
        );
    }
    let hidden = Rule::answer("shell", Some("make\u{9d}"));
    assert_eq!(
        PermissionRules::new().verdict_for(&[hidden], "shell", &about("make\u{9d}", Risk::Runs)).0,
        RuleVerdict::Ask
    );
}

#[test]
fn l3_a_bad_rule_says_what_is_valid() {
    let mut rules = PermissionRules::new();
    assert_eq!(rules.add("shell", "maybe").unwrap_err().to_string(), "unknown verdict `maybe`; use allow, ask or deny");
    for key in ["", ":x", "shell:", " "] {
        assert_eq!(rules.add(key, "ask"), Err(RuleError::Key(key.to_owned())), "{key:?}");
    }
    assert_eq!(rules, PermissionRules::new());
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
        assert_eq!(matches_pattern(pattern, text), expected, "{pattern} on {text}");
    }
}
