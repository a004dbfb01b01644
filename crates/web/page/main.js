// The page: connects a session with what is shown.
// @ts-check
import { Composer } from "./composer.js";
import { byId, duration, el, spokenDuration, write } from "./dom.js";
import { Questions } from "./question.js";
import { EventStream, Refused, get, logIn, post } from "./server.js";
import { Sidebar } from "./sidebar.js";
import { Transcript } from "./transcript.js";
import { copyText } from "./markdown.js";

const VIEWS = /** @type {const} */ (["full", "live", "collapsed", "off"]);
const VIEW_NAMES = { full: "Thinking: full", live: "Thinking: live", collapsed: "Thinking: folded", off: "Thinking: off" };

/** @type {Transcript} */
let transcript;
/** @type {EventStream | null} */
let stream = null;
let session = "";
/** @type {any} */
let status = {};
/** @type {any} */
let turn = { running: false };
let isReadOnly = false;

const view = /** @type {HTMLSelectElement} */ (byId("view"));
const effort = /** @type {HTMLSelectElement} */ (byId("effort"));
const mode = /** @type {HTMLSelectElement} */ (byId("mode"));
const model = /** @type {HTMLInputElement} */ (byId("model"));

/** Says something to a screen reader. @param {string} text */
function say(text) {
  byId("status").textContent = text;
}

/**
 * Sends a command to the session. Returns what the page must do itself, if anything.
 * @param {any} command
 */
function command(command) {
  return post(`/api/sessions/${encodeURIComponent(session)}/commands`, command);
}

/** The same, with a failure shown to the user. @param {any} wanted */
async function tell(wanted) {
  try {
    return await command(wanted);
  } catch (error) {
    fail(error);
    return null;
  }
}

/** @param {unknown} error */
function fail(error) {
  if (error instanceof Refused && error.word === "open_elsewhere") return banner("This session is open in another aside. It can be read here; close it there to write.");
  if (error instanceof Refused && error.status === 401) return loggedOut();
  const hint = error instanceof Refused ? error.hint : undefined;
  write(() => transcript.addOwnNote("error", { what: error instanceof Error ? error.message : String(error), hint }));
}

/** @param {string} text */
function banner(text) {
  const root = byId("banner");
  root.hidden = text === "";
  root.textContent = text;
}

function loggedOut() {
  banner("You are not logged in. Press Enter in the terminal of aside web, or run aside web --print-url, and open the address that it prints.");
}

const composer = new Composer({
  send: async (text, isQueued) => {
    try {
      // During a turn, a message goes in after the current step.
      const type = turn.running && !isQueued ? "steer" : "prompt";
      const local = await command({ type, value: text });
      if (local?.local) await runLocal(local);
      else transcript.toEnd();
      return true;
    } catch (error) {
      fail(error);
      return false;
    }
  },
  stop: () => tell({ type: "interrupt" }),
  answerNow: () => tell({ type: "answerNow" }),
});

const questions = new Questions(async (id, answer) => {
  try {
    await command({ type: "answer", value: { id, answer } });
    return "";
  } catch (error) {
    return error instanceof Refused ? error.word || error.message : String(error);
  }
});

