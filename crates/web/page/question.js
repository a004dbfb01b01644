// Permission questions. The exact command or diff as text, no default button, no letter keys, and no
// answer in the first half second, so that nothing typed elsewhere approves anything.
// @ts-check
import { byId, el } from "./dom.js";

/** @typedef {{id: number, call: string, head: string, body: {text: string, isMarked: boolean, sign: string}[], facts: string[], covers: string | null, kind: "permission" | "undo" | "trust", waitMs: number}} QuestionView */

/** The words of each kind of question. Only a permission can be refused with a reason for the model. */
const WORDS = {
  permission: { title: "Allow this?", yes: "Once", no: "No" },
  undo: { title: "Undo the files too?", yes: "Yes, the files too", no: "No, only the conversation" },
  trust: { title: "Send the files of this folder?", yes: "Yes, from now on", no: "No" },
};

const LINE = /** @type {Record<string, string>} */ ({ "+": "added", "-": "removed", "@": "hunk", "": "plain" });

export class Questions {
  /** @param {(id: number, answer: any) => Promise<string>} send Returns the word of a refusal, or nothing. */
  constructor(send) {
    this.send = send;
    this.root = byId("question");
    /** @type {QuestionView[]} */
    this.open = [];
    this.shown = 0;
    /** @type {Element | null} */
    this.focusBefore = null;
  }

  /** @param {QuestionView[]} questions */
  replaceAll(questions) {
    this.open = questions;
    this.draw();
  }

  /** @param {QuestionView} question */
  add(question) {
    this.open = [...this.open.filter((one) => one.id !== question.id), question];
    this.draw();
  }

  /** @param {number} id */
  remove(id) {
    this.open = this.open.filter((one) => one.id !== id);
    this.draw();
  }

  draw() {
    const question = this.open[0];
    if (!question) {
      const hadFocus = this.root.contains(document.activeElement);
      this.shown = 0;
      this.root.hidden = true;
      this.root.replaceChildren();
      if (hadFocus) /** @type {HTMLElement | null} */ (this.focusBefore)?.focus();
      return;
    }
    if (this.shown === question.id) return;
    this.shown = question.id;
    this.focusBefore = document.activeElement;
    const title = el("h2", { id: "question-title", tabindex: "-1" }, question.head);
    const lines = question.body.map((line) =>
      el("div", { class: `line ${LINE[line.sign] ?? "plain"}${line.isMarked ? " marked" : ""}` }, el("span", { class: "gutter", "aria-hidden": "true" }, line.isMarked ? "!" : "│"), el("span", { class: "line-text" }, line.text || " ")));
    const body = lines.length > 0 ? el("div", { class: "question-body", tabindex: "0", role: "group", "aria-label": "What would be done" }, ...lines) : null;
    const facts = question.facts.length > 0 ? el("ul", { class: "question-facts" }, ...question.facts.map((fact) => el("li", {}, fact))) : null;
    const more = this.open.length > 1 ? el("p", { class: "question-more" }, `${this.open.length - 1} more after this one`) : null;
    this.root.replaceChildren(el("div", { role: "alertdialog", "aria-labelledby": "question-title", class: "question-card" },
      el("p", { class: "question-kind" }, WORDS[question.kind].title), title, body ?? "", facts ?? "", this.buttons(question), more ?? ""));
    this.root.hidden = false;
    // Not a button: Enter must not answer.
    title.focus();
  }

  /** @param {QuestionView} question */
  buttons(question) {
    const row = el("div", { class: "question-buttons" });
    const say = el("p", { class: "question-say", role: "status" });
    /** @type {HTMLButtonElement[]} */
    const all = [];
    const add = (/** @type {string} */ label, /** @type {string} */ kind, /** @type {() => any} */ answer) => {
      const button = /** @type {HTMLButtonElement} */ (el("button", { type: "button", class: kind, disabled: true }, label));
      button.addEventListener("click", async () => {
        const value = answer();
        if (value === null) return;
        const refused = await this.send(question.id, value);
        if (refused === "too_early") say.textContent = "Too early: read it first.";
        else if (refused === "answered") this.remove(question.id);
        else if (refused) say.textContent = refused;
      });
      all.push(button);
      row.append(button);
    };
    const words = WORDS[question.kind];
    add(words.yes, "allow", () => ({ type: "once" }));
    if (question.covers !== null) {
      add("This session", "allow", () => ({ type: "session" }));
      add("This project", "allow", () => ({ type: "project" }));
    }
    add(words.no, "deny", () => ({ type: "no", value: null }));
    const reason = /** @type {HTMLInputElement} */ (el("input", { type: "text", class: "question-reason", "aria-label": "Why not, for the model", placeholder: "No, because …" }));
    const refuse = () => reason.value.trim() && this.send(question.id, { type: "no", value: reason.value.trim() });
    reason.addEventListener("keydown", (event) => event.key === "Enter" && refuse());
    const covers = question.covers !== null ? el("p", { class: "question-covers" }, "With session and project, aside will not ask again about ", el("code", {}, question.covers)) : null;
    setTimeout(() => all.forEach((button) => (button.disabled = false)), question.waitMs);
    return el("div", {}, row, question.kind === "permission" ? reason : "", covers ?? "", say);
  }
}
