// How this page asks the console's process, with its token in a header, never in an address or a cookie; and what it is told.

const TOKEN = "claudius.token";

class Failed extends Error {
  constructor(status, body) {
    super(body.detail || `the console answered ${status}`);
    this.status = status;
    this.error = body.error || "failed";
    this.fix = body.fix || "";
  }
}

const lost = () => new Failed(0, { error: "lost", detail: "The console's process has ended.", fix: "start it again with `claudius console`" });
export const seg = encodeURIComponent;
export const hasToken = () => Boolean(sessionStorage.getItem(TOKEN));

async function ask(path, body, signal) {
  const headers = { Authorization: `Bearer ${sessionStorage.getItem(TOKEN) || ""}` };
  const options = { headers, signal, cache: "no-store", credentials: "omit" };
  if (body !== undefined) {
    options.method = "POST";
    options.body = JSON.stringify(body);
    headers["Content-Type"] = "application/json";
  }
  let answer;
  try {
    answer = await fetch(`/api/${path}`, options);
  } catch (error) {
    if (signal?.aborted) throw error;
    throw lost();
  }
  if (!answer.ok) {
    let said = {};
    try { said = await answer.json(); } catch { /* not ours, or cut short */ }
    if (answer.status === 401 && path !== "enter") sessionStorage.removeItem(TOKEN);
    throw new Failed(answer.status, said);
  }
  return answer;
}

export const get = async (path, signal) => (await ask(path, undefined, signal)).json();
export const post = async (path, body, signal) => (await ask(path, body, signal)).json();

// Enter with the ticket of the address, which leaves the address before anything is drawn.
export async function enter() {
  const ticket = location.hash.slice(1);
  if (!/^[\w-]{43}$/.test(ticket)) return;
  history.replaceState(null, "", "/#now");
  sessionStorage.setItem(TOKEN, (await post("enter", { ticket })).token);
}

export async function close() {
  await post("close", {});
  sessionStorage.removeItem(TOKEN);
}

// Yield each JSON line of a streamed answer.
export async function* lines(path, body, signal) {
  const reader = (await ask(path, body, signal)).body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const parts = (rest + value).split("\n");
    rest = parts.pop();
    for (const part of parts) {
      const one = part && JSON.parse(part);
      if (one?.error && !one.turn) throw new Failed(503, one.error);
      if (one) yield one;
    }
  }
}

// A browser opens six connections to a host: at most four windows hold a stream.
async function oneOfFew(signal, work) {
  let taken = false;
  for (let n = 0; n < 4 && !taken && !signal.aborted; n++) {
    await navigator.locks.request(`claudius.live.${n}`, { ifAvailable: true }, async (lock) => {
      taken = Boolean(lock);
      if (lock) await work();
    });
  }
  if (!taken) await navigator.locks.request(`claudius.live.${Math.floor(Math.random() * 4)}`, { signal }, work);
}

// Follow what happens while the page is seen; call `gone` where events were missed, `state` with "live" or an error.
let after = null; // the last event that this tab has seen, whichever conversation it followed

export function follow({ conversation, event, gone, state }) {
  let ended = false, abort = null, wake = null;
  const seen = () => document.visibilityState === "visible";
  const turned = () => (seen() ? wake?.() : abort?.abort());
  document.addEventListener("visibilitychange", turned);
  (async () => {
    let pause = 250;
    while (!ended) {
      if (!seen()) await new Promise((go) => { wake = go; });
      if (ended) return;
      abort = new AbortController();
      try {
        await oneOfFew(abort.signal, async () => {
          const body = { conversation };
          if (after !== null) body.after = after;
          for await (const one of lines("live", body, abort.signal)) {
            pause = 250;
            after = one.n;
            if (one.kind === "gone") gone();
            else if (one.kind === "beat") state("live");
            else event(one);
          }
        });
      } catch (error) {
        if (!abort.signal.aborted) state(error instanceof Failed ? error : lost());
        if (error.status === 401) return;
      }
      if (!ended && seen()) {
        await new Promise((go) => setTimeout(go, pause));
        pause = Math.min(pause * 2, 4000);
      }
    }
  })();
  return () => { ended = true; abort?.abort(); wake?.(); document.removeEventListener("visibilitychange", turned); };
}

class Grown {
  constructor(text = "") { this.text = text; this.heard = new Set(); }
  add(piece) { this.text += piece; for (const one of this.heard) one(); }
  listen(one) { this.heard.add(one); return () => this.heard.delete(one); }
}

const BEGINS = ["hear", "think.delta", "speak.delta"];
const isThought = (step) => step.endsWith("monologue");

// Take an event into `lives`: conversation → its turns, oldest first. Two connections tell, in no order.
export function heed(lives, one) {
  const rows = lives.get(one.conversation) ?? [];
  let now = one.turn && rows.find((row) => row.turn === one.turn);
  if (!now) {
    if (!one.turn || !BEGINS.includes(one.kind)) return;
    now = { turn: one.turn, keys: [], heard: [], thoughts: [], words: null, gate: "", over: false };
    lives.set(one.conversation, [...rows.filter((row) => row.over), now].slice(-10));
  }
  const known = () => now.thoughts.find((thought) => thought.step === one.step && !thought.voided);
  switch (one.kind) {
    case "hear": now.keys.push(one.key); now.heard.push(one.text.replace(/^[^ ]+: /, "")); break;
    case "think.delta":
      if (!isThought(one.step)) break;
      if (!known()) now.thoughts.push({ step: one.step, verb: one.verb, grown: new Grown() });
      known().grown.add(one.text);
      break;
    case "think.void": for (const thought of now.thoughts) thought.voided = true; break;
    case "gate": if (!/^\w+_check/.test(one.text)) now.gate = one.text; break;
    case "speak.delta": (now.words ??= new Grown()).add(one.text); break;
    case "speak": case "speech": now.words = new Grown(one.body ?? one.text); now.over = true; break;
    case "error": now.over = true; break;
  }
}

export const isBusy = (row) => Boolean(row) && !row.over && !row.thoughts.at(-1)?.voided;
