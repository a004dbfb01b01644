//! Draws a screen as an SVG. Text uses any monospace font, stretched to its cells;
//! lines and symbols are drawn as shapes, because fonts differ.

use std::fmt::Write;

use vt100::{Color, Screen};

use super::emulator::{Background, Style};

const CELL_WIDTH: f32 = 8.4;
const ROW_HEIGHT: f32 = 20.0;
const FONT_SIZE: f32 = 14.0;
/// Around the rows, and the title bar above them.
const MARGIN: f32 = 14.0;
const TITLE_BAR: f32 = 34.0;

struct Palette {
    background: &'static str,
    ink: &'static str,
    frame: &'static str,
}

impl Palette {
    fn of(background: Background) -> Palette {
        match background {
            Background::Dark => Palette { background: "#101114", ink: "#d6d9e0", frame: "#33363d" },
            Background::Light => Palette { background: "#ffffff", ink: "#24292f", frame: "#d0d7de" },
        }
    }

    fn colour(&self, colour: Color) -> String {
        match colour {
            Color::Rgb(r, g, b) => format!("#{r:02x}{g:02x}{b:02x}"),
            Color::Default | Color::Idx(_) => self.ink.to_owned(),
        }
    }
}

/// Adjacent cells with the same style.
struct CellRun {
    column: u16,
    cells: u16,
    text: String,
    style: Style,
}

pub(crate) fn draw(screen: &Screen, background: Background) -> String {
    let palette = Palette::of(background);
    let (rows, columns) = screen.size();
    let (width, height) =
        (f32::from(columns.get()) * CELL_WIDTH + 2.0 * MARGIN, f32::from(rows.get()) * ROW_HEIGHT + TITLE_BAR + MARGIN);
    let mut out = String::new();
    writeln!(
        out,
        r#"<svg xmlns="http://www.w3.org/2000/svg" xml:space="preserve" viewBox="0 0 {width:.0} {height:.0}" width="{width:.0}" font-family="ui-monospace,SFMono-Regular,'SF Mono',Menlo,Consolas,'DejaVu Sans Mono','Liberation Mono',monospace" font-size="{FONT_SIZE}">"#
    )
    .unwrap();
    writeln!(out, "<style>.k{{shape-rendering:crispEdges}}.b{{font-weight:700}}.i{{font-style:italic}}</style>")
        .unwrap();
    writeln!(
        out,
        r#"<rect x=".5" y=".5" width="{:.0}" height="{:.0}" rx="10" fill="{}" stroke="{}"/>"#,
        width - 1.0,
        height - 1.0,
        palette.background,
        palette.frame
    )
    .unwrap();
    for (index, colour) in ["#ec6a5e", "#f4bf4f", "#61c554"].into_iter().enumerate() {
        writeln!(out, r#"<circle cx="{}" cy="17" r="5.5" fill="{colour}"/>"#, 20 + 20 * index).unwrap();
    }
    for row in 0..rows.get() {
        let runs = runs(screen, row);
        for run in &runs {
            draw_background(&mut out, &palette, row, run);
        }
        for run in &runs {
            draw_text(&mut out, &palette, row, run);
        }
    }
    out.push_str("</svg>\n");
    out
}

fn runs(screen: &Screen, row: u16) -> Vec<CellRun> {
    let mut runs: Vec<CellRun> = Vec::new();
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
            _ => runs.push(CellRun { column, cells, text: text.to_owned(), style }),
        }
    }
    runs
}

/// Characters that every font has, all with the same width.
fn is_plain(text: &str) -> bool {
    text.chars().all(|letter| matches!(letter, ' '..='~' | '·' | '…'))
}

fn cell_rectangle(row: u16, run: &CellRun) -> (f32, f32, f32) {
    (
        MARGIN + f32::from(run.column) * CELL_WIDTH,
        TITLE_BAR + f32::from(row) * ROW_HEIGHT,
        f32::from(run.cells) * CELL_WIDTH,
    )
}

