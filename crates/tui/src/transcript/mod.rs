//! The transcript: a list of items of which only the visible part is laid out, so that the cost of
//! a frame does not depend on its length.

mod command_output;
pub mod diff;
pub(crate) mod find;
mod fold_hint;
mod from_history;
mod from_updates;
pub mod item;
mod loop_notice;
mod partial_arguments;
pub mod plain_text;
mod scroll;
pub mod thinking;
pub mod tool;
pub mod user_prompt;

use std::borrow::Cow;
use std::collections::HashMap;

use aside_core::block::Time;
use aside_core::event::BlockId;
use aside_core::settings::ThinkingDisplay;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::paint::{clear, paint_row};
use crate::text::highlight_jobs::{HighlightId, HighlightJob, HighlightResult};
use crate::text::{HighlightedRows, Row, RowBackground, Span, TextRole};
use crate::theme::{Motion, Theme};
pub(crate) use command_output::{escape_markdown, output_markdown};
use find::MarkedWords;
pub use fold_hint::{HintKeys, OpenHint};
pub use from_updates::StartedCall;
pub(crate) use from_updates::{notice_text, turn_end_notice};
use item::{ItemFold, TranscriptItem};
use scroll::{ScrollPos, SectionId};
use thinking::ThinkingShape;

const SPINNER: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
/// How long one spinner frame is shown.
pub const SPINNER_STEP_MS: u64 = 100;

/// What a layout depends on, besides the item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RenderContext {
    pub width: usize,
    pub view: ThinkingDisplay,
    pub now: Option<Time>,
    pub motion: Motion,
    /// The widest line of prose, in columns.
    pub prose_width: usize,
    pub keys: HintKeys,
}

impl RenderContext {
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
    items: Vec<TranscriptItem>,
    view: ThinkingDisplay,
    /// The first visible row.
    top: ScrollPos,
    /// The view follows new rows; the user has not scrolled away.
    follow: bool,
    /// Width and height of the last frame.
    size: (usize, usize),
    /// What is on each row of the last frame.
    hits: Vec<Option<RowHit>>,
    /// Where the last frame has the hint that leads to the end.
    hint: Option<Rect>,
    /// Sections with rows, which are dropped once they are not visible.
    laid_out: Vec<SectionId>,
    /// Fill the screen again, although the content shrank.
    refill: bool,
    focus: Option<usize>,
    /// The item whose rows the reader uses.
    reader_item: Option<usize>,
    /// The first folded thinking block, which shows how to open it.
    hint_item: Option<usize>,
    blocks: HashMap<BlockId, BlockPosition>,
    /// Where the items of the reply begin.
    reply_start: usize,
    calls: HashMap<String, usize>,
    /// The notes of the last request, and the lines that commands have printed since.
    request_notes: Vec<String>,
    /// Where the items of the running turn begin.
    turn_start: usize,
    /// Where the items of each restored message begin.
    message_starts: Vec<usize>,
    /// Prompts on the screen that the engine has not recorded yet.
    unrecorded_prompts: usize,
    now: Option<Time>,
    prose_width: usize,
    keys: HintKeys,
    marked: MarkedWords,
    /// The block that was opened to show a match, and its fold before.
    opened_by_find: Option<(usize, ItemFold)>,
    /// The item with the match that was shown last, and the first row of the view then.
    found_at: Option<(usize, ScrollPos)>,
    /// The id of the last highlight job.
    highlight_id: HighlightId,
}

/// Where a block is shown. Some providers split one text into many blocks; here they are one text
/// again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct BlockPosition {
    item: usize,
    /// Where its text begins, in bytes.
    from: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowHit {
    pub item: usize,
    pub part: HitPart,
}

/// The hint at the bottom for a user who has scrolled away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BottomHint {
    /// A reply is streaming.
    Live,
    End,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HitPart {
    Header,
    Body,
}

impl Default for Transcript {
    fn default() -> Transcript {
        Transcript::new(ThinkingDisplay::default())
    }
}

impl Transcript {
    pub fn new(view: ThinkingDisplay) -> Transcript {
        Transcript {
            items: Vec::new(),
            view,
            top: ScrollPos::default(),
            follow: true,
            size: (80, 24),
            hits: Vec::new(),
            hint: None,
            laid_out: Vec::new(),
            refill: false,
            focus: None,
            reader_item: None,
            hint_item: None,
            blocks: HashMap::new(),
            reply_start: 0,
            calls: HashMap::new(),
            turn_start: 0,
            message_starts: Vec::new(),
            unrecorded_prompts: 0,
            now: None,
            prose_width: usize::MAX,
            keys: HintKeys::default(),
            marked: MarkedWords::default(),
            opened_by_find: None,
            found_at: None,
            request_notes: Vec::new(),
            highlight_id: HighlightId::default(),
        }
    }

