//! Finds words in everything that is shown, in folded blocks too.

use std::ops::Range;

use super::item::TranscriptItem;
use super::scroll::{ScrollPos, SectionId};
use super::{RenderContext, Transcript};
use crate::text::search::SearchResults;
use crate::text::{Row, RowStart};
use crate::theme::Motion;

/// Where a match begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FoundRow(ScrollPos);

/// All matches, the first one first.
#[derive(Debug, Default)]
pub(crate) struct FoundRows {
    pub(crate) rows: Vec<FoundRow>,
    /// Blocks with a match that the view of thinking hides.
    pub(crate) n_hidden: usize,
}

/// The words to highlight, and the match that the user went to.
#[derive(Debug, Default)]
pub(super) struct MarkedWords {
    words: String,
    current: Option<FoundRow>,
}

impl Transcript {
    /// Finds all matches. Only blocks whose text has the longest word are laid out.
    pub(crate) fn find(&mut self, words: &str) -> FoundRows {
        let wanted = words.to_lowercase();
        let key = longest_word(&wanted).to_owned();
        let context = self.render_context(Motion::Still);
        let mut found = FoundRows::default();
        if wanted.trim().is_empty() {
            return found;
        }
        for index in 0..self.items.len() {
            let gap = self.gap(index);
            let Some(item) = self.items.get_mut(index) else { break };
            if !item.searchable_text().to_lowercase().contains(&key) {
                continue;
            }
            if item.is_hidden(context.view) {
                found.n_hidden += usize::from(matches!(item, TranscriptItem::Thinking(_)));
                continue;
            }
            let fold = item.open_fully();
            find_in_item(item, index, gap, &wanted, &context, &mut found.rows);
            item.restore_fold(fold);
            item.forget_rows();
        }
        found
    }

    /// Opens the block of a match and scrolls to it. The block that was opened for the match before is folded again.
    pub(crate) fn show_found(&mut self, found: FoundRow) {
        let context = self.render_context(Motion::Still);
        let FoundRow(position) = found;
        self.fold_found();
        if let Some(item) = self.items.get_mut(position.at.item) {
            self.opened_by_find = Some((position.at.item, item.open_fully()));
        }
        self.marked.current = Some(found);
        let top = self.up(position, self.size.1 / 3, &context);
        self.top = top.min(self.bottom(&context));
        self.follow = false;
        self.found_at = Some((position.at.item, self.top));
    }

    /// Highlights these words and scrolls to the first match in some items. Returns false if there is none.
    pub(crate) fn show_first(&mut self, words: &str, items: &Range<usize>) -> bool {
        let found = self.find(words);
        let Some(first) = found.rows.into_iter().find(|FoundRow(position)| items.contains(&position.at.item)) else {
            return false;
        };
        self.mark_words(words);
        self.show_found(first);
        self.keep_found_open();
        true
    }

    /// Folds the block that was opened for a match.
    pub(crate) fn fold_found(&mut self) {
        let Some((at, fold)) = self.opened_by_find.take() else { return };
        if let Some(item) = self.items.get_mut(at) {
            item.restore_fold(fold);
            item.forget_rows();
        }
    }

    /// The block that was opened for a match stays open.
    pub(crate) fn keep_found_open(&mut self) {
        self.opened_by_find = None;
    }

    /// Highlights these words from now on; none if they are empty.
    pub(crate) fn mark_words(&mut self, words: &str) {
        self.marked = MarkedWords { words: words.to_owned(), current: None };
    }
}

impl MarkedWords {
    /// The matches in these rows; none if there is nothing to highlight.
    pub(super) fn results(&self, rows: &[Row], width: usize) -> Option<SearchResults> {
        if self.words.trim().is_empty() {
            return None;
        }
        let mut results = SearchResults::default();
        results.search(&self.words, rows, width);
        Some(results).filter(|results| !results.hits.is_empty())
    }

    pub(super) fn is_current(&self, at: SectionId, row: usize) -> bool {
        self.current == Some(FoundRow(ScrollPos { at, row }))
    }
}

fn find_in_item(
    item: &mut TranscriptItem,
    index: usize,
    gap: usize,
    wanted: &str,
    context: &RenderContext,
    found: &mut Vec<FoundRow>,
) {
    let header = item.header(context, None);
    let above = gap + usize::from(header.is_some());
    let mut position = |section: usize, row: usize| {
        found.push(FoundRow(ScrollPos { at: SectionId { item: index, section }, row }));
    };
    // The header of thinking repeats its text.
    if let (TranscriptItem::Tool(_), Some(header)) = (&*item, header) {
        let row = Row { start: RowStart::NewLine, ..header };
        let mut results = SearchResults::default();
        results.search(wanted, &[row], context.width);
        results.hits.iter().for_each(|_| position(0, gap));
    }
    for section in 0..item.sections(context.view) {
        let before = if section == 0 { above } else { 0 };
        let body = item.body(section, context);
        let blank = usize::from(body.blank.is_some());
        let mut results = SearchResults::default();
        results.search(wanted, body.body.rows, context.width);
        results.hits.iter().for_each(|row| position(section, before + blank + row));
        item.forget_section(section);
    }
}

/// Formatting can stand between words, but rarely inside one.
fn longest_word(words: &str) -> &str {
    let words = words.split(|letter: char| !letter.is_alphanumeric());
    words.max_by_key(|word| word.len()).unwrap_or_default()
}
