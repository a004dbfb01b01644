// Makes elements of typed Markdown nodes. Nothing here parses text, and no text becomes markup.
// @ts-check
import { el } from "./dom.js";

/** @typedef {{type: string, text?: string, url?: string, checked?: boolean, content?: Inline[]}} Inline */
/** @typedef {{type: string, level?: number, language?: string, text?: string, start?: number | null, content?: Inline[], nodes?: MarkdownNode[], items?: MarkdownNode[][], alignments?: string[], head?: Inline[][], rows?: Inline[][][]}} MarkdownNode */

/** Addresses of other kinds, such as `javascript:`, are text. */
const SAFE_LINKS = ["http:", "https:", "mailto:"];

/**
 * @param {string} address
 * @returns {string | null}
 */
function safeLink(address) {
  try {
    const url = new URL(address);
    return SAFE_LINKS.includes(url.protocol) ? url.href : null;
  } catch {
    return null;
  }
}

/**
 * @param {Inline[]} content
 * @returns {string}
 */
function plain(content) {
  return content.map((part) => part.text ?? (part.content ? plain(part.content) : part.type === "break" ? " " : "")).join("");
}

/**
 * @param {Inline} part
 * @returns {Node}
 */
function inline(part) {
  const inner = () => (part.content ?? []).map(inline);
  switch (part.type) {
    case "code": return el("code", {}, part.text ?? "");
    case "strong": return el("strong", {}, ...inner());
    case "emphasis": return el("em", {}, ...inner());
    case "strikethrough": return el("s", {}, ...inner());
    case "break": return el("br");
    case "checkbox": return document.createTextNode(part.checked ? "☑ " : "☐ ");
    case "link":
    case "image": {
      const words = plain(part.content ?? []) || (part.url ?? "");
      const address = safeLink(part.url ?? "");
      const name = part.type === "image" ? `image: ${words}` : words;
      // An address that is not a link is shown, so that nothing is hidden.
      if (!address) return document.createTextNode(part.url && part.url !== words ? `${name} <${part.url}>` : name);
      const children = part.type === "image" ? [document.createTextNode(name)] : inner();
      return el("a", { href: address, target: "_blank", rel: "noopener noreferrer", title: part.url }, ...children);
    }
    default: return document.createTextNode(part.text ?? "");
  }
}

/** @param {Inline[] | undefined} content */
const inlines = (content) => (content ?? []).map(inline);

/**
 * @param {MarkdownNode} node
 * @returns {HTMLElement}
 */
export function block(node) {
  switch (node.type) {
    case "heading": return el(`h${Math.min(6, (node.level ?? 1) + 2)}`, { "data-level": String(node.level ?? 1) }, ...inlines(node.content));
    case "code": return code(node.language ?? "", node.text ?? "");
    case "quote": return el("blockquote", {}, ...(node.nodes ?? []).map(block));
    case "list": {
      const items = (node.items ?? []).map((item) => el("li", {}, ...item.map(block)));
      if (node.start === null || node.start === undefined) return el("ul", {}, ...items);
      return el("ol", { start: String(node.start) }, ...items);
    }
    case "table": return table(node);
    case "rule": return el("hr");
    default: return el("p", {}, ...inlines(node.content));
  }
}

/**
 * @param {string} language
 * @param {string} text
 */
function code(language, text) {
  const label = language.split(/[\s,{]/)[0];
  const copy = el("button", { type: "button", class: "copy quiet", "aria-label": "Copy the code" }, "Copy");
  const body = el("code", {}, text);
  copy.addEventListener("click", () => copyText(body.textContent ?? "", copy));
  return el("figure", { class: "code" }, el("figcaption", {}, el("span", {}, label), copy), el("pre", { tabindex: "0", "aria-label": label ? `Code, ${label}` : "Code" }, body));
}

/**
 * @param {string} text
 * @param {HTMLElement} button
 */
export async function copyText(text, button) {
  const label = button.textContent;
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
  } catch {
    button.textContent = "Not copied";
  }
  setTimeout(() => (button.textContent = label), 1500);
}

/** @param {MarkdownNode} node */
function table(node) {
  const cell = (/** @type {string} */ tag, /** @type {Inline[]} */ content, /** @type {number} */ at) =>
    el(tag, { class: `align-${node.alignments?.[at] ?? "start"}`, scope: tag === "th" ? "col" : undefined }, ...inlines(content));
  const head = el("thead", {}, el("tr", {}, ...(node.head ?? []).map((content, at) => cell("th", content, at))));
  const rows = (node.rows ?? []).map((row) => el("tr", {}, ...row.map((content, at) => cell("td", content, at))));
  return el("div", { class: "table", tabindex: "0", role: "group", "aria-label": "Table" }, el("table", {}, head, el("tbody", {}, ...rows)));
}

/**
 * Replaces the nodes from an index on. `code` extends the code block before them.
 * @param {HTMLElement} parent
 * @param {{from: number, nodes: MarkdownNode[], code?: string}} change
 */
export function applyChange(parent, change) {
  if (change.code) parent.children[change.from - 1]?.querySelector("code")?.append(change.code);
  while (parent.children.length > change.from) parent.lastElementChild?.remove();
  parent.append(...change.nodes.map(block));
}
