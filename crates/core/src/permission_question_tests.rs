use proptest::prelude::*;
use regex_syntax::hir::{Class, HirKind};

use super::rendering::{body, columns};
use super::visible_text::VisibleLine;
use super::*;

fn command(text: &str) -> PermissionQuestion {
    let (preview, covers) = (Some(text.to_owned()), Some(format!("shell:{text}")));
    PermissionQuestion { preview, covers, ..PermissionQuestion::new("shell", text, Risk::Runs) }
}

fn edit(path: &str, diff: &str) -> PermissionQuestion {
    let (preview, covers) = (Some(diff.to_owned()), Some("edit".to_owned()));
    PermissionQuestion { preview, covers, ..PermissionQuestion::new("edit", path, Risk::Writes) }
}

fn text(question: &PermissionQuestion, width: usize, rows: usize) -> String {
    let rendered =
        render(question, QuestionLayout { width: Some(width), rows: Some(rows), ..QuestionLayout::default() });
    rendered.lines().map(|line| line + "\n").collect()
}

fn whole_body(question: &PermissionQuestion, width: Option<usize>) -> Vec<BodyRow> {
    let lines: Vec<VisibleLine> = visible_lines(question.body(), question.content()).collect();
    body(&lines, QuestionLayout { width, rows: None, ..QuestionLayout::default() }).rows
}

#[test]
fn t9_escape_strings_in_a_command_are_shown_with_their_contents() {
    #[rustfmt::skip]
    let cases = [
        ("C1 command string", "git status \u{9d};touch X;: \u{9c}", "git status <U+009D>;touch X;: <U+009C>"),
        ("OSC",               "ls \u{1b}]0;touch X\u{7}",          "ls ␛]0;touch X␇"),
        ("DCS",               "ls \u{1b}Ptouch X\u{1b}\\",         "ls ␛Ptouch X␛\\"),
        ("CSI",               "ls \u{1b}[2Ktouch X",               "ls ␛[2Ktouch X"),
        ("bidi",              "ls \u{202e}X hcuot",                "ls <U+202E>X hcuot"),
        ("zero width",        "ls \u{200b}X",                      "ls <U+200B>X"),
        ("tag letters",       "ls \u{e0041}X",                     "ls <U+E0041>X"),
        ("variation",         "ls X\u{fe0f}",                      "ls X<U+FE0F>"),
        ("CR",                "rm -rf ~\rls   ",                   "rm -rf ~␍ls   "),
        ("TAB and DEL",       "ls\tX\u{7f}",                       "ls␉X␡"),
        ("no-break space",    "ls\u{a0}X",                         "ls<U+00A0>X"),
    ];
    for (name, command_line, shown) in cases {
        let question = command(command_line);
        let expected = format!("shell: {shown}\n│!{shown}\nasked each time: invisible characters\n");
        assert_eq!(text(&question, 80, 10), expected, "{name}");
        assert_eq!(question.rememberable_scope(), None, "{name}: no lasting answer");
    }
    assert_eq!(command("git status").rememberable_scope().as_deref(), Some("shell:git status"));
}

#[test]
fn every_control_format_and_separator_character_is_visible() {
    for class in [r"\p{Cc}", r"\p{Cf}", r"[\p{Zl}\p{Zp}]", r"\p{Default_Ignorable_Code_Point}"] {
        let parsed = regex_syntax::parse(class).unwrap();
        let HirKind::Class(Class::Unicode(set)) = parsed.kind() else { panic!("{class} is a class") };
        for range in set.ranges() {
            for c in range.start()..=range.end() {
                assert!(is_invisible(c), "U+{:04X} of {class}", u32::from(c));
                assert!(!visible(&c.to_string()).contains(c), "U+{:04X} of {class}", u32::from(c));
            }
        }
    }
}

#[test]
fn tabs_and_crlf_in_a_file_are_shown_but_not_marked() {
    let question = edit("Makefile", "@@ -1 +1 @@\n-\told\r\n+\tnew\r\n");
    assert_eq!(text(&question, 80, 10), "edit: Makefile\n│ @@ -1 +1 @@\n│ -␉old␍\n│ +␉new␍\n");
    assert_eq!(question.rememberable_scope().as_deref(), Some("edit"));
    assert_eq!(edit("a", "+a\rb\n").rememberable_scope(), None, "a CR inside a line hides the text before it");
}

#[test]
fn a_command_cannot_imitate_our_own_lines() {
    let padded = format!("true{}allow? [y]es", " ".repeat(36));
    let question = command(&format!("{padded}\ntier: strong (network off)"));
    let shown = text(&question, 40, 20);
    let body: Vec<&str> = shown.lines().skip(1).collect();
    assert!(body.iter().all(|row| row.starts_with('│')), "{shown}");
    assert!(shown.lines().all(|row| row.chars().count() <= 40), "{shown}");
    assert!(shown.contains("│ ↪ "), "a continued row is marked: {shown}");
}

#[test]
fn any_width_shows_the_whole_body() {
    for width in 0..12 {
        let rows = whole_body(&command("漢字 and a \u{1b}[2J"), Some(width));
        let text: String = rows.iter().map(|row| row.text.as_str()).collect();
        assert_eq!(text, "漢字 and a ␛[2J", "{width}");
    }
}

