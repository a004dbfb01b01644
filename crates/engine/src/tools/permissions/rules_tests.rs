use super::*;
use crate::tools::Likeness;

fn rules(rows: &[(&str, &str)]) -> Rules {
    let mut rules = Rules::new();
    for (key, word) in rows {
        rules.add(key, word).unwrap();
    }
    rules
}

/// About a subject that is known by no other name.
fn about(subject: &str, risk: Risk) -> Target {
    Target::new(subject.to_owned(), risk, Likeness::Subject)
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
        assert_eq!(none.judge(&[], tool, &about("x", risk)).0, expected, "{tool} {risk:?}");
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
        ("shell", "ls",                   Risk::Runs,    Verdict::Ask),
        ("shell", "git log -1",           Risk::Runs,    Verdict::Allow),
        ("shell", "git push origin",      Risk::Runs,    Verdict::Deny),
        ("shell", "git push --dry-run",   Risk::Runs,    Verdict::Deny),
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
        assert_eq!(rules.judge(&[], tool, &about(subject, risk)).0, expected, "{tool} {subject}");
    }
    let (_, rule) = rules.judge(&[], "shell", &about("git push origin", Risk::Runs));
    assert_eq!(rule.map(ToString::to_string).as_deref(), Some("shell:git push*"));
    assert!(rules.lets_be_read("read", "src/a.rs", "/w/src/a.rs") && !rules.lets_be_read("read", ".env", "/w/.env"));
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
        assert_eq!(rules.judge(&[], "shell", &about(command, Risk::Runs)).0, expected, "{command:?}");
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
        assert_eq!(rules.judge(&answers, tool, &about(subject, risk)).0, expected, "{tool} {subject}");
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
        ("edit",  "a.txt",      Verdict::Allow, Some("write")),
        ("edit",  "docs/a",     Verdict::Deny,  Some("write:docs/*")),
        ("edit",  "src/b.rs",   Verdict::Ask,   Some("write:src/*")),
        ("edit",  "src/a.rs",   Verdict::Allow, Some("edit:src/a.rs")),
        ("edit",  ".env",       Verdict::Deny,  Some("read:.env*")),
        ("edit",  "private/a",  Verdict::Ask,   Some("read:private/*")),
        ("write", ".env",       Verdict::Allow, Some("write")),
        ("write", "src/a.rs",   Verdict::Ask,   Some("write:src/*")),
    ];
    for (tool, subject, verdict, by) in cases {
        let (judged, rule) = rules.judge(&[], tool, &about(subject, Risk::Writes));
        assert_eq!((judged, rule.map(ToString::to_string).as_deref()), (verdict, by), "{tool} {subject}");
    }
    let only_reading = self::rules(&[("write", "deny")]);
    assert_eq!(only_reading.judge(&[], "edit", &about("a", Risk::Writes)).0, Verdict::Deny);
    let edits = self::rules(&[("write", "deny"), ("edit", "allow")]);
    assert_eq!(edits.judge(&[], "edit", &about("a", Risk::Writes)).0, Verdict::Allow);
}

#[test]
fn l3_a_path_that_is_denied_whole_is_denied_by_its_short_name_too() {
    let rules = rules(&[("read:/home/me/.ssh/*", "deny"), ("read", "allow")]);
    let target = Target { path: Some("/home/me/.ssh/id".to_owned()), ..about(".ssh/id", Risk::Reads) };
    assert_eq!(rules.judge(&[], "read", &target).0, Verdict::Deny);
    assert!(!rules.lets_be_read("grep", ".ssh/id", "/home/me/.ssh/id"));
    assert!(rules.lets_be_read("grep", ".ssh2/id", "/home/me/.ssh2/id"));
}

#[test]
fn l3_what_is_not_fully_understood_is_asked_about_and_what_is_denied_is_found_in_it() {
    let rules = rules(&[("shell:*", "allow"), ("shell:echo ${A}", "allow"), ("shell:rm *", "deny")]);
    #[rustfmt::skip]
    let cases = [
        ("echo a",                     Verdict::Allow),
        ("echo $A",                    Verdict::Allow),
        ("echo a\necho b",             Verdict::Allow),
        ("echo ${A}",                  Verdict::Ask),
        ("echo $'a'",                  Verdict::Ask),
        ("echo $(id)",                 Verdict::Ask),
        ("echo `id`",                  Verdict::Ask),
        ("diff <(a) b",                Verdict::Ask),
        ("cat <<E\nx\nE",              Verdict::Ask),
        ("echo 'a",                    Verdict::Ask),
        ("echo a > b",                 Verdict::Ask),
        ("for a in b; do c; done",     Verdict::Ask),
        // Characters that are not seen, or that a terminal obeys.
        ("echo a\u{9d};b\u{9c}",       Verdict::Ask),
        ("echo \u{1b}[2K",             Verdict::Ask),
        ("echo \u{202e}a",             Verdict::Ask),
        ("echo a\rb",                  Verdict::Ask),
        ("echo a\tb",                  Verdict::Ask),
        ("echo ${A}; sudo rm -r x",    Verdict::Deny),
        ("echo $(rm -r x)",            Verdict::Deny),
        ("A=1 /bin/rm -r x",           Verdict::Deny),
        ("sh -c 'rm -r x'",            Verdict::Deny),
        ("echo a\u{9d};rm -r x",       Verdict::Deny),
    ];
    for (command, expected) in cases {
        assert_eq!(rules.judge(&[], "shell", &about(command, Risk::Runs)).0, expected, "{command:?}");
    }
    // A tool that may do everything needs no rule about what it does.
    let everything = self::rules(&[("shell", "allow")]);
    assert_eq!(everything.judge(&[], "shell", &about("echo $(id)", Risk::Runs)).0, Verdict::Allow);
    assert_eq!(everything.judge(&[], "shell", &about("echo \u{9d}", Risk::Runs)).0, Verdict::Ask);
}

#[test]
fn l3_a_remembered_command_is_the_whole_line_and_no_part_of_another() {
    let answers = [Rule::answer("shell", Some("make")), Rule::answer("shell", Some("cd /elsewhere"))];
    #[rustfmt::skip]
    let cases = [
        ("make",                   Verdict::Allow),
        (" make ",                 Verdict::Allow),
        ("cd /elsewhere && make",  Verdict::Ask),
        ("make; make",             Verdict::Ask),
        ("make $(id)",             Verdict::Ask),
        ("\u{200b}make",           Verdict::Ask),
    ];
    for (command, expected) in cases {
        assert_eq!(Rules::new().judge(&answers, "shell", &about(command, Risk::Runs)).0, expected, "{command:?}");
    }
    let hidden = Rule::answer("shell", Some("make\u{9d}"));
    assert_eq!(Rules::new().judge(&[hidden], "shell", &about("make\u{9d}", Risk::Runs)).0, Verdict::Ask);
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