const sidebar = new Sidebar((id, entry, block) => {
  if (id === session) {
    if (entry !== undefined) transcript.goTo(entry, block ?? 0);
    return;
  }
  history.pushState(null, "", `/s/${encodeURIComponent(id)}${entry === undefined ? "" : `#e=${entry}.${block}`}`);
  openFromAddress();
});

/** A command that concerns the page. @param {any} local */
async function runLocal(local) {
  switch (local.local) {
    case "new": return begin();
    case "resume":
    case "sessions": return local.rest ? sidebar.open(local.rest) : showSidebar("");
    case "search": return showSidebar(local.rest);
    case "open": return showSidebar("");
    case "nextView": return nextView();
    case "nextMode": return setMode(mode.options[(mode.selectedIndex + 1) % mode.options.length].value);
    case "sent": return showSent();
    case "help": return showHelp(local.commands);
    case "copyAnswer": return copyText(transcript.lastAnswer(), byId("send"));
    case "copyCode": return copyText(transcript.lastCode(), byId("send"));
    case "copyThinking": return copyText(transcript.lastThinking()?.text ?? "", byId("send"));
    case "reader": {
      const last = transcript.lastThinking();
      return last && transcript.goTo(last.entry, last.index);
    }
    case "theme": return say("The page follows the theme of your system.");
    case "quit": return sidebar.refresh();
  }
}

/** @param {string} words */
function showSidebar(words) {
  sidebar.show(true);
  const search = /** @type {HTMLInputElement} */ (byId("search"));
  search.value = words;
  search.focus();
  sidebar.find(words);
}

/** @type {{what: string, action: string, why: string}[]} */
let sentRows = [];

function showSent() {
  const rows = sentRows.map((row) => [row.what, row.action, row.why]);
  write(() => {
    if (rows.length === 0) transcript.addOwnNote("line", { what: "The last request had no thinking to send back." });
    else transcript.addOwnNote("table", { command: "/sent", head: ["block", "what was done", "why"], rows });
    transcript.toEnd();
  });
}

/** @param {[string, string, string][]} commands */
function showHelp(commands) {
  const keys = [["Enter", "send; Shift+Enter for a new line"], ["Esc", "stop the turn"], ["t", "the next view of thinking"], ["j, k", "the next and the previous block"],
    ["o, Enter", "open or fold the block"], ["Alt+Enter", "answer now, with an empty input"], ["/", "write a command"]];
  write(() => {
    transcript.addOwnNote("table", { command: "/help", head: ["key", "does"], rows: keys });
    transcript.addOwnNote("table", { head: ["command", "arguments", "does"], rows: commands.map(([name, rest, doc]) => [`/${name}`, rest, doc]) });
    transcript.toEnd();
  });
}

/** The view that the user chose, until the server has confirmed it. @type {string | null} */
let chosenView = null;

function nextView() {
  setView(VIEWS[(VIEWS.indexOf(/** @type {any} */ (view.value)) + 1) % VIEWS.length]);
}

/** @param {import("./thinking.js").View} wanted */
function setView(wanted) {
  view.value = wanted;
  chosenView = wanted;
  write(() => transcript.setView(wanted));
  say(VIEW_NAMES[wanted]);
  // A choice that was refused counts no longer.
  command({ type: "view", value: wanted }).catch((error) => {
    chosenView = null;
    fail(error);
  });
}

/** @param {string} wanted */
function setMode(wanted) {
  mode.value = wanted;
  tell({ type: "mode", value: wanted });
}

/** @param {any} now */
function applyStatus(now) {
  status = now;
  const title = now.title || "New session";
  byId("title").textContent = title;
  document.title = `${turn.running ? "● " : ""}${title} · aside`;
  // A status that was on its way when the user chose another view says nothing about that choice.
  if (chosenView === null || chosenView === now.view) {
    chosenView = null;
    view.value = now.view;
    transcript.setView(now.view);
  }
  setEfforts(now);
  mode.value = now.mode ?? "ask";
  mode.parentElement?.toggleAttribute("hidden", !now.mode);
  if (document.activeElement !== model) model.value = now.model;
  const about = [now.model, now.tier ? `commands are confined: ${now.tier}` : "commands are not confined"].join(" · ");
  byId("welcome").querySelector(".welcome-model")?.replaceChildren(about);
}

/** Offers the levels that the model has, and the one that is set. @param {any} now */
function setEfforts(now) {
  const set = now.effort ?? "default";
  const words = [...new Set(["default", ...now.efforts, "none", set])];
  const shown = [...effort.options].map((option) => option.value);
  if (words.join() !== shown.join()) {
    effort.replaceChildren(...words.map((word) => el("option", { value: word }, `Effort: ${word}`)));
  }
  effort.value = set;
}

/** @param {any} now */
function applyTurn(now) {
  const wasRunning = turn.running;
  turn = now;
  byId("stop").hidden = !now.running;
  byId("queue").hidden = !now.running;
  byId("welcome").hidden = now.running || !transcript.isEmpty();
  document.title = `${now.running ? "● " : ""}${status.title || "New session"} · aside`;
  drawState();
  if (wasRunning && !now.running) {
    const paragraphs = transcript.timeline.lastElementChild?.querySelectorAll(".answer > *").length ?? 0;
    say(paragraphs > 0 ? `Answer, ${paragraphs} ${paragraphs === 1 ? "paragraph" : "paragraphs"}` : "Done");
    sidebar.refresh().catch(() => {});
  }
}

/** The line below the input. */
function drawState() {
  const isThinking = [...transcript.thinking()].some((one) => one.view.state === "running");
  byId("answer-now").hidden = !(turn.running && isThinking);
  const parts = [];
  if (isReadOnly) parts.push("open in another aside: reading only");
  if (turn.running && turn.retry) {
    const left = Math.max(0, turn.retry.at + turn.retry.afterMs - transcript.now());
    parts.push(`${turn.retry.why}; trying again in ${duration(left)}`);
  } else if (turn.running) {
    const passed = turn.since ? transcript.now() - turn.since : 0;
    parts.push(isThinking ? "thinking" : "working");
    if (passed >= 1000) parts.push(duration(Math.floor(passed / 1000) * 1000));
  }
  if (turn.tokens && turn.limit) parts.push(`${Math.round((100 * turn.tokens) / turn.limit)}% of the context`);
  if (status.cost) parts.push(`${status.cost.isExact ? "" : "over "}$${(status.cost.microdollars / 1e6).toFixed(4)}`);
  const text = parts.join(" · ");
  const state = byId("state");
  if (state.textContent !== text) state.textContent = text;
}

/** @param {any} hello */
function applyHello(hello) {
  transcript.clockOffset = hello.now - Date.now();
  chosenView = null;
  isReadOnly = hello.readOnly;
  if (hello.session !== session) {
    // It goes on in a copy.
    session = hello.session;
    transcript.session = session;
    if (stream) stream.session = session;
    history.replaceState(null, "", `/s/${encodeURIComponent(session)}`);
  }
  options(mode, hello.modes, (word) => `Tools: ${word.replace("-", " ")}`);
  options(view, [...VIEWS], (word) => VIEW_NAMES[/** @type {keyof typeof VIEW_NAMES} */ (word)]);
  applyLists(hello.lists);
  composer.prompts = hello.prompts;
  composer.commands = hello.commands;
  applyStatus(hello.status);
  setSent(hello.sent);
  questions.replaceAll(hello.questions);
  for (const control of [view, mode, effort, model]) control.toggleAttribute("disabled", isReadOnly);
  applyTurn(hello.turn);
  banner("");
}

/**
 * @param {HTMLSelectElement} select
 * @param {string[]} words
 * @param {(word: string) => string} name
 */
function options(select, words, name) {
  if (select.options.length !== words.length) select.replaceChildren(...words.map((word) => el("option", { value: word }, name(word))));
}

/** @param {any} lists */
function applyLists(lists) {
  byId("models").replaceChildren(...lists.models.map((/** @type {string} */ name) => el("option", { value: name })));
}

/** @param {any} sent */
function setSent(sent) {
  sentRows = sent.rows ?? [];
  transcript.setDecisions(sent.blocks ?? []);
}

/** @type {Record<string, (data: any) => void>} */
const EVENTS = {
  hello: (data) => {
    applyHello(data);
    for (const note of data.notes) transcript.addNote(note);
  },
  entries: (data) => {
    transcript.replaceAll(data);
    byId("welcome").hidden = !transcript.isEmpty();
    const target = location.hash.match(/^#e=(\d+)\.(\d+)$/);
    if (target) transcript.goTo(Number(target[1]), Number(target[2]));
    else transcript.toEnd();
    transcript.drawDecisions();
  },
  entry: (data) => {
    transcript.put(data);
    transcript.drawDecisions();
    byId("welcome").hidden = true;
  },
  block: ({ entry, block, value }) => {
    transcript.setBlock(entry, block, value);
    if (value.kind === "thinking") drawState();
    if (value.kind === "thinking" && value.state === "running") say("Thinking");
    if (value.kind === "call" && value.state === "running") say(`Running ${value.name}`);
  },
  grew: (data) => transcript.grew(data),
  markdown: (data) => transcript.markdown(data),
  removed: (data) => transcript.removed(data),
  facts: (data) => transcript.facts(data),
  result: (data) => transcript.setResult(data, ""),
  output: (data) => transcript.setOutput(data),
  rewind: (data) => transcript.rewind(data),
  turn: applyTurn,
  status: applyStatus,
  lists: applyLists,
  prompts: (data) => (composer.prompts = data),
  sent: setSent,
  note: (data) => transcript.addNote(data),
  question: (data) => {
    questions.add(data);
    say(`Wants permission: ${data.head}`);
  },
  answered: (data) => questions.remove(data.id),
  undone: (data) => composer.set(data.text),
  notSent: (data) => composer.set(data.text),
  ended: () => banner("The session has ended. Reload to open it again."),
};

/** Shows a session. @param {string} id */
function show(id) {
  stream?.close();
  session = id;
  transcript = new Transcript(id);
  transcript.onThinkingEnd = (thinking) => {
    const { startedAt, endedAt } = thinking?.view ?? {};
    say(startedAt && endedAt ? `Thought for ${spokenDuration(endedAt - startedAt)}` : "Thought");
  };
  sidebar.current = id;
  sidebar.refresh().catch(() => {});
  stream = new EventStream(id, {
    event: (name, data) => write(() => EVENTS[name]?.(data)),
    connected: () => banner(""),
    lost: (error) => {
      if (error instanceof Refused && error.status === 401) loggedOut();
      else if (error instanceof Refused && error.status === 404) banner("There is no such session.");
      else if (error instanceof Refused) banner(error.message);
      else banner("Connecting again …");
    },
  });
}

/** Begins a session. */
async function begin() {
  try {
    const { id } = await post("/api/sessions", {});
    history.pushState(null, "", `/s/${encodeURIComponent(id)}`);
    show(id);
    composer.input.focus();
  } catch (error) {
    if (error instanceof Refused && error.status === 401) return loggedOut();
    banner(error instanceof Error ? error.message : String(error));
  }
}

function openFromAddress() {
  const id = location.pathname.match(/^\/s\/([^/]+)$/)?.[1];
  if (id) show(decodeURIComponent(id));
  else begin();
}

// Keys outside of the input, none with Ctrl: those are the browser's.
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && turn.running && questions.open.length === 0) return tell({ type: "interrupt" });
  const target = /** @type {HTMLElement} */ (event.target);
  if (event.ctrlKey || event.metaKey || event.altKey || target.closest("input, textarea, select, [role=alertdialog]")) return;
  if (event.key === "t") nextView();
  else if (event.key === "/") {
    event.preventDefault();
    composer.input.focus();
    composer.set("/");
    composer.complete();
  } else if (event.key === "j" || event.key === "k") step(event.key === "j" ? 1 : -1);
  else if (event.key === "o") /** @type {HTMLElement | null} */ (document.activeElement)?.closest("button.thinking-head, button.tool-head")?.dispatchEvent(new MouseEvent("click"));
});