#[test]
fn the_coverage_of_an_answer_is_one_short_line() {
    let rendered = |text: &str| {
        render(&command(text), QuestionLayout { width: Some(80), rows: Some(9), ..QuestionLayout::default() })
    };
    assert_eq!(rendered("make").covers.as_deref(), Some("s and p: aside will not ask again about `shell:make`"));
    let narrow =
        render(&command("make"), QuestionLayout { width: Some(40), rows: Some(9), ..QuestionLayout::default() });
    assert_eq!(narrow.covers.as_deref(), Some("s, p: always allow `shell:make`"));
    let fake = format!("touch made; : '{}shell: git status'", " ".repeat(2000));
    assert_eq!(rendered(&fake).covers.as_deref(), Some("s, p: always allow exactly this"));
    assert_eq!(rendered("make \u{200b}").covers, None);
}

#[test]
fn hidden_lines_are_counted_and_reported() {
    let diff: String = (1..=30).map(|n| format!("+line {n}\n")).collect();
    let question = PermissionQuestion { protected: Some(".git/config".to_owned()), ..edit(".git/config", &diff) };
    let shown = text(&question, 60, 5);
    assert_eq!(shown.lines().count(), 1 + 5 + 2, "{shown}");
    assert!(shown.contains("│ +line 5\n"), "{shown}");
    assert!(shown.contains("protected: .git/config\n25 lines not shown (v shows all), from line 6 on\n"), "{shown}");
    assert_eq!(whole_body(&question, Some(60)).len(), 30);

    let long = command(&"x".repeat(500));
    let shown = text(&long, 60, 3);
    assert!(
        shown.ends_with("1 line not shown (v shows all), from line 1 on\n"),
        "a line cut in two is not shown: {shown}"
    );
}

#[test]
fn facts_are_shown_in_order() {
    let confinement = Confinement {
        tier: Tier::Kernel,
        network: Network::Off,
        warnings: vec!["can signal your processes".to_owned()],
    };
    let question = PermissionQuestion { confinement: Some(confinement), ..command("make") };
    assert_eq!(text(&question, 80, 9), "shell: make\n│ make\ntier: kernel (network off), can signal your processes\n");
    let outside = PermissionQuestion { risk: Risk::Outside, ..edit("/etc/hosts", "+x\n") };
    assert_eq!(text(&outside, 80, 9), "edit: /etc/hosts\n│ +x\noutside this folder: /etc/hosts\n");
}

#[test]
fn a_path_without_a_preview_is_shown_in_the_first_line_only() {
    assert_eq!(text(&PermissionQuestion::new("read", "src/a.rs", Risk::Reads), 80, 9), "read: src/a.rs\n");
}

#[test]
fn a_path_too_long_for_its_line_is_shown_in_full_in_the_body() {
    let path = format!("{}/secret", "deep/".repeat(20));
    let shown = text(&edit(&path, "+x\n"), 40, 9);
    let body: String = shown.lines().skip(1).map(|row| row.trim_start_matches("│ ").trim_start_matches("↪ ")).collect();
    assert!(shown.lines().next().is_some_and(|head| head.ends_with('…')), "{shown}");
    assert!(body.starts_with(&path), "{shown}");
}

proptest! {
    #[test]
    fn no_character_of_a_question_is_removed(text in "\\PC{0,20}[a-c\u{1b}\u{9d}\u{202e}\u{200b}\t\r\n;]{0,30}") {
        let question = command(&text);
        let shown = visible_body(&question);
        prop_assert!(shown.chars().all(|c| c == '\n' || !is_invisible(c)));
        // Every visible character is present, in order.
        let mut rest = shown.chars();
        for c in text.strip_suffix('\n').unwrap_or(&text).chars().filter(|c| !is_invisible(*c)) {
            prop_assert!(rest.any(|other| other == c), "{:?} in {:?}", c, shown);
        }
        let rows = whole_body(&question, Some(20));
        prop_assert!(rows.iter().all(|row| row.text.chars().map(columns).sum::<usize>() <= 16));
        let joined: String = rows.iter().map(|row| if row.is_continued { row.text.clone() } else { format!("\n{}", row.text) }).collect();
        prop_assert_eq!(joined.strip_prefix('\n').unwrap_or(""), shown);
    }
}

#[test]
fn l5_the_answers_about_a_folder_say_that_a_yes_lasts_and_offer_no_message() {
    let question = PermissionQuestion {
        kind: QuestionKind::Trust,
        ..PermissionQuestion::new("trust", "/home/me/project", Risk::Reads)
    };
    let choices = AnswerChoices::new(&question);
    let labels: Vec<(char, &str)> =
        choices.iter().map(|(choice, _)| (choice.key(), choice.label(choices.kind()))).collect();
    assert_eq!(labels, [('y', "from now on"), ('n', "no")]);
}

#[test]
fn t21_the_answers_to_an_undo_fit_an_undo() {
    let question = PermissionQuestion {
        covers: Some("undo".to_owned()),
        kind: QuestionKind::Undo,
        ..PermissionQuestion::new("undo", "put 2 files back too?", Risk::Writes)
    };
    let choices = AnswerChoices::new(&question);
    let labels: Vec<(char, &str)> =
        choices.iter().map(|(choice, _)| (choice.key(), choice.label(choices.kind()))).collect();
    assert_eq!(labels, [('y', "the files too"), ('n', "only the conversation")]);
    assert!(!choices.offers_lasting());
    assert_eq!(choices.kind().stop_label(), "undoes nothing");
}
