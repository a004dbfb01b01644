// The conversation: messages, their blocks, notes, and where the reader is.
// @ts-check
import { aroundWrites, byId, el, write } from "./dom.js";
import { applyChange, block as markdownBlock } from "./markdown.js";
import { Thinking } from "./thinking.js";
import { Tool } from "./tools.js";
import { get } from "./server.js";

/** @typedef {{kind: string, [member: string]: any}} BlockView */
/** @typedef {{id: number, role: string, at: number | null, model: string | null, state: string, usage: any, blocks: BlockView[]}} EntryView */
/** @typedef {{kind: string, root: HTMLElement, thinking?: Thinking, tool?: Tool}} ShownBlock */
/** @typedef {{view: EntryView, root: HTMLElement, blocks: ShownBlock[]}} ShownEntry */

/** What a message is called. @type {Record<string, string>} */
const LABELS = { user: "You", aside: "Note from aside" };

/** The page follows new text if its end was this close. */
const NEAR_END = 48;

export class Transcript {
  /** @param {string} session */
  constructor(session) {
    this.session = session;
    /** @type {import("./thinking.js").View} */
    this.view = "live";
    /** How far the server's clock is ahead. */
    this.clockOffset = 0;
    /** @type {Map<number, ShownEntry>} */
    this.entries = new Map();
    /** @type {Map<string, Tool>} */
    this.tools = new Map();
    /** Results that came before their calls. @type {Map<string, {result: any, key: string}>} */
    this.results = new Map();
    /** @type {{entry: number, block: number, action: string, why: string}[]} */
    this.decisions = [];
    this.lastNote = 0;
    /** @type {number | null} */
    this.earlier = null;
    this.timeline = byId("timeline");
    this.timeline.replaceChildren();
    this.scroller = byId("scroll");
    this.spacer = byId("spacer");
    this.spacerHeight = 0;
    this.spacer.style.height = "0px";
    this.isFollowing = true;
    /** A write has set the place itself. */
    this.isPlaced = false;
    this.isHeld = false;
    /** What grew in this frame. @type {Set<Thinking | Tool>} */
    this.undrawn = new Set();
    /** @type {Record<string, "open" | "folded">} */
    this.choices = {};
    try {
      this.choices = JSON.parse(sessionStorage.getItem(`folds ${session}`) ?? "{}");
    } catch {
      // Without storage the choices last until the page is left.
    }
    /** @param {Thinking} [thinking] */
    this.onThinkingEnd = (thinking) => {};
    this.scroller.onscroll = () => this.scrolled();
    aroundWrites(() => this.keepPlace());
  }

  now() {
    return Date.now() + this.clockOffset;
  }

  /** The user's choice for a block, which counts for ever. @param {string} key */
  choice(key) {
    return this.choices[key];
  }

  /**
   * @param {string} key
   * @param {"open" | "folded"} choice
   */
  choose(key, choice) {
    this.choices[key] = choice;
    try {
      sessionStorage.setItem(`folds ${this.session}`, JSON.stringify(this.choices));
    } catch {
      // See above.
    }
  }

  // Where the reader is.

  scrolled() {
    const { scrollTop, clientHeight, scrollHeight } = this.scroller;
    this.isFollowing = scrollTop + clientHeight >= scrollHeight - this.spacerHeight - NEAR_END;
    byId("latest").hidden = this.isFollowing;
  }

  /**
   * Remembers the place before the writes of a frame, and keeps it afterwards. What folds leaves its
   * room to what comes next, so that nothing above it moves.
   */
  keepPlace() {
    const top = this.scroller.scrollTop;
    const before = this.timeline.offsetHeight;
    const { isFollowing, isHeld } = this;
    this.isPlaced = this.isHeld = false;
    return () => {
      for (const grown of this.undrawn) grown.draw();
      this.undrawn.clear();
      if (this.isPlaced) return;
      const grown = this.timeline.offsetHeight - before;
      if (grown === 0) return;
      const contentEnd = this.scroller.scrollHeight - this.spacerHeight;
      const room = Math.max(0, top + this.scroller.clientHeight - contentEnd);
      const follows = isFollowing && !isHeld;
      if (follows && grown > 0 && this.spacerHeight === 0) {
        this.scroller.scrollTop = this.scroller.scrollHeight;
        return;
      }
      this.setSpacer(top > 0 ? room : 0);
      this.scroller.scrollTop = follows && room === 0 ? this.scroller.scrollHeight : top;
    };
  }