    pub fn items(&self) -> &[TranscriptItem] {
        &self.items
    }

    /// All rows of a thinking block, for the reader; none for other items.
    pub fn thinking_rows(&mut self, index: usize, width: usize) -> HighlightedRows<'_> {
        // Dropped once the reader shows another item or closes.
        if let Some(other) = self.reader_item.replace(index).filter(|read| *read != index)
            && let Some(item) = self.items.get_mut(other)
        {
            item.forget_rows();
        }
        match self.items.get_mut(index) {
            Some(TranscriptItem::Thinking(thinking)) => thinking.all_rows(width, self.prose_width),
            Some(
                TranscriptItem::User(_)
                | TranscriptItem::Text(_)
                | TranscriptItem::Tool(_)
                | TranscriptItem::Notice(_)
                | TranscriptItem::Output(_),
            )
            | None => HighlightedRows::plain(&[]),
        }
    }

    /// Visible code that is not highlighted yet.
    pub fn highlight_jobs(&mut self) -> Vec<HighlightJob> {
        let mut jobs = Vec::new();
        for index in self.laid_out.iter().map(|at| at.item).chain(self.reader_item) {
            if let Some(item) = self.items.get_mut(index) {
                jobs.extend(std::iter::from_fn(|| item.next_job(&mut self.highlight_id)));
            }
        }
        jobs
    }

    /// The counter for highlight job ids.
    pub fn highlight_id(&mut self) -> &mut HighlightId {
        &mut self.highlight_id
    }

    /// Applies a highlight result. Its text may be gone by now.
    pub fn apply_highlight(&mut self, result: &mut HighlightResult) -> bool {
        self.items.iter_mut().rev().any(|item| item.apply_highlight(result))
    }

    pub fn view(&self) -> ThinkingDisplay {
        self.view
    }

    pub fn set_now(&mut self, now: Time) {
        self.now = Some(now);
    }

    pub fn prose_width(&self) -> usize {
        self.prose_width
    }

    /// Sets the widest line of prose, in columns.
    pub fn set_prose_width(&mut self, columns: u64) {
        self.prose_width = usize::try_from(columns).unwrap_or(usize::MAX);
    }

    /// Changes how all thinking is displayed, including past thinking.
    pub fn set_view(&mut self, view: ThinkingDisplay) {
        self.view = view;
        for item in &mut self.items {
            if let TranscriptItem::Thinking(thinking) = item {
                thinking.reset_fold();
            }
        }
        self.refill = true;
    }

    /// Whether only a part is shown: the last rows of thinking, or the first of an output or a
    /// prompt.
    pub fn is_partial(&self, index: usize) -> bool {
        match self.items.get(index) {
            Some(TranscriptItem::Thinking(thinking)) => thinking.shape(self.view) == ThinkingShape::Tail,
            Some(TranscriptItem::Tool(tool)) => tool.is_partial(),
            Some(TranscriptItem::User(prompt)) => prompt.is_partial(),
            Some(TranscriptItem::Text(_) | TranscriptItem::Notice(_) | TranscriptItem::Output(_)) | None => false,
        }
    }

    /// How many sections have rows. Does not grow with the transcript.
    pub fn laid_out(&self) -> usize {
        self.laid_out.len()
    }

    /// What is on a row of the last frame.
    pub fn hit(&self, row: usize) -> Option<RowHit> {
        self.hits.get(row).copied().flatten()
    }

    pub fn focus(&self) -> Option<usize> {
        self.focus
    }

    pub fn set_focus(&mut self, focus: Option<usize>) {
        self.focus = focus;
    }

    pub fn push(&mut self, item: TranscriptItem) {
        self.items.push(item);
    }

    /// The keys that hints name.
    pub fn set_hint_keys(&mut self, keys: HintKeys) {
        self.keys = keys;
    }

    /// The width of the hint that leads to the end, on a screen of this width.
    pub(crate) fn end_hint_width(&self, bottom_hint: BottomHint, width: usize) -> usize {
        crate::text::width_of(&self.keys.end_hint(bottom_hint, width))
    }

    /// How to open this block.
    fn open_hint(&self, index: usize) -> OpenHint {
        let last = self.items.iter().rposition(|item| item.can_fold() && !item.is_hidden(self.view));
        self.keys.to_open(last == Some(index))
    }

    pub fn render_context(&self, motion: Motion) -> RenderContext {
        RenderContext {
            width: self.size.0,
            view: self.view,
            now: self.now,
            motion,
            prose_width: self.prose_width,
            keys: self.keys,
        }
    }

    pub fn draw(&mut self, area: Rect, buffer: &mut Buffer, theme: &Theme, bottom_hint: BottomHint) {
        let (width, height) = (usize::from(area.width).max(1), usize::from(area.height));
        self.resize(width, height);
        let context = self.render_context(theme.motion);
        self.place_view(&context);
        self.hits.clear();
        self.hits.resize(height, None);
        let mut used = PaintedArea { area, y: 0 };
        let mut seen = Vec::new();
        let mut next = Some(self.top.at).filter(|at| at.item < self.items.len());
        let mut skip = self.top.row;
        while let Some(at) = next.filter(|_| !used.is_full()) {
            self.draw_section(at, skip, &context, theme, buffer, &mut used);
            seen.push(at);
            next = self.next_section(at);
            skip = 0;
        }
        self.draw_sticky(area, &context, theme, buffer);
        let has_hint = !self.follow && height > 0 && self.bottom(&context) > self.top;
        self.hint = has_hint.then(|| draw_hint(area, buffer, theme, &self.keys.end_hint(bottom_hint, width)));
        self.forget_all_but(seen);
    }

    /// Whether the hint that leads to the end is drawn here.
    pub fn has_hint_at(&self, x: u16, y: u16) -> bool {
        self.hint.is_some_and(|hint| hint.contains((x, y).into()))
    }

    fn forget_all_but(&mut self, seen: Vec<SectionId>) {
        if let Some(item) = self.reader_item.take().and_then(|read| self.items.get_mut(read)) {
            item.forget_rows();
        }
        for gone in std::mem::replace(&mut self.laid_out, seen) {
            if !self.laid_out.contains(&gone)
                && let Some(item) = self.items.get_mut(gone.item)
            {
                item.forget_section(gone.section);
            }
        }
    }

    fn draw_section(
        &mut self,
        SectionId { item: index, section }: SectionId,
        skip: usize,
        context: &RenderContext,
        theme: &Theme,
        buffer: &mut Buffer,
        used: &mut PaintedArea,
    ) {
        let gap = self.gap(index);
        let Some(item) = self.items.get_mut(index) else { return };
        if item.is_hidden(context.view) {
            return;
        }
        let gutter = item.gutter(context.width).span();
        let mut skip = skip;
        if section == 0 {
            if self.hint_item.is_none() && item.is_folded_thinking(context.view) {
                self.hint_item = Some(index);
            }
            let hint = (self.hint_item == Some(index)).then(|| self.open_hint(index));
            let Some(item) = self.items.get(index) else { return };
            for _ in 0..gap {
                used.row(&mut skip, |_, _| ());
            }
            let header = item
                .header(context, hint.as_ref())
                .map(|row| if self.focus == Some(index) { row.with_background(RowBackground::Selected) } else { row });
            let hits = &mut self.hits;
            if let Some(header) = &header {
                used.row(&mut skip, |area, y| {
                    paint_row(buffer, area, y, header, None, theme);
                    set_hit(hits, y, RowHit { item: index, part: HitPart::Header });
                });
            }
        }
        let Some(item) = self.items.get_mut(index) else { return };
        let is_last = section + 1 == item.sections(context.view);
        let footer = if is_last { item.footer(context) } else { Vec::new() };
        let has_row_header = item.has_row_as_header();
        let before = if section == 0 { gap + usize::from(item.header(context, None).is_some()) } else { 0 };
        let body = item.body(section, context);
        let marked = self.marked.results(body.body.rows, context.width);
        let blank = usize::from(body.blank.is_some());
        for (at, row) in (skip..body.len()).filter_map(|at| body.row(at).map(|row| (at, row))) {
            if used.is_full() {
                return;
            }
            let part = if at == 0 && has_row_header { HitPart::Header } else { HitPart::Body };
            let row = match (&marked, at.checked_sub(blank)) {
                (Some(marked), Some(at)) => Cow::Owned(marked.mark(at, &row)),
                (Some(_), None) | (None, _) => row,
            };
            let is_picked = part == HitPart::Header && self.focus == Some(index)
                || self.marked.is_current(SectionId { item: index, section }, before + at);
            let picked = is_picked.then(|| row.clone().into_owned().with_background(RowBackground::Selected));
            let hits = &mut self.hits;
            used.row(&mut 0, |area, y| {
                paint_row(buffer, area, y, picked.as_ref().unwrap_or(&row), gutter.as_ref(), theme);
                set_hit(hits, y, RowHit { item: index, part });
            });
        }
        for row in footer.iter().skip(skip.saturating_sub(body.len())) {
            let hits = &mut self.hits;
            used.row(&mut 0, |area, y| {
                paint_row(buffer, area, y, row, gutter.as_ref(), theme);
                set_hit(hits, y, RowHit { item: index, part: HitPart::Body });
            });
        }
    }

    /// Keeps the header of a partly visible block at the top, so that thinking is always
    /// recognisable and can be folded.
    fn draw_sticky(&mut self, area: Rect, context: &RenderContext, theme: &Theme, buffer: &mut Buffer) {
        let SectionId { item: index, section } = self.top.at;
        let is_above = section > 0 || self.top.row > self.gap(index);
        let shown = self.hits.iter().take_while(|hit| matches!(hit, Some(hit) if hit.item == index)).count();
        if !is_above || shown < MIN_ROWS_BELOW_STICKY {
            return;
        }
        let header = self.items.get(index).and_then(|item| item.header(context, None));
        if let Some(header) = header {
            let first = Rect { height: 1, ..area };
            clear(buffer, first);
            paint_row(buffer, first, 0, &header.with_background(RowBackground::Selected), None, theme);
            set_hit(&mut self.hits, 0, RowHit { item: index, part: HitPart::Header });
        }
    }

    /// Blank rows before an item.
    fn gap(&self, index: usize) -> usize {
        let Some(item) = self.items.get(index).filter(|item| !item.is_hidden(self.view)) else { return 0 };
        let before = self.items.iter().take(index).rev().find(|item| !item.is_hidden(self.view));
        before.map_or(0, |before| usize::from(!item.is_adjacent_to(before, self.view)))
    }

    /// Rows of a section. The first section includes the blank rows before its item.
    fn height(&mut self, at: SectionId, context: &RenderContext) -> usize {
        let gap = if at.section == 0 { self.gap(at.item) } else { 0 };
        let Some(item) = self.items.get_mut(at.item) else { return 0 };
        if !self.laid_out.contains(&at) {
            self.laid_out.push(at);
        }
        match item.height(at.section, context) {
            0 => 0,
            height => gap + height,
        }
    }
}

