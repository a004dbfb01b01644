//! A screen as an SVG: letters in whatever monospace font there is, each run
//! held to its cells; lines and signs drawn, so that no font bends them.

use std::fmt::Write;

use vt100::{Color, Screen};

use super::emulator::{Ground, Style};

const CELL: f32 = 8.4;
const LINE: f32 = 20.0;
const FONT: f32 = 14.0;
/// Around the rows, and the bar above them.
const EDGE: f32 = 14.0;
const BAR: f32 = 34.0;

struct Paper {
    ground: &'static str,
    ink: &'static str,
    frame: &'static str,
}

impl Paper {
    fn of(ground: Ground) -> Paper {
        match ground {
            Ground::Dark => Paper { ground: "#101114", ink: "#d6d9e0", frame: "#33363d" },
            Ground::Light => Paper { ground: "#ffffff", ink: "#24292f", frame: "#d0d7de" },
        }
    }

    fn colour(&self, colour: Color) -> String {
        match colour {
            Color::Rgb(r, g, b) => format!("#{r:02x}{g:02x}{b:02x}"),
            Color::Default | Color::Idx(_) => self.ink.to_owned(),
        }
    }
}

/// Cells side by side that look the same.
struct Run {
    column: u16,
    cells: u16,
    text: String,
    style: Style,
}

pub(crate) fn draw(screen: &Screen, ground: Ground) -> String {
    let paper = Paper::of(ground);
    let (rows, columns) = screen.size();
    let (width, height) = (f32::from(columns.get()) * CELL + 2.0 * EDGE, f32::from(rows.get()) * LINE + BAR + EDGE);
    let mut out = String::new();
    writeln!(
        out,
        r#"<svg xmlns="http://www.w3.org/2000/svg" xml:space="preserve" viewBox="0 0 {width:.0} {height:.0}" width="{width:.0}" font-family="ui-monospace,SFMono-Regular,'SF Mono',Menlo,Consolas,'DejaVu Sans Mono','Liberation Mono',monospace" font-size="{FONT}">"#
    )
    .unwrap();
    writeln!(out, "<style>.k{{shape-rendering:crispEdges}}.b{{font-weight:700}}.i{{font-style:italic}}</style>")
        .unwrap();
    writeln!(
        out,
        r#"<rect x=".5" y=".5" width="{:.0}" height="{:.0}" rx="10" fill="{}" stroke="{}"/>"#,
        width - 1.0,
        height - 1.0,
        paper.ground,
        paper.frame
    )
    .unwrap();
    for (index, colour) in ["#ec6a5e", "#f4bf4f", "#61c554"].into_iter().enumerate() {
        writeln!(out, r#"<circle cx="{}" cy="17" r="5.5" fill="{colour}"/>"#, 20 + 20 * index).unwrap();
    }
    for row in 0..rows.get() {
        let runs = runs(screen, row);
        for run in &runs {
            back(&mut out, &paper, row, run);
        }
        for run in &runs {
            letters(&mut out, &paper, row, run);
        }
    }
    out.push_str("</svg>\n");
    out
}

fn runs(screen: &Screen, row: u16) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for column in 0..screen.size().1.get() {
        let Some(cell) = screen.cell(row, column).filter(|cell| !cell.is_wide_continuation()) else { continue };
        let text = if cell.has_contents() { cell.contents() } else { " " };
        let (style, cells) = (Style::of(cell), if cell.is_wide() { 2 } else { 1 });
        match runs.last_mut() {
            Some(last) if last.style == style && is_plain(text) && is_plain(&last.text) && cells == 1 => {
                last.cells += 1;
                last.text.push_str(text);
            }
            Some(last) if last.style == style && text == "─" && last.text.ends_with(text) => {
                last.cells += 1;
                last.text.push_str(text);
            }
            _ => runs.push(Run { column, cells, text: text.to_owned(), style }),
        }
    }
    runs
}

/// Letters that any font has, and at one width.
fn is_plain(text: &str) -> bool {
    text.chars().all(|letter| matches!(letter, ' '..='~' | '·' | '…'))
}

fn place(row: u16, run: &Run) -> (f32, f32, f32) {
    (EDGE + f32::from(run.column) * CELL, BAR + f32::from(row) * LINE, f32::from(run.cells) * CELL)
}

