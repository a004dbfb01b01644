// Talks to the server: requests, and the stream of a session's events.
// @ts-check

/** A refusal of the server. */
export class Refused extends Error {
  /**
   * @param {number} status
   * @param {any} value
   */
  constructor(status, value) {
    super(value?.what ?? value?.error ?? `the server answered ${status}`);
    this.status = status;
    /** @type {string} */
    this.word = value?.error ?? "";
    /** @type {string | undefined} */
    this.hint = value?.hint ?? undefined;
  }
}

/**
 * @param {Response} response
 * @returns {Promise<any>}
 */
async function value(response) {
  const text = await response.text();
  let parsed = null;
  try {
    parsed = text ? JSON.parse(text) : null;
  } catch {
    // Not ours; the status says enough.
  }
  if (!response.ok) throw new Refused(response.status, parsed);
  return parsed;
}

/**
 * @param {string} path
 * @returns {Promise<any>}
 */
export async function get(path) {
  return value(await fetch(path, { credentials: "same-origin" }));
}

/**
 * @param {string} path
 * @param {any} body
 * @returns {Promise<any>}
 */
export async function post(path, body) {
  const headers = { "content-type": "application/json", "aside-web": "1" };
  return value(await fetch(path, { method: "POST", headers, body: JSON.stringify(body), credentials: "same-origin" }));
}

/** Exchanges the token in the address for a cookie, and takes it out of the address. */
export async function logIn() {
  if (!location.hash.startsWith("#t=")) return;
  const token = location.hash.slice(3);
  history.replaceState(null, "", location.pathname + location.search);
  try {
    await post("/api/login", { token });
  } catch (error) {
    // A cookie of an earlier login may still be valid; the next request tells.
    if (!(error instanceof Refused)) throw error;
  }
}

/** Without a sign of life for this long, the connection is dead. The server sends one every 15 s. */
const DEAD_AFTER = 40000;

/** The stream of a session. It reconnects by itself and goes on where it stopped. */
export class EventStream {
  /**
   * @param {string} session
   * @param {{event: (name: string, data: any) => void, connected: () => void, lost: (error: unknown) => void}} on
   */
  constructor(session, on) {
    this.session = session;
    this.on = on;
    /** The id of the last event. */
    this.position = "";
    this.isClosed = false;
    this.controller = new AbortController();
    this.failures = 0;
    this.run();
  }

  close() {
    this.isClosed = true;
    this.controller.abort();
  }

  /** Connects again at once. */
  restart() {
    this.controller.abort();
  }

  async run() {
    while (!this.isClosed) {
      try {
        await this.connect();
        this.failures = 0;
      } catch (error) {
        if (this.isClosed) return;
        this.failures += 1;
        this.on.lost(error);
        if (error instanceof Refused && [401, 403, 404].includes(error.status)) return;
      }
      await new Promise((resolve) => setTimeout(resolve, Math.min(5000, 250 * 2 ** this.failures)));
    }
  }

  async connect() {
    this.controller = new AbortController();
    const { signal } = this.controller;
    /** @type {Record<string, string>} */
    const headers = this.position ? { "last-event-id": this.position } : {};
    const path = `/api/sessions/${encodeURIComponent(this.session)}/events`;
    const response = await fetch(path, { headers, signal, credentials: "same-origin", cache: "no-store" });
    if (!response.ok || !response.body) await value(response);
    this.failures = 0;
    this.on.connected();
    const reader = /** @type {ReadableStream<Uint8Array>} */ (response.body).pipeThrough(new TextDecoderStream()).getReader();
    let pending = "";
    for (;;) {
      const timer = setTimeout(() => this.controller.abort(), DEAD_AFTER);
      const { done, value: text } = await reader.read().finally(() => clearTimeout(timer));
      if (done) throw new Error("the server closed the connection");
      // What was searched before is not searched again.
      let from = Math.max(0, pending.length - 1);
      let begun = 0;
      pending += text;
      for (let end = pending.indexOf("\n\n", from); end >= 0; end = pending.indexOf("\n\n", from)) {
        this.take(pending.slice(begun, end));
        begun = from = end + 2;
      }
      pending = pending.slice(begun);
    }
  }

  /** @param {string} frame */
  take(frame) {
    let name = "message";
    let data = "";
    let id = "";
    for (const line of frame.split("\n")) {
      if (line.startsWith("event: ")) name = line.slice(7);
      else if (line.startsWith("data: ")) data = line.slice(6);
      else if (line.startsWith("id: ")) id = line.slice(4);
    }
    if (!data) return;
    this.on.event(name, JSON.parse(data));
    // Only what was taken counts as read.
    if (id) this.position = id;
  }
}
