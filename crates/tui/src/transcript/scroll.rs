//! The scroll position. It is a row of a section of an item, never a row count from the start, so
//! that changes elsewhere cannot move it and the height of the rest is not needed.

use std::ops::Range;

use super::item::TranscriptItem;
use super::thinking::ThinkingShape;
use super::{RenderContext, Transcript};
use crate::theme::Motion;
use aside_front::MessagePart;

/// A section of an item, which is laid out as a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) struct SectionId {
    pub(super) item: usize,
    pub(super) section: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) struct ScrollPos {
    pub(super) at: SectionId,
    /// In the first section, counted from the blank rows before the item.
    pub(super) row: usize,
}

impl ScrollPos {
    fn of(item: usize, row: usize) -> ScrollPos {
        ScrollPos { at: SectionId { item, section: 0 }, row }
    }
}

impl Transcript {
    pub fn is_following(&self) -> bool {
        self.follow
    }

    /// Scrolls to the end and follows it.
    pub fn follow(&mut self) {
        self.follow = true;
        self.refill = true;
    }

    pub fn to_start(&mut self) {
        self.top = ScrollPos::default();
        self.follow = false;
    }

    /// Negative numbers scroll up.
    pub fn scroll(&mut self, rows: isize) {
        let context = self.render_context(Motion::Still);
        let steps = rows.unsigned_abs();
        if rows < 0 {
            self.top = self.up(self.top, steps, &context);
            self.follow = false;
            return;
        }
        let last = self.bottom(&context);
        let down = self.down(self.top, steps, &context);
        if down >= last {
            self.top = self.top.max(last);
            self.follow = true;
        } else {
            self.top = down;
        }
    }

    /// Scrolls to a message of the restored history. Returns its items, or the one of the part.
    pub fn go_to(&mut self, message: usize, part: MessagePart) -> Option<Range<usize>> {
        let first = self.message_starts.get(message).copied()?;
        let end = self.message_starts.get(message + 1).copied().unwrap_or(self.items.len());
        let mut thinking_blocks =
            (first..end).filter(|index| matches!(self.items.get(*index), Some(TranscriptItem::Thinking(_))));
        let found = match part {
            MessagePart::Start => first,
            MessagePart::Thinking(nth) => thinking_blocks.nth(nth).unwrap_or(first),
        };
        let view = self.view;
        if let Some(TranscriptItem::Thinking(thinking)) = self.items.get_mut(found)
            && part != MessagePart::Start
            && thinking.shape(view) != ThinkingShape::Open
        {
            thinking.toggle(view);
        }
        // The match may be in the hidden part.
        if let Some(TranscriptItem::User(prompt)) = self.items.get_mut(found) {
            prompt.open();
        }
        self.top = ScrollPos::of(found, 0);
        self.follow = false;
        Some(match part {
            MessagePart::Start => first..end,
            MessagePart::Thinking(_) => found..found + 1,
        })
    }

    /// Opens or folds a block. An opened block keeps its header where it is and shows its
    /// beginning below it; the view stops following if that leaves no room for the end.
    pub fn toggle(&mut self, index: usize) {
        let (view, context) = (self.view, self.render_context(Motion::Still));
        let header_row = self.row_in_view(index, &context);
        let Some(item) = self.items.get_mut(index) else { return };
        item.toggle(view);
        let is_open = item.is_open(view);
        if self.opened_by_find.as_ref().is_some_and(|(at, _)| *at == index) {
            // The user's choice stays.
            self.keep_found_open();
        }
        if !is_open {
            return;
        }
        let header = ScrollPos::of(index, self.gap(index));
        match header_row {
            // Below the last row there is no room for the beginning.
            Some(row) if row + 1 >= self.size.1 => self.top = self.up(header, self.size.1 / 2, &context),
            Some(_) => (),
            None => self.top = header,
        }
        if self.bottom(&context) > self.top {
            self.follow = false;
        }
    }

    /// The row of the view on which the header of an item stands.
    fn row_in_view(&mut self, index: usize, context: &RenderContext) -> Option<usize> {
        let header = ScrollPos::of(index, self.gap(index));
        if header < self.top {
            return None;
        }
        let height = self.size.1;
        Some(self.rows_between(self.top, header, height, context)).filter(|row| *row < height)
    }

