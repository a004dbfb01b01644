//! Where the view stands. It is a row of a section of an item, never a number
//! of rows from the start: what happens elsewhere in the list cannot move it,
//! and nobody has to know how high the rest is.

use super::item::Item;
use super::thought::Shape;
use super::{Look, Transcript};
use crate::seam::Sought;
use crate::theme::Motion;

/// A part of the list that is laid out at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) struct At {
    pub(super) item: usize,
    pub(super) section: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) struct Pos {
    pub(super) at: At,
    /// In the first section counted from the blank rows before the item.
    pub(super) row: usize,
}

impl Pos {
    fn of(item: usize, row: usize) -> Pos {
        Pos { at: At { item, section: 0 }, row }
    }
}

impl Transcript {
    pub fn is_following(&self) -> bool {
        self.follow
    }

    /// To the end, and along with it.
    pub fn follow(&mut self) {
        self.follow = true;
        self.refill = true;
    }

    pub fn to_start(&mut self) {
        self.top = Pos::default();
        self.follow = false;
    }

    /// Up for less than nothing.
    pub fn scroll(&mut self, rows: isize) {
        let look = self.look(Motion::Still);
        let steps = rows.unsigned_abs();
        if rows < 0 {
            self.top = self.up(self.top, steps, &look);
            self.follow = false;
            return;
        }
        let last = self.bottom(&look);
        let down = self.down(self.top, steps, &look);
        if down >= last {
            self.top = self.top.max(last);
            self.follow = true;
        } else {
            self.top = down;
        }
    }

    /// A message of the history that was restored goes to the top.
    pub fn go_to(&mut self, message: usize, part: Sought) {
        let Some(first) = self.message_at.get(message).copied() else { return };
        let end = self.message_at.get(message + 1).copied().unwrap_or(self.items.len());
        let mut thoughts = (first..end).filter(|index| matches!(self.items.get(*index), Some(Item::Thought(_))));
        let found = match part {
            Sought::Said => first,
            Sought::Thought(nth) => thoughts.nth(nth).unwrap_or(first),
        };
        let view = self.view;
        if let Some(Item::Thought(thought)) = self.items.get_mut(found)
            && part != Sought::Said
            && thought.shape(view) != Shape::Open
        {
            thought.toggle(view);
        }
        // What was looked for may be in the part that is not shown.
        if let Some(Item::User(asked)) = self.items.get_mut(found) {
            asked.open();
        }
        self.top = Pos::of(found, 0);
        self.follow = false;
    }

    pub fn page(&self) -> isize {
        isize::try_from(self.size.1.saturating_sub(2).max(1)).unwrap_or(1)
    }

    /// The next block that can be folded, in a direction.
    pub fn focus_next(&mut self, forward: bool) {
        let foldable = |transcript: &Transcript, index: usize| {
            transcript.items.get(index).is_some_and(|item| item.can_fold() && !item.is_hidden(transcript.view))
        };
        let from = self.focus;
        let found = if forward {
            let start = from.map_or(self.top.at.item, |at| at + 1);
            (start..self.items.len()).find(|index| foldable(self, *index))
        } else {
            let end = from.unwrap_or(self.items.len());
            (0..end).rev().find(|index| foldable(self, *index))
        };
        if let Some(found) = found {
            self.focus = Some(found);
            self.show(found);
        }
    }

    /// What the user said before or behind goes to the top.
    pub fn jump_turn(&mut self, forward: bool) {
        let is_user = |index: &usize| matches!(self.items.get(*index), Some(Item::User(_)));
        let Pos { at: At { item, section }, row } = self.top;
        let found = if forward {
            (item + 1..self.items.len()).find(is_user)
        } else {
            // From inside a turn it goes to its start first.
            let inside = section > 0 || row > self.gap(item);
            (0..item + usize::from(inside)).rev().find(is_user)
        };
        let Some(found) = found else {
            if forward {
                self.follow();
            }
            return;
        };
        let look = self.look(Motion::Still);
        let target = Pos::of(found, self.gap(found));
        let last = self.bottom(&look);
        if target >= last {
            self.follow();
        } else {
            self.top = target;
            self.follow = false;
        }
    }

