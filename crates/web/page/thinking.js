// A thinking block. Running and folded are independent: either can change without the other.
// @ts-check
import { counted, duration, el, write } from "./dom.js";
import { block, copyText } from "./markdown.js";
import { get } from "./server.js";

/** @typedef {{state: "running" | "done" | "interrupted", title: string | null, words: string, startedAt: number | null, endedAt: number | null, bytes: number, tokens: number, hiddenBytes: number, text?: string}} ThinkingView */
/** @typedef {"full" | "live" | "collapsed" | "off"} View */
/** @typedef {"hidden" | "header" | "tail" | "open"} Shape */

/**
 * Text is mounted in sections of about this many characters, of which the browser draws the visible ones. The last one
 * is laid out again whenever it grows, so it must be small.
 */
const SECTION = 2048;
/** Longer thinking is shown as plain text, because so many elements would be slow. */
const MAX_RENDERED = 200000;
/** A shorter time means that the block did not stream. */
const MIN_DURATION = 50;

export class Thinking {
  /**
   * @param {import("./transcript.js").Transcript} transcript
   * @param {number} entry
   * @param {number} index
   * @param {ThinkingView} view
   */
  constructor(transcript, entry, index, view) {
    this.transcript = transcript;
    this.entry = entry;
    this.index = index;
    this.view = view;
    /** The reply contains nothing else. */
    this.keepOpen = false;
    /** The text that is mounted. */
    this.text = "";
    this.isMounted = false;
    this.isRendered = false;
    this.label = el("span", { class: "thinking-label" });
    this.detail = el("span", { class: "thinking-detail" });
    this.note = el("span", { class: "sent-note" });
    const chevron = el("span", { class: "chevron", "aria-hidden": "true" });
    this.button = el("button", { type: "button", class: "thinking-head", "aria-expanded": "false" }, chevron, this.label, this.detail, this.note);
    this.copy = el("button", { type: "button", class: "copy quiet", "aria-label": "Copy the thinking" }, "Copy");
    this.body = el("div", { class: "thinking-body", role: "group", "aria-label": "Thinking" });
    this.root = el("section", { class: "thinking", "data-state": view.state }, el("div", { class: "thinking-bar" }, this.button, this.copy), this.body);
    const id = `thinking-${entry}-${index}`;
    this.body.id = id;
    this.button.setAttribute("aria-controls", id);
    this.button.addEventListener("click", () => this.toggle());
    this.copy.addEventListener("click", () => this.copyAll());
    // The browser's own search found something in it.
    this.body.addEventListener("beforematch", () => {
      this.transcript.choose(this.key, "open");
      write(() => this.draw());
    });
    this.body.addEventListener("scroll", () => this.scrolled(), { passive: true });
    /** The tail follows what comes, until the reader scrolls up in it. */
    this.follows = true;
    if (view.text !== undefined) this.mount(view.text);
  }

  get key() {
    return `${this.entry}.${this.index}`;
  }

  /** @returns {Shape} */
  shape() {
    const isEmpty = this.view.state !== "running" && this.view.bytes === 0 && this.view.hiddenBytes === 0;
    const isBlank = this.isMounted && this.view.state !== "running" && this.view.hiddenBytes === 0 && this.text.trim() === "";
    const view = this.transcript.view;
    if (isEmpty || isBlank || view === "off") return "hidden";
    const choice = this.transcript.choice(this.key);
    if (choice) return choice === "open" ? "open" : "header";
    if (view === "full") return "open";
    if (view === "live" && this.view.state === "running") return this.view.bytes === 0 && this.text === "" ? "header" : "tail";
    return this.keepOpen ? "open" : "header";
  }

  toggle() {
    const isOpen = this.shape() === "open";
    this.transcript.choose(this.key, isOpen ? "folded" : "open");
    if (!isOpen) this.load();
    write(() => this.draw());
    this.transcript.hold();
  }

  /**
   * Shows finished thinking as Markdown when it is opened, and gets the text if it is not here.
   * @param {"user" | "end"} [cause] what opens it: the user, or its end if it was open already
   */
  async load(cause = "user") {
    if (this.view.state === "running" || this.isRendered) return;
    if (this.isMounted && this.text.length > MAX_RENDERED) return;
    try {
      const stored = await get(`/api/sessions/${encodeURIComponent(this.transcript.session)}/blocks/${this.key}`);
      write(() => {
        if (stored.text.length > MAX_RENDERED) return this.mount(stored.text);
        this.text = stored.text;
        this.isMounted = this.isRendered = true;
        const rendered = el("div", { class: "prose" }, ...stored.nodes.map(block));
        this.body.replaceChildren(rendered);
        this.draw();
      });
      if (cause === "user") this.transcript.hold();
    } catch {
      // A reply that is not stored yet: its plain text is here already.
    }
  }

  /**
   * Puts the whole text into the page.
   * @param {string} text
   */
  mount(text) {
    this.body.replaceChildren();
    this.text = "";
    this.isRendered = false;
    this.append(text);
  }