    pub fn page(&self) -> isize {
        isize::try_from(self.size.1.saturating_sub(2).max(1)).unwrap_or(1)
    }

    /// Focuses the next foldable block in a direction.
    pub fn focus_next(&mut self, forward: bool) {
        let foldable = |transcript: &Transcript, index: usize| {
            transcript.items.get(index).is_some_and(|item| item.can_fold() && !item.is_hidden(transcript.view))
        };
        let from = self.focus;
        let found = if forward {
            let start = from.map_or(self.top.at.item, |at| at + 1);
            (start..self.items.len()).find(|index| foldable(self, *index))
        } else if let Some(end) = from {
            (0..end).rev().find(|index| foldable(self, *index))
        } else {
            let view = self.view;
            self.last_read(|item| item.can_fold() && !item.is_hidden(view))
        };
        if let Some(found) = found {
            self.focus = Some(found);
            self.show(found);
        }
    }

    /// The last item of a kind that the user looks at: the one with the match that was shown, else the last one on the
    /// screen or above it. At the end it is the last of all.
    pub fn last_read(&mut self, wanted: impl Fn(&TranscriptItem) -> bool) -> Option<usize> {
        let seen = if self.follow { self.items.len() } else { self.last_visible() + 1 };
        let found = self.found_at.filter(|(_, top)| !self.follow && *top == self.top).map(|(item, _)| item);
        let is_wanted = |index: &usize| self.items.get(*index).is_some_and(&wanted);
        let seen = || self.items.iter().take(seen).rposition(&wanted);
        found.filter(is_wanted).or_else(seen).or_else(|| self.items.iter().rposition(&wanted))
    }

    /// The item on the last row of the view.
    fn last_visible(&mut self) -> usize {
        let context = self.render_context(Motion::Still);
        let last_row = self.size.1.saturating_sub(1);
        self.down(self.top, last_row, &context).at.item
    }

    /// Scrolls to the user's previous or next prompt.
    pub fn jump_turn(&mut self, forward: bool) {
        let is_user = |index: &usize| matches!(self.items.get(*index), Some(TranscriptItem::User(_)));
        let ScrollPos { at: SectionId { item, section }, row } = self.top;
        let found = if forward {
            (item + 1..self.items.len()).find(is_user)
        } else {
            // From inside a turn, goes to its start first.
            let inside = section > 0 || row > self.gap(item);
            (0..item + usize::from(inside)).rev().find(is_user)
        };
        let Some(found) = found else {
            if forward {
                self.follow();
            }
            return;
        };
        let context = self.render_context(Motion::Still);
        let target = ScrollPos::of(found, self.gap(found));
        let last = self.bottom(&context);
        if target >= last {
            self.follow();
        } else {
            self.top = target;
            self.follow = false;
        }
    }

    /// Scrolls just far enough to show the header of an item.
    fn show(&mut self, index: usize) {
        let context = self.render_context(Motion::Still);
        let header = ScrollPos::of(index, self.gap(index));
        if header < self.top {
            self.top = header;
            self.follow = false;
        } else if self.row_in_view(index, &context).is_none() {
            self.top = self.up(header, self.size.1 / 2, &context);
            self.follow = false;
        }
    }

    /// Shows the last item from its first row on if it is longer than the view: a list is read from its beginning.
    pub(super) fn show_beginning(&mut self) {
        let Some(index) = self.items.len().checked_sub(1).filter(|_| self.follow && self.size.1 > 0) else { return };
        let context = self.render_context(Motion::Still);
        let start = ScrollPos::of(index, self.gap(index));
        let end = ScrollPos::of(index + 1, 0);
        if self.rows_between(start, end, self.size.1 + 1, &context) > self.size.1 {
            self.top = start;
            self.follow = false;
        }
    }

    pub(super) fn resize(&mut self, width: usize, height: usize) {
        let before = std::mem::replace(&mut self.size, (width, height));
        if before.0 != width && !self.follow {
            self.keep_relative_position(before.0, width);
        }
        // A larger view may have room for rows above.
        self.refill |= before != self.size;
    }