    /// Scrolls just as far as the header of an item needs.
    fn show(&mut self, index: usize) {
        let look = self.look(Motion::Still);
        let header = Pos::of(index, self.gap(index));
        if header < self.top {
            self.top = header;
            self.follow = false;
        } else if self.rows_between(self.top, header, self.size.1, &look) >= self.size.1 {
            self.top = self.up(header, self.size.1 / 2, &look);
            self.follow = false;
        }
    }

    pub(super) fn resize(&mut self, width: usize, height: usize) {
        let before = std::mem::replace(&mut self.size, (width, height));
        if before.0 != width && !self.follow {
            self.keep_share(before.0, width);
        }
        if before != self.size {
            self.refill |= self.follow;
        }
    }

    /// The same part of the item stays at the top when its rows are broken anew.
    fn keep_share(&mut self, before: usize, after: usize) {
        let mut look = self.look(Motion::Still);
        look.width = before;
        let was = self.height(self.top.at, &look).max(1);
        look.width = after;
        let is = self.height(self.top.at, &look);
        self.top.row = self.top.row * is / was;
    }

    /// Decides the first row of this frame. While following, it only moves on
    /// as far as new rows need: a thought that folds leaves room below it,
    /// and nothing above it moves.
    pub(super) fn place(&mut self, look: &Look) {
        self.clamp(look);
        let refill = std::mem::take(&mut self.refill);
        if self.follow || refill {
            let last = self.bottom(look);
            if last > self.top && self.follow || refill && (self.follow || last < self.top) {
                self.top = last;
            }
        }
    }

    /// What is at the top may have shrunk, or be gone.
    fn clamp(&mut self, look: &Look) {
        while let Some(item) = self.items.get_mut(self.top.at.item) {
            let last = item.sections(look.view) - 1;
            if self.top.at.section > last {
                // It was folded, or is shorter: the end of what is left of it.
                self.top = Pos { at: At { section: last, ..self.top.at }, row: usize::MAX };
            }
            let height = self.height(self.top.at, look);
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
                self.top = Pos::of(self.top.at.item + 1, 0);
            }
        }
        if self.top.at.item > 0 {
            self.top = self.bottom(look);
        }
    }

    /// The first row of a view that ends with the last row.
    fn bottom(&mut self, look: &Look) -> Pos {
        self.up(Pos::of(self.items.len(), 0), self.size.1, look)
    }

    /// The section before; none at the start.
    fn before(&mut self, at: At) -> Option<At> {
        if let Some(section) = at.section.checked_sub(1) {
            return Some(At { section, ..at });
        }
        let item = at.item.checked_sub(1)?;
        let view = self.view;
        let sections = self.items.get_mut(item).map_or(1, |item| item.sections(view));
        Some(At { item, section: sections.saturating_sub(1) })
    }

    /// The section behind; none at the end.
    pub(super) fn behind(&mut self, at: At) -> Option<At> {
        let sections = self.items.get_mut(at.item)?.sections(self.view);
        if at.section + 1 < sections {
            return Some(At { section: at.section + 1, ..at });
        }
        Some(At { item: at.item + 1, section: 0 }).filter(|at| at.item < self.items.len())
    }

    fn up(&mut self, from: Pos, rows: usize, look: &Look) -> Pos {
        let mut left = rows;
        let mut pos = from;
        loop {
            if pos.row >= left {
                return Pos { row: pos.row - left, ..pos };
            }
            left -= pos.row;
            let Some(at) = self.before(pos.at) else { return Pos::default() };
            pos = Pos { at, row: self.height(at, look) };
        }
    }

    fn down(&mut self, from: Pos, rows: usize, look: &Look) -> Pos {
        let mut left = rows + from.row;
        let mut next = Some(from.at).filter(|at| at.item < self.items.len());
        while let Some(at) = next {
            let height = self.height(at, look);
            if left < height {
                return Pos { at, row: left };
            }
            left -= height;
            next = self.behind(at);
        }
        Pos::of(self.items.len(), 0)
    }

    /// Rows from one place to a later one, as far as `most`.
    fn rows_between(&mut self, from: Pos, to: Pos, most: usize, look: &Look) -> usize {
        let mut rows = 0;
        let mut next = Some(from.at);
        while let Some(at) = next.filter(|at| *at < to.at && rows < most + from.row) {
            rows += self.height(at, look);
            next = self.behind(at);
        }
        (rows + to.row).saturating_sub(from.row)
    }
}
