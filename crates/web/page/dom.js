// Small helpers: elements, times, and one write to the page per animation frame.
// @ts-check

/**
 * Makes an element. Text becomes text, never markup.
 * @param {string} tag
 * @param {Record<string, string | boolean | undefined | null>} [attributes]
 * @param {...(Node | string | null | undefined)} children
 * @returns {HTMLElement}
 */
export function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === true) node.setAttribute(name, "");
    else if (typeof value === "string") node.setAttribute(name, value);
  }
  for (const child of children) if (child !== null && child !== undefined) node.append(child);
  return node;
}

/**
 * The element with this id, which the page always has.
 * @param {string} id
 * @returns {HTMLElement}
 */
export function byId(id) {
  const found = document.getElementById(id);
  if (!found) throw new Error(`the page has no #${id}`);
  return found;
}

/**
 * `0.4 s`, `12 s`, `2 min 5 s`, `1 h 2 min`.
 * @param {number} ms
 */
export function duration(ms) {
  if (ms < 950) return `0.${Math.floor((ms + 50) / 100)} s`;
  const seconds = Math.round(ms / 1000);
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
}

/**
 * The same for a voice.
 * @param {number} ms
 */
export function spokenDuration(ms) {
  const seconds = Math.max(1, Math.round(ms / 1000));
  const minutes = Math.floor(seconds / 60);
  if (minutes === 0) return `${seconds} ${seconds === 1 ? "second" : "seconds"}`;
  return `${minutes} ${minutes === 1 ? "minute" : "minutes"}`;
}

/** @param {number} count */
export function counted(count) {
  return count >= 10000 ? `${(count / 1000).toFixed(0)}k` : count >= 1000 ? `${(count / 1000).toFixed(1)}k` : String(count);
}

/**
 * When something was, as short as possible.
 * @param {number} at
 */
export function when(at) {
  const date = new Date(at);
  const days = (Date.now() - at) / 86400000;
  if (days < 1 && date.getDate() === new Date().getDate()) return date.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
  if (days < 6) return date.toLocaleDateString([], { weekday: "short" });
  return date.toLocaleDateString([], { day: "numeric", month: "short" });
}

/** @type {(() => void)[]} */
let waiting = [];
let isScheduled = false;
/** Runs before and after all writes of a frame. Returns what to do after. @type {() => () => void} */
let bracket = () => () => {};

/** @param {() => () => void} both */
export function aroundWrites(both) {
  bracket = both;
}

/** What takes longer than so many milliseconds goes on in the next frame, so that a page that fell behind stays usable. */
const FRAME_BUDGET = 8;

function writeAll() {
  isScheduled = false;
  const work = waiting;
  waiting = [];
  // A page that nobody sees has no frames to miss.
  const until = document.hidden ? Infinity : performance.now() + FRAME_BUDGET;
  const after = bracket();
  let done = 0;
  do work[done++]?.();
  while (done < work.length && performance.now() < until);
  after();
  if (done >= work.length) return;
  // What was left comes before what came in the meantime.
  waiting = [...work.slice(done), ...waiting];
  schedule();
}

function schedule() {
  if (isScheduled) return;
  isScheduled = true;
  if (document.hidden) setTimeout(writeAll, 200);
  else requestAnimationFrame(writeAll);
}

/**
 * Changes the page in the next animation frame, together with all other changes. A page that nobody
 * sees has no frames; there a timer does it.
 * @param {() => void} write
 */
export function write(write) {
  waiting.push(write);
  schedule();
}

document.addEventListener("visibilitychange", () => {
  // A frame that was asked for does not come while the page is hidden.
  if (document.hidden && isScheduled) setTimeout(() => isScheduled && writeAll(), 200);
});
