//! Everything that was said, as a list of which only the visible part is ever
//! laid out. What a frame costs does not depend on how long the list is.

pub mod asked;
pub mod diff;
pub mod hunks;
pub mod item;
mod live;
pub mod plain;
mod scroll;
mod stuck;
pub mod thought;
pub mod tool;

use std::collections::HashMap;

use aside_core::block::Time;
use aside_core::event::BlockId;
use aside_core::settings::Display;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::paint::{clear, paint_row};
use crate::text::light::{Job, Lit, Ticket};
use crate::text::{Body, Ink, Row, Shade, Span};
use crate::theme::{Motion, Theme};
use item::Item;
pub use live::THINKING_ONLY;
pub(crate) use live::{ending, told_words};
use scroll::{At, Pos};
use thought::Shape;

const SPINNER: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
/// How long one picture of the spinner stands.
pub const SPINNER_STEP_MS: u64 = 100;

/// What a layout depends on besides the item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Look {
    pub width: usize,
    pub view: Display,
    pub now: Option<Time>,
    pub motion: Motion,
}

impl Look {
    pub fn spinner(&self) -> &'static str {
        match (self.motion, self.now) {
            (Motion::Still, _) | (_, None) => "…",
            (Motion::Spinner, Some(now)) => {
                let step = now.0 / SPINNER_STEP_MS % SPINNER.len() as u64;
                SPINNER.get(step as usize).copied().unwrap_or("…")
            }
        }
    }
}

#[derive(Debug)]
pub struct Transcript {
    items: Vec<Item>,
    view: Display,
    /// The first row that is shown.
    top: Pos,
    /// New rows are followed; the user has not scrolled away.
    follow: bool,
    /// Width and height of the last frame.
    size: (usize, usize),
    /// What stands on each row of the last frame.
    hits: Vec<Option<Hit>>,
    /// What has rows, to be forgotten once it is out of sight.
    laid: Vec<At>,
    /// The screen is to be filled although the content shrank.
    refill: bool,
    focus: Option<usize>,
    /// The item that the reader has all rows of.
    read: Option<usize>,
    /// The first thought that was folded says how to open it.
    hinted: Option<usize>,
    blocks: HashMap<BlockId, Place>,
    /// Where the items of the reply begin.
    reply_from: usize,
    calls: HashMap<String, usize>,
    /// Of the turn that runs: where its items begin.
    turn_from: usize,
    /// Where the items of each restored message begin.
    message_at: Vec<usize>,
    /// User messages shown that the engine has still to record.
    echoed: usize,
    now: Option<Time>,
    /// The last question to the highlighter.
    ticket: Ticket,
}

/// Where a block is shown. Some providers cut one text into many blocks, which
/// are one text again here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    item: usize,
    /// Where its text begins, in bytes.
    from: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hit {
    pub item: usize,
    pub part: Part,
}

/// What is at the end, for whoever has scrolled away from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Below {
    /// An answer that comes.
    Live,
    End,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    Header,
    Body,
}

impl Default for Transcript {
    fn default() -> Transcript {
        Transcript::new(Display::default())
    }
}

impl Transcript {
    pub fn new(view: Display) -> Transcript {
        Transcript {
            items: Vec::new(),
            view,
            top: Pos::default(),
            follow: true,
            size: (80, 24),
            hits: Vec::new(),
            laid: Vec::new(),
            refill: false,
            focus: None,
            read: None,
            hinted: None,
            blocks: HashMap::new(),
            reply_from: 0,
            calls: HashMap::new(),
            turn_from: 0,
            message_at: Vec::new(),
            echoed: 0,
            now: None,
            ticket: Ticket::default(),
        }
    }

    pub fn items(&self) -> &[Item] {
        &self.items
    }

