// A tool call with its result.
// @ts-check
import { duration, el, write } from "./dom.js";
import { copyText } from "./markdown.js";
import { get } from "./server.js";

/** @typedef {{call: string, name: string, subject: string, arguments: string, state: string, startedAt: number | null, endedAt: number | null, output?: OutputView}} CallView */
/** The newest output of a running command. @typedef {{tail: string, nLines: number}} OutputView */
/** @typedef {{sign: string, number?: number, text: string}} LineView */
/** @typedef {{call: string, state: string, lines: LineView[], more: number, nLines: number, nWritten: number, added: number, removed: number}} ResultView */

const STATES = /** @type {Record<string, string>} */ ({
  streaming: "writing the call", waiting: "waiting", asked: "waiting", running: "running", done: "", failed: "failed",
  denied: "denied", stopped: "stopped", notRun: "not run",
});

/** Lines of an open output that are shown before the rest is asked for. */
const SHORT = 12;

export class Tool {
  /**
   * @param {import("./transcript.js").Transcript} transcript
   * @param {number} entry
   * @param {number} index
   * @param {CallView} view
   */
  constructor(transcript, entry, index, view) {
    this.transcript = transcript;
    this.key = `${entry}.${index}`;
    this.view = view;
    /** @type {ResultView | null} */
    this.result = null;
    /** Where the result is stored. */
    this.resultKey = "";
    this.showsAll = false;
    this.name = el("span", { class: "tool-name" });
    this.subject = el("span", { class: "tool-subject" });
    this.state = el("span", { class: "tool-state" });
    const chevron = el("span", { class: "chevron", "aria-hidden": "true" });
    this.button = el("button", { type: "button", class: "tool-head", "aria-expanded": "false" }, chevron, this.name, this.subject, this.state);
    this.body = el("div", { class: "tool-body" });
    /** The end of what a running command wrote: one text node, in a window of a fixed height. */
    this.tail = document.createTextNode("");
    this.window = el("div", { class: "output live", tabindex: "0", role: "group", "aria-label": "Output so far" }, this.tail);
    this.body.id = `tool-${entry}-${index}`;
    this.button.setAttribute("aria-controls", this.body.id);
    this.root = el("section", { class: "tool" }, this.button, this.body);
    this.button.addEventListener("click", () => this.toggle());
    this.draw();
  }

  isOpen() {
    const choice = this.transcript.choice(this.key);
    if (choice) return choice === "open";
    // The newest output of a running command, in a small window.
    if (this.isLive()) return true;
    // Changes and failures open by themselves.
    const isBad = ["failed", "denied"].includes(this.result?.state ?? "");
    return this.result !== null && (isBad || this.result.added + this.result.removed > 0);
  }

  /** It runs and has written something. */
  isLive() {
    return this.result === null && this.view.state === "running" && this.view.output !== undefined;
  }

  isCommand() {
    try {
      return typeof JSON.parse(this.view.arguments).command === "string";
    } catch {
      return false;
    }
  }

  toggle() {
    this.transcript.choose(this.key, this.isOpen() ? "folded" : "open");
    write(() => this.draw());
    this.transcript.hold();
  }

  /** @param {CallView} view */
  update(view) {
    this.view = view;
    if (this.result) this.view.state = this.result.state;
    this.draw();
  }

  /**
   * @param {ResultView} result
   * @param {string} [key]
   */
  setResult(result, key) {
    const hadMore = this.result && this.result.more === 0 && this.showsAll;
    if (key) this.resultKey = key;
    if (hadMore && result.more > 0) return;
    this.result = result;
    this.view.state = result.state;
    this.draw();
  }

  async showAll() {
    this.showsAll = true;
    if (this.result && this.result.more > 0 && this.resultKey) {
      const whole = await get(`/api/sessions/${encodeURIComponent(this.transcript.session)}/blocks/${this.resultKey}`);
      this.result = whole;
    }
    write(() => this.draw());
    this.transcript.hold();
  }

  draw() {
    const { name, subject, state } = this.view;
    const isOpen = this.isOpen();
    this.root.dataset.state = state;
    this.name.textContent = name;
    this.subject.textContent = subject;
    this.button.setAttribute("aria-expanded", String(isOpen));
    this.drawHead();
    this.body.hidden = !isOpen;
    if (isOpen) this.drawBody();
    else this.body.replaceChildren();
  }