fn back(out: &mut String, paper: &Paper, row: u16, run: &Run) {
    let colour = match (run.style.back, run.style.inverse) {
        (_, true) => paper.colour(run.style.ink),
        (Color::Default, false) => return,
        (colour, false) => paper.colour(colour),
    };
    let (x, y, wide) = place(row, run);
    writeln!(out, r#"<rect class="k" x="{x:.1}" y="{y:.1}" width="{wide:.1}" height="{LINE}" fill="{colour}"/>"#)
        .unwrap();
}

fn letters(out: &mut String, paper: &Paper, row: u16, run: &Run) {
    let text = run.text.trim_end();
    if text.is_empty() {
        return;
    }
    let ink = if run.style.inverse { paper.ground.to_owned() } else { paper.colour(run.style.ink) };
    let (x, y, wide) = place(row, run);
    if sign(out, text, &ink, x, y, wide) {
        return;
    }
    let lead = text.len() - text.trim_start().len();
    let text = text.trim_start();
    let x = x + lead as f32 * CELL;
    let wide = text.chars().count() as f32 * CELL;
    let mut class = String::new();
    for (is_so, name) in [(run.style.bold, "b"), (run.style.italic, "i")] {
        if is_so {
            class.push_str(name);
            class.push(' ');
        }
    }
    let class = if class.is_empty() { class } else { format!(r#" class="{}""#, class.trim_end()) };
    let dim = if run.style.dim { r#" opacity=".65""# } else { "" };
    let under = if run.style.underlined { r#" text-decoration="underline""# } else { "" };
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let base = y + 14.5;
    writeln!(
        out,
        r#"<text x="{x:.1}" y="{base:.1}" textLength="{wide:.1}" lengthAdjust="spacingAndGlyphs" fill="{ink}"{class}{dim}{under}>{text}</text>"#
    )
    .unwrap();
}

/// What fonts draw each in its own way, or not at all.
fn sign(out: &mut String, text: &str, ink: &str, x: f32, y: f32, wide: f32) -> bool {
    let (middle, half) = (y + LINE / 2.0, CELL / 2.0);
    let line = |points: &str| {
        format!(r#"<path d="{points}" fill="none" stroke="{ink}" stroke-width="1.6" stroke-linejoin="round"/>"#)
    };
    let shape = match text {
        "│" => format!(r#"<rect x="{:.1}" y="{y:.1}" width="1.2" height="{LINE}" fill="{ink}"/>"#, x + half - 0.6),
        "▶" => format!(r#"<path d="M{:.1} {:.1}l7 4.5-7 4.5z" fill="{ink}"/>"#, x + 0.8, middle - 4.5),
        "▼" => format!(r#"<path d="M{:.1} {:.1}h8.4l-4.2 7z" fill="{ink}"/>"#, x, middle - 3.5),
        "❯" => line(&format!("M{:.1} {:.1}l4 5-4 5", x + 2.0, middle - 5.0)),
        "✓" => line(&format!("M{:.1} {:.1}l2.6 3 4-7", x + 0.8, middle + 0.6)),
        _ if text.chars().all(|letter| letter == '─') => {
            format!(r#"<rect x="{x:.1}" y="{middle:.1}" width="{wide:.1}" height="1.2" fill="{ink}"/>"#)
        }
        _ => match text.chars().next().map(u32::from).filter(|code| (0x2800..0x2900).contains(code)) {
            Some(code) => dots(code - 0x2800, ink, x, y),
            None => return false,
        },
    };
    writeln!(out, "{shape}").unwrap();
    true
}

/// A letter of Braille: eight places, a bit for each.
fn dots(bits: u32, ink: &str, x: f32, y: f32) -> String {
    const PLACES: [(f32, f32); 8] =
        [(0.0, 0.0), (0.0, 1.0), (0.0, 2.0), (1.0, 0.0), (1.0, 1.0), (1.0, 2.0), (0.0, 3.0), (1.0, 3.0)];
    let set = PLACES.iter().enumerate().filter(|(bit, _)| bits >> bit & 1 == 1);
    let dot = |(_, (right, down)): (usize, &(f32, f32))| {
        format!(r#"<circle cx="{:.1}" cy="{:.1}" r="1.1" fill="{ink}"/>"#, x + 2.4 + right * 3.6, y + 4.6 + down * 3.6)
    };
    set.map(dot).collect()
}
