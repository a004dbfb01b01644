// The list of sessions, and the search over all of them.
// @ts-check
import { byId, el, when } from "./dom.js";
import { get } from "./server.js";

export class Sidebar {
  /** @param {(session: string, entry?: number, block?: number) => void} open */
  constructor(open) {
    this.open = open;
    this.current = "";
    this.searched = "";
    const search = /** @type {HTMLInputElement} */ (byId("search"));
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    let timer;
    search.addEventListener("input", () => {
      clearTimeout(timer);
      timer = setTimeout(() => this.find(search.value.trim()), 150);
    });
    search.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      search.value = "";
      this.find("");
    });
    byId("menu").addEventListener("click", () => this.show(!document.body.classList.contains("with-sidebar")));
    byId("shade").addEventListener("click", () => this.show(false));
  }

  /** For narrow windows. @param {boolean} isShown */
  show(isShown) {
    document.body.classList.toggle("with-sidebar", isShown);
    byId("shade").hidden = !isShown;
    byId("menu").setAttribute("aria-expanded", String(isShown));
  }

  async refresh() {
    const { sessions } = await get("/api/sessions");
    const here = sessions.filter((/** @type {any} */ one) => one.here);
    const elsewhere = sessions.filter((/** @type {any} */ one) => !one.here);
    byId("sessions").replaceChildren(
      this.group("This folder", here) ?? "",
      this.group(here.length > 0 ? "Other folders" : "Sessions", elsewhere) ?? "",
      sessions.length === 0 ? el("p", { class: "side-empty" }, "Your sessions will be here.") : "",
    );
  }

  /**
   * @param {string} title
   * @param {any[]} sessions
   */
  group(title, sessions) {
    if (sessions.length === 0) return null;
    const rows = sessions.map((one) => {
      const link = el("a", { href: `/s/${encodeURIComponent(one.id)}`, class: "session", "aria-current": one.id === this.current ? "page" : undefined, title: one.folder ?? "" },
        el("span", { class: "session-title" }, one.title ?? "Without a title"),
        el("span", { class: "session-when" }, one.running ? "running" : when(one.changed)));
      this.follow(link, () => this.open(one.id));
      return el("li", {}, link);
    });
    return el("section", {}, el("h2", {}, title), el("ul", {}, ...rows));
  }

  /**
   * A click opens it here; with a modifier the browser opens a tab.
   * @param {HTMLElement} link
   * @param {() => void} open
   */
  follow(link, open) {
    link.addEventListener("click", (event) => {
      if (event.metaKey || event.ctrlKey || event.shiftKey || event.button !== 0) return;
      event.preventDefault();
      this.show(false);
      open();
    });
  }

  /** @param {string} words */
  async find(words) {
    const found = byId("found");
    this.searched = words;
    byId("sessions").hidden = words !== "";
    found.hidden = words === "";
    if (words === "") return;
    const { hits, count, exact } = await get(`/api/search?q=${encodeURIComponent(words)}`);
    // A newer search is on its way.
    if (this.searched !== words) return;
    const rows = hits.map((/** @type {any} */ hit) => {
      const link = el("a", { href: `/s/${encodeURIComponent(hit.session)}#e=${hit.entry}.${hit.block}`, class: "hit" },
        el("span", { class: "hit-kind" }, `${hit.kind} · ${hit.title ?? "without a title"}`), marked(hit.snippet, hit.marks));
      this.follow(link, () => this.open(hit.session, hit.entry, hit.block));
      return el("li", {}, link);
    });
    const title = count === 0 ? "Nothing found" : `${exact ? "" : "over "}${count} found`;
    found.replaceChildren(el("h2", { role: "status" }, title), el("ul", {}, ...rows));
  }
}

/**
 * @param {string} text
 * @param {[number, number][]} marks
 */
function marked(text, marks) {
  const root = el("span", { class: "hit-text" });
  let at = 0;
  for (const [from, to] of marks) {
    root.append(text.slice(at, from), el("mark", {}, text.slice(from, to)));
    at = to;
  }
  root.append(text.slice(at));
  return root;
}