    /// Keeps the same part of the item at the top when its rows are wrapped again.
    fn keep_relative_position(&mut self, before: usize, after: usize) {
        let mut context = self.render_context(Motion::Still);
        context.width = before;
        let was = self.height(self.top.at, &context).max(1);
        context.width = after;
        let is = self.height(self.top.at, &context);
        self.top.row = self.top.row * is / was;
    }

    /// Decides the first row of this frame. While following, the view moves only as far as new rows
    /// need: folding thinking leaves room below, and nothing above it moves.
    pub(super) fn place_view(&mut self, context: &RenderContext) {
        self.clamp(context);
        let refill = std::mem::take(&mut self.refill);
        if self.follow || refill {
            let last = self.bottom(context);
            if last > self.top && self.follow || refill && (self.follow || last < self.top) {
                self.top = last;
            }
        }
    }

    /// The item at the top may have shrunk or disappeared.
    fn clamp(&mut self, context: &RenderContext) {
        while let Some(item) = self.items.get_mut(self.top.at.item) {
            let last = item.sections(context.view) - 1;
            if self.top.at.section > last {
                // It was folded or became shorter, so go to its end.
                self.top = ScrollPos { at: SectionId { section: last, ..self.top.at }, row: usize::MAX };
            }
            let height = self.height(self.top.at, context);
            if self.top.row < height {
                return;
            }
            if self.top.at.section < last {
                self.top.at.section += 1;
                self.top.row -= height;
            } else if height > 0 {
                self.top.row = height - 1;
                return;
            } else {
                self.top = ScrollPos::of(self.top.at.item + 1, 0);
            }
        }
        if self.top.at.item > 0 {
            self.top = self.bottom(context);
        }
    }

    /// The first row of the view that ends with the last row.
    pub(super) fn bottom(&mut self, context: &RenderContext) -> ScrollPos {
        self.up(ScrollPos::of(self.items.len(), 0), self.size.1, context)
    }

    /// The previous section; `None` at the start.
    fn previous_section(&mut self, at: SectionId) -> Option<SectionId> {
        if let Some(section) = at.section.checked_sub(1) {
            return Some(SectionId { section, ..at });
        }
        let item = at.item.checked_sub(1)?;
        let view = self.view;
        let sections = self.items.get_mut(item).map_or(1, |item| item.sections(view));
        Some(SectionId { item, section: sections.saturating_sub(1) })
    }

    /// The next section; `None` at the end.
    pub(super) fn next_section(&mut self, at: SectionId) -> Option<SectionId> {
        let sections = self.items.get_mut(at.item)?.sections(self.view);
        if at.section + 1 < sections {
            return Some(SectionId { section: at.section + 1, ..at });
        }
        Some(SectionId { item: at.item + 1, section: 0 }).filter(|at| at.item < self.items.len())
    }

    pub(super) fn up(&mut self, from: ScrollPos, rows: usize, context: &RenderContext) -> ScrollPos {
        let mut left = rows;
        let mut pos = from;
        loop {
            if pos.row >= left {
                return ScrollPos { row: pos.row - left, ..pos };
            }
            left -= pos.row;
            let Some(at) = self.previous_section(pos.at) else { return ScrollPos::default() };
            pos = ScrollPos { at, row: self.height(at, context) };
        }
    }

    fn down(&mut self, from: ScrollPos, rows: usize, context: &RenderContext) -> ScrollPos {
        let mut left = rows + from.row;
        let mut next = Some(from.at).filter(|at| at.item < self.items.len());
        while let Some(at) = next {
            let height = self.height(at, context);
            if left < height {
                return ScrollPos { at, row: left };
            }
            left -= height;
            next = self.next_section(at);
        }
        ScrollPos::of(self.items.len(), 0)
    }

    /// Rows between two positions, up to `most`.
    fn rows_between(&mut self, from: ScrollPos, to: ScrollPos, most: usize, context: &RenderContext) -> usize {
        let mut rows = 0;
        let mut next = Some(from.at);
        while let Some(at) = next.filter(|at| *at < to.at && rows < most + from.row) {
            rows += self.height(at, context);
            next = self.next_section(at);
        }
        (rows + to.row).saturating_sub(from.row)
    }
}