/// With fewer visible rows, a sticky header is not worth its row.
const MIN_ROWS_BELOW_STICKY: usize = 4;

fn set_hit(hits: &mut [Option<RowHit>], y: u16, hit: RowHit) {
    if let Some(slot) = hits.get_mut(usize::from(y)) {
        *slot = Some(hit);
    }
}

/// How much of the area is painted.
struct PaintedArea {
    area: Rect,
    y: u16,
}

impl PaintedArea {
    fn is_full(&self) -> bool {
        self.y >= self.area.height
    }

    /// Paints one row, unless it is above or below the view.
    fn row(&mut self, skip: &mut usize, paint: impl FnOnce(Rect, u16)) {
        if *skip > 0 {
            *skip -= 1;
        } else if !self.is_full() {
            paint(self.area, self.y);
            self.y += 1;
        }
    }
}

/// Returns where it is drawn.
fn draw_hint(area: Rect, buffer: &mut Buffer, theme: &Theme, text: &str) -> Rect {
    let width = (crate::text::width_of(text) as u16).min(area.width);
    let last = Rect { x: area.right() - width, y: area.bottom() - 1, width, height: 1 };
    // On the line below, it covers no text.
    let below = Rect { y: area.bottom(), ..last };
    let is_free = below.positions().all(|at| buffer.cell(at).is_some_and(|cell| cell.symbol() == "─"));
    let hint = if is_free { below } else { last };
    let row = Row::new(vec![Span::new(TextRole::Accent, text)]).with_background(RowBackground::Selected);
    paint_row(buffer, hint, 0, &row, None, theme);
    hint
}