/** Goes to the next or the previous block that can be opened. @param {number} by */
function step(by) {
  const heads = /** @type {HTMLElement[]} */ ([...transcript.timeline.querySelectorAll("button.thinking-head, button.tool-head")]).filter((one) => one.offsetParent !== null);
  const at = heads.indexOf(/** @type {HTMLElement} */ (document.activeElement));
  const next = at < 0 ? (by > 0 ? 0 : heads.length - 1) : Math.max(0, Math.min(heads.length - 1, at + by));
  heads[next]?.focus();
}

view.addEventListener("change", () => setView(/** @type {any} */ (view.value)));
mode.addEventListener("change", () => setMode(mode.value));
effort.addEventListener("change", () => tell(effort.value === "default" ? { type: "unset", value: "reasoning.effort" } : { type: "effort", value: effort.value }));
model.addEventListener("focus", () => model.select());
model.addEventListener("change", () => model.value && model.value !== status.model && tell({ type: "model", value: model.value }));
byId("new").addEventListener("click", () => {
  sidebar.show(false);
  begin();
});
byId("latest").addEventListener("click", () => transcript.toEnd());
byId("earlier").addEventListener("click", () => transcript.loadEarlier());
window.addEventListener("popstate", openFromAddress);
// A page that slept has a dead connection.
document.addEventListener("resume", () => stream?.restart());
window.addEventListener("online", () => stream?.restart());
setInterval(() => {
  if (turn.running) write(() => {
    transcript.tick();
    drawState();
  });
}, 1000);

await logIn();
openFromAddress();