fn draw_background(out: &mut String, palette: &Palette, row: u16, run: &CellRun) {
    let colour = match (run.style.back, run.style.inverse) {
        (_, true) => palette.colour(run.style.ink),
        (Color::Default, false) => return,
        (colour, false) => palette.colour(colour),
    };
    let (x, y, wide) = cell_rectangle(row, run);
    writeln!(out, r#"<rect class="k" x="{x:.1}" y="{y:.1}" width="{wide:.1}" height="{ROW_HEIGHT}" fill="{colour}"/>"#)
        .unwrap();
}

fn draw_text(out: &mut String, palette: &Palette, row: u16, run: &CellRun) {
    let text = run.text.trim_end();
    if text.is_empty() {
        return;
    }
    let ink = if run.style.inverse { palette.background.to_owned() } else { palette.colour(run.style.ink) };
    let (x, y, wide) = cell_rectangle(row, run);
    if draw_symbol(out, text, &ink, x, y, wide) {
        return;
    }
    let lead = text.len() - text.trim_start().len();
    let text = text.trim_start();
    let x = x + lead as f32 * CELL_WIDTH;
    let wide = text.chars().count() as f32 * CELL_WIDTH;
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

/// Draws symbols that many fonts lack or draw differently.
fn draw_symbol(out: &mut String, text: &str, ink: &str, x: f32, y: f32, wide: f32) -> bool {
    let (middle, half) = (y + ROW_HEIGHT / 2.0, CELL_WIDTH / 2.0);
    let line = |points: &str| {
        format!(r#"<path d="{points}" fill="none" stroke="{ink}" stroke-width="1.6" stroke-linejoin="round"/>"#)
    };
    let shape = match text {
        "│" => {
            format!(r#"<rect x="{:.1}" y="{y:.1}" width="1.2" height="{ROW_HEIGHT}" fill="{ink}"/>"#, x + half - 0.6)
        }
        "▶" => format!(r#"<path d="M{:.1} {:.1}l7 4.5-7 4.5z" fill="{ink}"/>"#, x + 0.8, middle - 4.5),
        "▼" => format!(r#"<path d="M{:.1} {:.1}h8.4l-4.2 7z" fill="{ink}"/>"#, x, middle - 3.5),
        "❯" => line(&format!("M{:.1} {:.1}l4 5-4 5", x + 2.0, middle - 5.0)),
        "✓" => line(&format!("M{:.1} {:.1}l2.6 3 4-7", x + 0.8, middle + 0.6)),
        _ if text.chars().all(|letter| letter == '─') => {
            format!(r#"<rect x="{x:.1}" y="{middle:.1}" width="{wide:.1}" height="1.2" fill="{ink}"/>"#)
        }
        _ => match text.chars().next().map(u32::from).filter(|code| (0x2800..0x2900).contains(code)) {
            Some(code) => draw_braille(code - 0x2800, ink, x, y),
            None => return false,
        },
    };
    writeln!(out, "{shape}").unwrap();
    true
}

/// Draws a Braille character: eight dots, one bit each.
fn draw_braille(bits: u32, ink: &str, x: f32, y: f32) -> String {
    const PLACES: [(f32, f32); 8] =
        [(0.0, 0.0), (0.0, 1.0), (0.0, 2.0), (1.0, 0.0), (1.0, 1.0), (1.0, 2.0), (0.0, 3.0), (1.0, 3.0)];
    let set = PLACES.iter().enumerate().filter(|(bit, _)| bits >> bit & 1 == 1);
    let dot = |(_, (right, down)): (usize, &(f32, f32))| {
        format!(r#"<circle cx="{:.1}" cy="{:.1}" r="1.1" fill="{ink}"/>"#, x + 2.4 + right * 3.6, y + 4.6 + down * 3.6)
    };
    set.map(dot).collect()
}