  /** Draws it once, after all writes of this frame. @param {Thinking | Tool} grown */
  drawLater(grown) {
    this.undrawn.add(grown);
  }

  /** The reader changes something: the page must not follow the text now. */
  hold() {
    this.isHeld = true;
  }

  /** @param {number} height */
  setSpacer(height) {
    if (height === this.spacerHeight) return;
    this.spacerHeight = height;
    this.spacer.style.height = `${height}px`;
  }

  toEnd() {
    this.isPlaced = true;
    this.setSpacer(0);
    this.scroller.scrollTop = this.scroller.scrollHeight;
    this.isFollowing = true;
    byId("latest").hidden = true;
  }

  // Messages.

  /** @param {{entries: EntryView[], earlier: number | null}} all */
  replaceAll(all) {
    this.entries.clear();
    this.tools.clear();
    this.results.clear();
    this.timeline.replaceChildren();
    this.setSpacer(0);
    for (const entry of all.entries) this.put(entry);
    this.setEarlier(all.earlier);
    this.drawDecisions();
  }

  /** @param {number | null} earlier */
  setEarlier(earlier) {
    this.earlier = earlier;
    byId("earlier").hidden = earlier === null;
  }

  /** Puts older messages before the first one; what the reader sees stays in its place. */
  async loadEarlier() {
    if (this.earlier === null) return;
    const from = this.earlier;
    this.earlier = null;
    const page = await get(`/api/sessions/${encodeURIComponent(this.session)}/entries?from=${from}`);
    await new Promise((resolve) => write(() => {
      const height = this.scroller.scrollHeight - this.scroller.scrollTop;
      const first = this.timeline.firstElementChild;
      for (const view of page.entries) {
        const shown = this.build(view);
        if (shown) this.timeline.insertBefore(shown.root, first);
      }
      this.setEarlier(page.earlier);
      this.isPlaced = true;
      this.scroller.scrollTop = this.scroller.scrollHeight - height;
      resolve(null);
    }));
  }

  /**
   * Adds a message, or replaces it where it is.
   * @param {EntryView} view
   */
  put(view) {
    const old = this.entries.get(view.id);
    const shown = this.build(view);
    if (!shown) return;
    if (old) old.root.replaceWith(shown.root);
    else this.timeline.append(shown.root);
  }

  /**
   * @param {EntryView} view
   * @returns {ShownEntry | null}
   */
  build(view) {
    if (view.role === "tool") {
      view.blocks.forEach((value, at) => value.kind === "result" && this.setResult(/** @type {any} */ (value), `${view.id}.${at}`));
      return null;
    }
    if (view.role === "system") return null;
    const label = LABELS[view.role] ?? "Answer";
    const root = el("article", { class: `entry ${view.role}`, "aria-label": label, "data-id": String(view.id), "data-state": view.state });
    const shown = { view, root, blocks: /** @type {ShownBlock[]} */ ([]) };
    this.entries.set(view.id, shown);
    view.blocks.forEach((value, at) => this.setBlock(view.id, at, value));
    this.settle(shown);
    return shown;
  }

  /**
   * @param {number} id
   * @param {number} at
   * @param {BlockView} value
   */
  setBlock(id, at, value) {
    const shown = this.entries.get(id);
    if (!shown) return;
    const old = shown.blocks[at];
    if (old?.kind === value.kind && old.thinking) {
      const wasRunning = old.thinking.view.state === "running";
      old.thinking.update(/** @type {any} */ (value));
      if (wasRunning && value.state !== "running") {
        this.onThinkingEnd(old.thinking);
        if (old.thinking.shape() === "open") old.thinking.load("end");
      }
      return;
    }
    if (old?.kind === value.kind && old.tool) {
      old.tool.update(/** @type {any} */ (value));
      this.adopt(old.tool);
      return;
    }
    const made = this.make(id, at, value);
    shown.blocks[at] = made;
    if (old) old.root.replaceWith(made.root);
    else shown.root.append(made.root);
    made.thinking?.draw();
  }