  /** What became of the call, and how long it takes. */
  drawHead() {
    const { state, startedAt, endedAt, output } = this.view;
    const facts = [STATES[state] ?? state];
    const { added = 0, removed = 0, nLines = 0, nWritten = 0 } = this.result ?? {};
    if (added + removed > 0) facts.push(`+${added} −${removed}`);
    else if (this.result && state === "done") facts.push(lines(this.isCommand() ? nWritten : nLines));
    else if (this.isLive()) facts.push(lines(output?.nLines ?? 0));
    const took = startedAt === null ? 0 : (endedAt ?? (state === "running" ? this.transcript.now() : startedAt)) - startedAt;
    if (took >= 1000) facts.push(duration(endedAt === null ? Math.floor(took / 1000) * 1000 : took));
    this.state.textContent = facts.filter(Boolean).join(" · ");
  }

  drawBody() {
    /** @type {Node[]} */
    const children = [];
    const pretty = prettyArguments(this.view.arguments);
    if (pretty && !this.result?.added && !this.result?.removed) children.push(el("pre", { class: "tool-arguments", tabindex: "0", "aria-label": "Arguments" }, pretty));
    if (this.isLive()) {
      this.tail.data = this.view.output?.tail ?? "";
      children.push(this.window);
    }
    if (this.result) {
      const shown = this.showsAll ? this.result.lines : this.result.lines.slice(0, SHORT);
      const hidden = this.result.nLines - shown.length;
      children.push(output(shown));
      const row = el("div", { class: "tool-more" });
      if (hidden > 0) {
        const more = el("button", { type: "button", class: "quiet" }, `${hidden} more ${hidden === 1 ? "line" : "lines"}`);
        more.addEventListener("click", () => this.showAll());
        row.append(more);
      }
      const copy = el("button", { type: "button", class: "copy quiet", "aria-label": "Copy the output" }, "Copy");
      copy.addEventListener("click", () => this.copyAll(copy));
      row.append(copy);
      children.push(row);
    }
    const isSame = children.length === this.body.children.length && this.isLive() && this.body.lastElementChild === this.window;
    if (!isSame) this.body.replaceChildren(...children);
    if (this.isLive()) this.window.scrollTop = this.window.scrollHeight;
  }

  /** @param {HTMLElement} button */
  async copyAll(button) {
    let result = this.result;
    if (result && result.more > 0 && this.resultKey) result = await get(`/api/sessions/${encodeURIComponent(this.transcript.session)}/blocks/${this.resultKey}`);
    copyText((result?.lines ?? []).map((line) => (line.sign === "@" ? "" : line.sign) + line.text).join("\n"), button);
  }
}

/** @param {number} count */
const lines = (count) => `${count} ${count === 1 ? "line" : "lines"}`;

/**
 * The arguments, one a line.
 * @param {string} text
 */
function prettyArguments(text) {
  try {
    const parsed = JSON.parse(text);
    const names = Object.keys(parsed);
    if (names.length === 0) return "";
    return names.map((name) => `${name}: ${typeof parsed[name] === "string" ? parsed[name] : JSON.stringify(parsed[name])}`).join("\n");
  } catch {
    return text;
  }
}

const SIGNS = /** @type {Record<string, string>} */ ({ "+": "added", "-": "removed", "@": "hunk", " ": "same", "": "plain" });

/** @param {LineView[]} lines */
export function output(lines) {
  const isDiff = lines.some((line) => line.sign !== "");
  const rows = lines.map((line) => {
    const sign = isDiff ? el("span", { class: "sign" }, line.sign === "@" ? "" : line.sign) : null;
    const number = isDiff ? el("span", { class: "number" }, line.number ? String(line.number) : "") : null;
    return el("div", { class: `line ${SIGNS[line.sign] ?? "plain"}` }, number, sign, el("span", { class: "line-text" }, line.text || " "));
  });
  return el("div", { class: isDiff ? "output diff" : "output", tabindex: "0", role: "group", "aria-label": isDiff ? "Diff" : "Output" }, ...rows);
}