  /**
   * Appends to the last text node, or to new sections after it: nothing before it is touched.
   * @param {string} text
   */
  append(text) {
    this.isMounted = true;
    this.text += text;
    let node = this.body.lastElementChild?.lastChild;
    for (let rest = text; rest !== ""; ) {
      const isFull = !(node instanceof Text) || node.length >= SECTION && (node.data.endsWith("\n") || node.length >= 4 * SECTION);
      if (isFull) {
        node = document.createTextNode("");
        this.body.append(el("div", { class: "section" }, node));
      }
      const current = /** @type {Text} */ (node);
      // A section ends at a line end, so that no line is cut in two, unless the line is very long.
      const room = Math.max(0, SECTION - current.length);
      const cut = rest.indexOf("\n", room);
      let end = Math.min(cut < 0 ? rest.length : cut + 1, room + 3 * SECTION);
      if (end < rest.length && isHighSurrogate(rest.charCodeAt(end - 1))) end += 1;
      current.appendData(rest.slice(0, end));
      rest = rest.slice(end);
    }
  }

  /** @param {{text: string, title: string | null, tokens: number}} more */
  grew(more) {
    if (!this.isRendered) this.append(more.text);
    this.view.title = more.title;
    this.view.tokens = more.tokens;
    // Many of these may come in one frame, and drawing needs a layout.
    this.transcript.drawLater(this);
  }

  /** @param {ThinkingView} view */
  update(view) {
    const { text, ...facts } = view;
    this.view = { ...facts };
    if (text !== undefined && text !== this.text) this.mount(text);
    this.draw();
  }

  /**
   * Cuts the text back to so many bytes of UTF-8.
   * @param {number} bytes
   */
  cut(bytes) {
    const whole = new TextEncoder().encode(this.text);
    if (whole.length <= bytes) return;
    this.mount(new TextDecoder().decode(whole.subarray(0, bytes)));
  }

  /** @param {{action: string, why: string} | undefined} decision */
  setDecision(decision) {
    this.note.textContent = decision ? sentNote(decision.action) : "";
    this.note.title = decision ? decision.why : "";
    if (decision) this.root.dataset.sent = ["dropped", "summarised"].includes(decision.action) ? "no" : "yes";
    else delete this.root.dataset.sent;
  }

  draw() {
    const shape = this.shape();
    const { state } = this.view;
    this.root.hidden = shape === "hidden";
    this.root.dataset.state = state;
    this.root.dataset.shape = shape;
    if (shape === "open" || shape === "tail") this.body.removeAttribute("hidden");
    // The browser's own search finds folded text, and opens it.
    else this.body.setAttribute("hidden", "until-found");
    this.button.setAttribute("aria-expanded", String(shape === "open" || shape === "tail"));
    this.copy.hidden = shape !== "open";
    this.drawHead();
    if (shape === "open" && this.view.hiddenBytes > 0 && this.view.bytes === 0 && !this.body.firstChild) {
      this.body.append(el("p", { class: "hidden-note" }, `The provider hides this thinking; ${this.view.hiddenBytes} sealed bytes are kept and sent back.`));
    }
    if (shape === "tail") {
      this.body.toggleAttribute("data-overflows", this.body.scrollHeight > this.body.clientHeight + 1);
      if (this.follows) this.body.scrollTop = this.body.scrollHeight;
    }
  }

  drawHead() {
    const { state, startedAt, endedAt, title, words, tokens, hiddenBytes, bytes } = this.view;
    const isRunning = state === "running";
    const took = startedAt !== null && endedAt !== null ? endedAt - startedAt : 0;
    let label = isRunning ? "Thinking" : took >= MIN_DURATION ? `Thought for ${duration(took)}` : "Thought";
    if (state === "interrupted") label += " · interrupted";
    this.label.textContent = label;
    const details = [];
    if (title) details.push(title);
    else if (!isRunning && bytes === 0 && hiddenBytes > 0) details.push("hidden by the provider");
    else if (!isRunning && words) details.push(`“${words.length > 90 ? `${words.slice(0, 90).trimEnd()}…` : words}”`);
    if (isRunning) {
      const passed = startedAt === null ? 0 : this.transcript.now() - startedAt;
      if (passed >= 1000) details.push(duration(Math.floor(passed / 1000) * 1000));
      if (tokens > 0) details.push(`~${counted(tokens)} tokens`);
    }
    this.detail.textContent = details.join(" · ");
  }

  scrolled() {
    if (this.root.dataset.shape !== "tail") return;
    this.follows = this.body.scrollTop + this.body.clientHeight >= this.body.scrollHeight - 8;
  }

  async copyAll() {
    let text = this.text;
    if (!this.isMounted) text = (await get(`/api/sessions/${encodeURIComponent(this.transcript.session)}/blocks/${this.key}`)).text;
    copyText(text, this.copy);
  }
}

/** The first half of a character that takes two units. @param {number} unit */
const isHighSurrogate = (unit) => unit >= 0xd800 && unit < 0xdc00;

/** What the last request did with the thinking. @param {string} action */
function sentNote(action) {
  switch (action) {
    case "dropped": return "not sent";
    case "summarised": return "not sent: summarised";
    case "verbatim": return "sent back as it was";
    case "field": return "sent back in a field";
    case "tags": return "sent back in tags";
    default: return `sent back: ${action}`;
  }
}