  /**
   * @param {number} id
   * @param {number} at
   * @param {BlockView} value
   * @returns {ShownBlock}
   */
  make(id, at, value) {
    switch (value.kind) {
      case "thinking": {
        const thinking = new Thinking(this, id, at, /** @type {any} */ (value));
        return { kind: value.kind, root: thinking.root, thinking };
      }
      case "call": {
        const tool = new Tool(this, id, at, /** @type {any} */ (value));
        this.adopt(tool);
        return { kind: value.kind, root: tool.root, tool };
      }
      case "text": {
        const isAnswer = this.entries.get(id)?.view.role === "assistant";
        return { kind: value.kind, root: el("div", { class: isAnswer ? "prose answer" : "prose" }, ...value.nodes.map(markdownBlock)) };
      }
      case "prompt": return { kind: value.kind, root: el("div", { class: "prompt" }, value.text) };
      default: return { kind: value.kind, root: el("p", { class: "other" }, value.label ?? "") };
    }
  }

  /** Connects a call with its result, whichever came first. @param {Tool} tool */
  adopt(tool) {
    if (!tool.view.call) return;
    this.tools.set(tool.view.call, tool);
    const waiting = this.results.get(tool.view.call);
    if (waiting) {
      this.results.delete(tool.view.call);
      tool.setResult(waiting.result, waiting.key);
    }
  }

  /**
   * @param {import("./tools.js").ResultView} result
   * @param {string} key
   */
  setResult(result, key) {
    const tool = this.tools.get(result.call);
    if (tool) tool.setResult(result, key);
    else this.results.set(result.call, { result, key });
  }

  /** @param {{call: string, output: import("./tools.js").OutputView}} running */
  setOutput({ call, output }) {
    const tool = this.tools.get(call);
    if (!tool) return;
    tool.view.output = output;
    this.drawLater(tool);
  }

  /** @param {{entry: number, block: number, text: string, title: string | null, tokens: number}} more */
  grew(more) {
    this.entries.get(more.entry)?.blocks[more.block]?.thinking?.grew(more);
  }

  /** @param {{entry: number, block: number, change: any}} more */
  markdown(more) {
    const shown = this.entries.get(more.entry)?.blocks[more.block];
    if (shown) applyChange(shown.root, more.change);
  }

  /** @param {{entry: number, block: number}} place */
  removed({ entry, block }) {
    const [gone] = this.entries.get(entry)?.blocks.splice(block, 1) ?? [];
    gone?.root.remove();
  }

  /** @param {any} facts */
  facts({ entry, ...facts }) {
    const shown = this.entries.get(entry);
    if (!shown) return;
    Object.assign(shown.view, facts);
    this.settle(shown);
  }

  /** What is known only when a message is complete. @param {ShownEntry} shown */
  settle(shown) {
    const { root, view, blocks } = shown;
    root.dataset.state = view.state;
    root.querySelector(":scope > .entry-foot")?.remove();
    if (view.role !== "assistant" || view.state === "running") return;
    const isThinkingOnly = blocks.length > 0 && blocks.every((one) => one.kind === "thinking");
    for (const one of blocks) {
      if (!one.thinking) continue;
      one.thinking.keepOpen = isThinkingOnly;
      one.thinking.draw();
    }
    if (!blocks.some((one) => one.kind === "text")) return;
    const facts = [view.model, usage(view.usage)].filter(Boolean);
    if (facts.length > 0) root.append(el("p", { class: "entry-foot" }, facts.join(" · ")));
  }

  /** The server knows less than this page: cut back. @param {{entry: number, block: number, bytes: number}} to */
  rewind(to) {
    for (const [id, shown] of this.entries) {
      if (id > to.entry) {
        shown.root.remove();
        this.entries.delete(id);
      }
    }
    const last = this.entries.get(to.entry);
    if (!last) return;
    for (const gone of last.blocks.splice(to.block + 1)) gone?.root.remove();
    last.blocks[to.block]?.thinking?.cut(to.bytes);
  }

  /** @param {{entry: number, block: number, action: string, why: string}[]} decisions */
  setDecisions(decisions) {
    this.decisions = decisions;
    this.drawDecisions();
  }

  drawDecisions() {
    const known = new Map(this.decisions.map((one) => [`${one.entry}.${one.block}`, one]));
    for (const thinking of this.thinking()) thinking.setDecision(known.get(thinking.key));
  }