    /// All rows of a thought, for the reader; none if it is no thought.
    pub fn thought_body(&mut self, index: usize, width: usize) -> Body<'_> {
        // Forgotten once another one is read or the reader is closed.
        if let Some(other) = self.read.replace(index).filter(|read| *read != index)
            && let Some(item) = self.items.get_mut(other)
        {
            item.forget_rows();
        }
        match self.items.get_mut(index) {
            Some(Item::Thought(thought)) => thought.whole_body(width),
            Some(Item::User(_) | Item::Text(_) | Item::Tool(_) | Item::Notice(_) | Item::Said(_)) | None => {
                Body::plain(&[])
            }
        }
    }

    /// Code in sight that has no colours yet.
    pub fn wants(&mut self) -> Vec<Job> {
        let mut jobs = Vec::new();
        for index in self.laid.iter().map(|at| at.item).chain(self.read) {
            if let Some(item) = self.items.get_mut(index) {
                jobs.extend(std::iter::from_fn(|| item.wants(&mut self.ticket)));
            }
        }
        jobs
    }

    /// Numbers for questions to the highlighter.
    pub fn ticket(&mut self) -> &mut Ticket {
        &mut self.ticket
    }

    /// Colours that the highlighter found. What they were for may be gone.
    pub fn lit(&mut self, lit: &mut Lit) -> bool {
        self.items.iter_mut().rev().any(|item| item.lit(lit))
    }

    pub fn view(&self) -> Display {
        self.view
    }

    pub fn set_now(&mut self, now: Time) {
        self.now = Some(now);
    }

    /// Changes how all thoughts look, those of the past too.
    pub fn set_view(&mut self, view: Display) {
        self.view = view;
        for item in &mut self.items {
            if let Item::Thought(thought) = item {
                thought.forget_choice();
            }
        }
        self.refill = true;
    }

    /// Of a thought only the last rows are shown, or of an output or a paste the first.
    pub fn is_window(&self, index: usize) -> bool {
        match self.items.get(index) {
            Some(Item::Thought(thought)) => thought.shape(self.view) == Shape::Window,
            Some(Item::Tool(tool)) => tool.is_part(),
            Some(Item::User(asked)) => asked.is_part(),
            Some(Item::Text(_) | Item::Notice(_) | Item::Said(_)) | None => false,
        }
    }

    pub fn toggle(&mut self, index: usize) {
        let view = self.view;
        if let Some(item) = self.items.get_mut(index) {
            item.toggle(view);
        }
    }

    /// How many parts of items have rows right now. It does not grow with the transcript.
    pub fn laid_out(&self) -> usize {
        self.laid.len()
    }

    /// What is on a row of the last frame.
    pub fn hit(&self, row: usize) -> Option<Hit> {
        self.hits.get(row).copied().flatten()
    }

    pub fn focus(&self) -> Option<usize> {
        self.focus
    }

    pub fn set_focus(&mut self, focus: Option<usize>) {
        self.focus = focus;
    }

    pub fn push(&mut self, item: Item) {
        self.items.push(item);
    }

    pub fn look(&self, motion: Motion) -> Look {
        Look { width: self.size.0, view: self.view, now: self.now, motion }
    }

    pub fn draw(&mut self, area: Rect, buffer: &mut Buffer, theme: &Theme, below: Below) {
        let (width, height) = (usize::from(area.width).max(1), usize::from(area.height));
        self.resize(width, height);
        let look = self.look(theme.motion);
        self.place(&look);
        self.hits.clear();
        self.hits.resize(height, None);
        let mut used = Used { area, y: 0 };
        let mut seen = Vec::new();
        let mut next = Some(self.top.at).filter(|at| at.item < self.items.len());
        let mut skip = self.top.row;
        while let Some(at) = next.filter(|_| !used.is_full()) {
            self.draw_section(at, skip, &look, theme, buffer, &mut used);
            seen.push(at);
            next = self.behind(at);
            skip = 0;
        }
        self.draw_sticky(area, &look, theme, buffer);
        if !self.follow && height > 0 {
            draw_hint(area, buffer, theme, below);
        }
        self.forget_all_but(seen);
    }

    fn forget_all_but(&mut self, seen: Vec<At>) {
        if let Some(item) = self.read.take().and_then(|read| self.items.get_mut(read)) {
            item.forget_rows();
        }
        for gone in std::mem::replace(&mut self.laid, seen) {
            if !self.laid.contains(&gone)
                && let Some(item) = self.items.get_mut(gone.item)
            {
                item.forget_section(gone.section);
            }
        }
    }

    fn draw_section(
        &mut self,
        At { item: index, section }: At,
        skip: usize,
        look: &Look,
        theme: &Theme,
        buffer: &mut Buffer,
        used: &mut Used,
    ) {
        let gap = self.gap(index);
        let Some(item) = self.items.get_mut(index) else { return };
        if item.is_hidden(look.view) {
            return;
        }
        let gutter = item.gutter(look.width).span();
        let mut skip = skip;
        if section == 0 {
            if self.hinted.is_none() && item.is_folded_thought(look.view) {
                self.hinted = Some(index);
            }
            for _ in 0..gap {
                used.row(&mut skip, |_, _| ());
            }
            let header = item
                .header(look, self.hinted == Some(index))
                .map(|row| if self.focus == Some(index) { row.shaded(Shade::Picked) } else { row });
            let hits = &mut self.hits;
            if let Some(header) = &header {
                used.row(&mut skip, |area, y| {
                    paint_row(buffer, area, y, header, None, theme);
                    set_hit(hits, y, Hit { item: index, part: Part::Header });
                });
            }
        }
        let footer = item.footer(look).filter(|_| section + 1 == item.sections(look.view));
        let is_headed = item.is_headed_by_itself();
        let body = item.body(section, look);
        for (at, row) in (skip..body.len()).filter_map(|at| body.row(at).map(|row| (at, row))) {
            if used.is_full() {
                return;
            }
            let part = if at == 0 && is_headed { Part::Header } else { Part::Body };
            let picked = (part == Part::Header && self.focus == Some(index))
                .then(|| row.clone().into_owned().shaded(Shade::Picked));
            let hits = &mut self.hits;
            used.row(&mut 0, |area, y| {
                paint_row(buffer, area, y, picked.as_ref().unwrap_or(&row), gutter.as_ref(), theme);
                set_hit(hits, y, Hit { item: index, part });
            });
        }
        if let (Some(row), true) = (&footer, skip <= body.len()) {
            let hits = &mut self.hits;
            used.row(&mut 0, |area, y| {
                paint_row(buffer, area, y, row, gutter.as_ref(), theme);
                set_hit(hits, y, Hit { item: index, part: Part::Body });
            });
        }
    }

    /// The header of a block whose rows are in sight and whose header is not
    /// stays at the top, so that one can always tell a thought and fold it.
    fn draw_sticky(&mut self, area: Rect, look: &Look, theme: &Theme, buffer: &mut Buffer) {
        let At { item: index, section } = self.top.at;
        let is_above = section > 0 || self.top.row > self.gap(index);
        let shown = self.hits.iter().take_while(|hit| matches!(hit, Some(hit) if hit.item == index)).count();
        if !is_above || shown < LEAST_BELOW_STICKY {
            return;
        }
        let header = self.items.get(index).and_then(|item| item.header(look, false));
        if let Some(header) = header {
            let first = Rect { height: 1, ..area };
            clear(buffer, first);
            paint_row(buffer, first, 0, &header.shaded(Shade::Picked), None, theme);
            set_hit(&mut self.hits, 0, Hit { item: index, part: Part::Header });
        }
    }

    /// Blank rows before an item.
    fn gap(&self, index: usize) -> usize {
        let Some(item) = self.items.get(index).filter(|item| !item.is_hidden(self.view)) else { return 0 };
        let before = self.items.iter().take(index).rev().find(|item| !item.is_hidden(self.view));
        before.map_or(0, |before| usize::from(!item.is_close_to(before, self.view)))
    }

    /// Rows of a section; the first one has the blank rows before its item.
    fn height(&mut self, at: At, look: &Look) -> usize {
        let gap = if at.section == 0 { self.gap(at.item) } else { 0 };
        let Some(item) = self.items.get_mut(at.item) else { return 0 };
        if !self.laid.contains(&at) {
            self.laid.push(at);
        }
        match item.height(at.section, look) {
            0 => 0,
            height => gap + height,
        }
    }
}

