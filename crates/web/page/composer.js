// The input: sends prompts and commands, completes commands, remembers what was typed.
// @ts-check
import { byId, el } from "./dom.js";

export class Composer {
  /**
   * @param {{send: (text: string, isQueued: boolean) => Promise<boolean>, stop: () => void, answerNow: () => void}} act
   */
  constructor(act) {
    this.act = act;
    this.input = /** @type {HTMLTextAreaElement} */ (byId("input"));
    this.list = byId("completions");
    /** @type {string[]} */
    this.prompts = [];
    /** Where in the earlier prompts the input is; none if it is being written. @type {number | null} */
    this.at = null;
    /** @type {[string, string, string][]} */
    this.commands = [];
    byId("composer").addEventListener("submit", (event) => {
      event.preventDefault();
      this.submit();
    });
    byId("queue").addEventListener("click", () => this.submit(true));
    byId("stop").addEventListener("click", () => act.stop());
    byId("answer-now").addEventListener("click", () => act.answerNow());
    this.input.addEventListener("input", () => {
      this.at = null;
      this.resize();
      this.complete();
    });
    this.input.addEventListener("keydown", (event) => this.key(event));
    this.input.addEventListener("blur", () => setTimeout(() => (this.list.hidden = true), 200));
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    if (event.isComposing) return;
    if (event.key === "Enter" && event.altKey && this.input.value.trim() === "") {
      event.preventDefault();
      this.act.answerNow();
    } else if (event.key === "Enter" && !event.shiftKey && !event.altKey) {
      event.preventDefault();
      this.submit();
    } else if (event.key === "Tab" && !this.list.hidden && !event.shiftKey) {
      event.preventDefault();
      this.take(this.list.firstElementChild?.getAttribute("data-name") ?? "");
    } else if (event.key === "Escape" && !this.list.hidden) {
      event.stopPropagation();
      this.list.hidden = true;
    } else if (event.key === "ArrowUp" && (this.input.value === "" || this.at !== null)) {
      event.preventDefault();
      this.recall(-1);
    } else if (event.key === "ArrowDown" && this.at !== null) {
      event.preventDefault();
      this.recall(1);
    }
  }

  async submit(isQueued = false) {
    const text = this.input.value;
    if (text.trim() === "") return;
    this.set("");
    this.list.hidden = true;
    if (await this.act.send(text, isQueued)) this.prompts.push(text);
    else if (this.input.value === "") this.set(text);
  }

  /** @param {string} text */
  set(text) {
    this.input.value = text;
    this.at = null;
    this.resize();
  }

  /** @param {number} step */
  recall(step) {
    const next = (this.at ?? this.prompts.length) + step;
    if (next < 0) return;
    if (next >= this.prompts.length) return this.set("");
    this.input.value = this.prompts[next];
    this.at = next;
    this.resize();
  }

  resize() {
    this.input.style.height = "auto";
    this.input.style.height = `${Math.min(this.input.scrollHeight, 240)}px`;
  }

  complete() {
    const word = this.input.value.match(/^\/([a-z]*)$/)?.[1];
    const found = word === undefined ? [] : this.commands.filter(([name]) => name.startsWith(word)).slice(0, 8);
    this.list.hidden = found.length === 0;
    this.list.replaceChildren(...found.map(([name, rest, doc]) => {
      const button = el("button", { type: "button", tabindex: "-1" }, el("code", {}, `/${name} ${rest}`.trim()), el("span", {}, doc));
      button.addEventListener("mousedown", (event) => event.preventDefault());
      button.addEventListener("click", () => this.take(name));
      return el("li", { "data-name": name }, button);
    }));
  }

  /** @param {string} name */
  take(name) {
    if (name) this.input.value = `/${name} `;
    this.list.hidden = true;
    this.input.focus();
  }
}