  /** All thinking blocks, in order. */
  *thinking() {
    for (const shown of this.entries.values()) for (const one of shown.blocks) if (one?.thinking) yield one.thinking;
  }

  /** @param {import("./thinking.js").View} view */
  setView(view) {
    if (view === this.view) return;
    this.view = view;
    for (const thinking of this.thinking()) thinking.draw();
  }

  /** The seconds of what runs. */
  tick() {
    for (const thinking of this.thinking()) if (thinking.view.state === "running") thinking.drawHead();
    for (const tool of this.tools.values()) if (tool.view.state === "running") tool.drawHead();
  }

  // Notes, which are not part of the conversation.

  /** @param {{number: number, after: number, kind: string, value: any}} note */
  addNote(note) {
    if (note.number <= this.lastNote) return;
    this.lastNote = note.number;
    const made = noteElement(note.kind, note.value);
    const after = this.entries.get(note.after)?.root;
    let place = after;
    while (place?.nextElementSibling?.classList.contains("note")) place = /** @type {HTMLElement} */ (place.nextElementSibling);
    if (place) place.after(made);
    else this.timeline.append(made);
  }

  /**
   * A page that this tab made itself.
   * @param {string} kind
   * @param {any} value
   */
  addOwnNote(kind, value) {
    this.timeline.append(noteElement(kind, value));
  }

  isEmpty() {
    return this.timeline.childElementCount === 0;
  }

  /** The text of the last answer. */
  lastAnswer() {
    const answers = this.timeline.querySelectorAll(".answer");
    return /** @type {HTMLElement | undefined} */ (answers[answers.length - 1])?.innerText ?? "";
  }

  /** The last code block of an answer. */
  lastCode() {
    const blocks = this.timeline.querySelectorAll(".answer pre code");
    return blocks[blocks.length - 1]?.textContent ?? "";
  }

  /** The last thinking that has text. */
  lastThinking() {
    return [...this.thinking()].filter((one) => one.view.bytes > 0 || one.text).at(-1);
  }

  /**
   * Goes to a block, and opens it.
   * @param {number} id
   * @param {number} at
   */
  async goTo(id, at) {
    for (let pages = 0; !this.entries.has(id) && this.earlier !== null && pages < 500; pages++) await this.loadEarlier();
    const shown = this.entries.get(id);
    if (!shown) return;
    const found = shown.blocks[at];
    if (found?.thinking) {
      this.choose(found.thinking.key, "open");
      found.thinking.load();
      write(() => found.thinking?.draw());
    }
    write(() => {
      this.isFollowing = false;
      this.isPlaced = true;
      (found?.root ?? shown.root).scrollIntoView({ block: "center" });
      shown.root.classList.add("found");
      setTimeout(() => shown.root.classList.remove("found"), 2500);
    });
  }
}

/** @param {any} counts */
function usage(counts) {
  if (!counts) return "";
  const parts = [];
  if (counts.input) parts.push(`${counts.input} in`);
  if (counts.output) parts.push(`${counts.output} out`);
  if (counts.reasoning) parts.push(`${counts.reasoning} thinking`);
  return parts.length > 0 ? `${parts.join(", ")} tokens` : "";
}

/**
 * @param {string} kind
 * @param {any} value
 */
function noteElement(kind, value) {
  const root = el("div", { class: `note ${kind}`, role: kind === "error" ? "alert" : undefined });
  if (value.command) root.append(el("p", { class: "note-title" }, value.command));
  if (value.what) root.append(el("p", {}, value.what));
  if (value.hint) root.append(el("p", { class: "note-hint" }, value.hint));
  if (value.nodes) root.append(el("div", { class: "prose" }, ...value.nodes.map(markdownBlock)));
  if (value.rows) {
    const head = el("tr", {}, ...(value.head ?? []).map((/** @type {string} */ text) => el("th", { scope: "col" }, text)));
    const rows = value.rows.map((/** @type {string[]} */ row) => el("tr", {}, ...row.map((text) => el("td", {}, text))));
    root.append(el("div", { class: "table", tabindex: "0", role: "group", "aria-label": "Table" }, el("table", {}, el("thead", {}, head), el("tbody", {}, ...rows))));
  }
  return root;
}