/// Less of a block below it is not worth a row.
const LEAST_BELOW_STICKY: usize = 4;

fn set_hit(hits: &mut [Option<Hit>], y: u16, hit: Hit) {
    if let Some(slot) = hits.get_mut(usize::from(y)) {
        *slot = Some(hit);
    }
}

/// How much of the area is painted.
struct Used {
    area: Rect,
    y: u16,
}

impl Used {
    fn is_full(&self) -> bool {
        self.y >= self.area.height
    }

    /// Paints one row, unless it is above the view or below it.
    fn row(&mut self, skip: &mut usize, paint: impl FnOnce(Rect, u16)) {
        if *skip > 0 {
            *skip -= 1;
        } else if !self.is_full() {
            paint(self.area, self.y);
            self.y += 1;
        }
    }
}

fn draw_hint(area: Rect, buffer: &mut Buffer, theme: &Theme, below: Below) {
    let text = match below {
        Below::Live => " ↓ live ",
        Below::End => " ↓ end ",
    };
    let width = (crate::text::width_of(text) as u16).min(area.width);
    let hint = Rect { x: area.right() - width, y: area.bottom() - 1, width, height: 1 };
    let row = Row::new(vec![Span::new(Ink::Accent, text)]).shaded(Shade::Picked);
    paint_row(buffer, hint, 0, &row, None, theme);
}
