// Parts that several screens share.
import { html, useLayoutEffect, useRef, useState } from "./vendor/preact-htm.js";
import { get, post, seg } from "./net.js";

// What people, files and models wrote, as text: a small tree of our own, no markup of theirs, nothing hidden.
const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\u{e0000}-\u{e007f}]/gu;
const named = (sign) => `U+${sign.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`;

// Show control and direction signs as what they are.
export const plain = (text) => String(text ?? "").replace(/\r\n/g, "\n").replace(HIDDEN, named);

const INLINE = /(`[^`\n]+`)|(\*\*[^*\n]+\*\*)|(\*[^*\s][^*\n]*\*|\b_[^_\n]+_\b)|(https?:\/\/[^\s<>"')\]]+)/g;

function inline(text) {
  const parts = [];
  let at = 0;
  for (const found of text.matchAll(INLINE)) {
    if (found.index > at) parts.push(text.slice(at, found.index));
    const [whole, code, strong, weak, link] = found;
    if (code) parts.push(html`<code>${whole.slice(1, -1)}</code>`);
    else if (strong) parts.push(html`<strong>${whole.slice(2, -2)}</strong>`);
    else if (weak) parts.push(html`<em>${whole.slice(1, -1)}</em>`);
    else if (link) parts.push(html`<span class="address">${whole}</span><button class="copy" onClick=${() => navigator.clipboard?.writeText(whole)}>copy<span class="sr"> the address</span></button>`);
    at = found.index + whole.length;
  }
  if (at < text.length) parts.push(text.slice(at));
  return parts;
}

// Draw Markdown's paragraphs, lists, headings, emphasis and code; everything else stays as it was written.
export function Prose({ text }) {
  const blocks = [];
  let list = null, code = null, lines = [];
  const flush = () => {
    if (lines.length) blocks.push(html`<p>${inline(lines.join("\n"))}</p>`);
    if (list) blocks.push(list.ordered ? html`<ol>${list.items}</ol>` : html`<ul>${list.items}</ul>`);
    list = null;
    lines = [];
  };
  for (const line of plain(text).split("\n")) {
    if (code) {
      if (/^\s*```/.test(line)) { blocks.push(html`<pre tabindex="0"><code>${code.join("\n")}</code></pre>`); code = null; }
      else code.push(line);
      continue;
    }
    const item = /^\s*(?:[-*]|(\d+)[.)])\s+(.*)$/.exec(line);
    const head = /^#{1,6}\s+(.*)$/.exec(line);
    if (/^\s*```/.test(line)) { flush(); code = []; }
    else if (item) {
      if (lines.length) flush();
      list ??= { ordered: Boolean(item[1]), items: [] };
      list.items.push(html`<li>${inline(item[2])}</li>`);
    } else if (head) { flush(); blocks.push(html`<p class="head">${inline(head[1])}</p>`); }
    else if (!line.trim()) flush();
    else { if (list) flush(); lines.push(line); }
  }
  if (code) blocks.push(html`<pre tabindex="0"><code>${code.join("\n")}</code></pre>`);
  flush();
  return html`<div class="prose">${blocks}</div>`;
}

export const date = (at) => new Date(typeof at === "number" ? at * 1000 : at);
const as = (options) => { const format = new Intl.DateTimeFormat("en-GB", options); return (at) => format.format(date(at)); };
const weekday = as({ weekday: "short" });
export const day = as({ weekday: "long", day: "numeric", month: "short" });
export const shortDay = as({ weekday: "short", day: "numeric", month: "short" });
export const clock = as({ hour: "2-digit", minute: "2-digit" });
export const when = (at) => (at ? `${day(at)}, ${clock(at)}` : "never");
export const brief = (at) => `${weekday(at)} ${clock(at)}`;
export const span = (seconds) => {
  const minutes = Math.max(0, Math.round(seconds / 60));
  return minutes < 120 ? `${minutes} min` : minutes < 2880 ? `${Math.round(minutes / 60)} h` : `${Math.round(minutes / 1440)} d`;
};
export const count = (n) => (n >= 10000 ? `${Math.round(n / 1000)} k` : n >= 1000 ? `${(n / 1000).toFixed(1)} k` : String(n ?? 0));
export const tokensIn = (used) => used.input_tokens + used.cache_read_tokens + used.cache_write_tokens;
export const many = (n, word) => `${n} ${word}${n === 1 ? "" : "s"}`;
export const dollars = (n) => (n === null || n === undefined ? "price unknown" : n > 0 && n < 0.0001 ? "under $0.0001" : `$${n.toFixed(n && n < 1 ? 4 : 2)}`);
export const signed = (n) => `${n < 0 ? "▼ −" : "▲ +"}${Math.abs(n).toFixed(2)}`;
const trustWord = (n) => `${n < 0 ? "−" : "+"}${Math.abs(n)} of ±10`;
export const spaced = (name) => String(name ?? "").replace(/\.md$/, "").replace(/_/g, " ");

// Read a document, again when `turn` changes; the last one stays while a new one is fetched or fails.
export function useRead(path, turn = 0) {
  const [found, set] = useState({ data: null, error: null, path: null });
  useLayoutEffect(() => {
    if (!path) return undefined;
    const abort = new AbortController();
    get(path, abort.signal).then(
      (data) => set({ data, error: null, path }),
      (error) => { if (!abort.signal.aborted) set((was) => ({ data: was.path === path ? was.data : null, error, path })); },
    );
    return () => abort.abort();
  }, [path, turn]);
  return found.path === path || !path ? found : { data: null, error: null, path };
}

// A line of ours, with its commands as code.
export const Line = ({ text }) => inline(plain(text));

export const Problem = ({ error }) => html`<p class="problem" role="alert"><strong><${Line} text=${error.message}/></strong> ${error.fix && html`<${Line} text=${error.fix}/>`}</p>`;

export const Nothing = ({ children }) => html`<p class="nothing">${children}</p>`;

export function Read({ of, children }) {
  if (of.data !== null) return children(of.data);
  return of.error ? html`<${Problem} error=${of.error}/>` : html`<${Nothing}>Reading…<//>`;
}

export const Section = ({ title, kind, of, above, children }) => html`<section class=${kind} aria-label=${title}><h2>${title}</h2>${above}${of ? html`<${Read} of=${of}>${children}<//>` : children}</section>`;

export const Cards = ({ rows, none, children }) => (rows.length ? html`<ul class="cards">${rows.map((row) => html`<li key=${row.id ?? row.key ?? row.version ?? row.name}>${children(row)}</li>`)}</ul>` : html`<${Nothing}>${none}<//>`);

// `children` draws the cells of a row, the first of them its head.
export const Table = ({ label, heads, rows, none, chosen, children }) => !rows.length && none ? html`<${Nothing}>${none}<//>` : html`<div class="scroll" tabindex="0" role="region" aria-label=${label}><table><thead><tr>${heads.map((one) => html`<th scope="col">${one}</th>`)}</tr></thead><tbody>${rows.map((row) => { const [first, ...rest] = children(row); return html`<tr aria-current=${row === chosen ? "true" : null}><th scope="row">${first}</th>${rest.map((cell) => html`<td>${cell}</td>`)}</tr>`; })}</tbody></table></div>`;

export const Choice = ({ label, of, now, onChoose }) => html`<div class="choice" role="group" aria-label=${label}>${of.map(([value, word = value]) => html`<button key=${value} aria-pressed=${value === now} onClick=${() => onChoose(value)}>${word}</button>`)}</div>`;

// Do something on keys pressed outside a field and a layer; it returns whether the key was its own.
export function useKeys(press) {
  const now = useRef();
  now.current = press;
  useLayoutEffect(() => {
    const pressed = (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest?.("input, textarea, select") || document.querySelector("dialog[open]")) return;
      if (now.current(event.key)) event.preventDefault();
    };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  }, []);
}

export const Thought = ({ verb, text, children, voided }) => html`<div class=${`thought${voided ? " voided" : ""}`}>
  <p class="kind"><span class="sr">private thought: </span>private${verb ? ` · ${plain(verb)}` : ""}${voided ? " · taken back" : ""}</p>
  <div class="private">${children ?? html`<${Prose} text=${text}/>`}</div></div>`;

// Text that grows, drawn as it will stand, at most once a frame; marks that are still open are closed for it.
const OPEN = ["**", "`"];
function closed(text) {
  const shown = text.replace(/[*`_]+$/, ""), last = shown.slice(shown.lastIndexOf("\n") + 1);
  return OPEN.reduce((all, mark) => (last.split(mark).length % 2 ? all : all + mark), shown);
}

export function Growing({ of }) {
  const [, draw] = useState(0);
  useLayoutEffect(() => {
    let asked = 0;
    const stop = of.listen(() => { asked ||= requestAnimationFrame(() => { asked = 0; draw((n) => n + 1); }); });
    return () => { stop(); cancelAnimationFrame(asked); };
  }, [of]);
  return html`<div class="growing"><${Prose} text=${closed(of.text)}/></div>`;
}

export function Layer({ title, onClose, children }) {
  const box = useRef(null);
  useLayoutEffect(() => {
    const before = document.activeElement;
    box.current.showModal();
    return () => before?.focus?.();
  }, []);
  return html`<dialog ref=${box} class="layer" onClose=${onClose} aria-label=${title}>
    <header><h2>${title}</h2><button class="plain" onClick=${() => box.current.close()}>Close</button></header>
    <div class="inside">${children}</div></dialog>`;
}

// It says what came of it; where it failed, the error stays beside it.
export function Deed({ label, does, done, again, deed, disabled }) {
  const [state, set] = useState({});
  const press = async () => {
    set({ busy: true });
    try { const found = await does(); set({ said: done?.(found) ?? "done" }); again?.(); } catch (error) { set({ error }); }
  };
  return html`<span class="deedline"><button class=${deed ? "deed" : "plain"} disabled=${disabled || state.busy} onClick=${press}>${label}${state.busy && " …"}</button>
    <span role="status">${state.said && html` <em>${plain(state.said)}</em>`}</span>${state.error && html`<${Problem} error=${state.error}/>`}</span>`;
}

export const nameOf = (people, person) => {
  const found = people?.find((one) => one.person === person || one.linked?.includes(person));
  return found?.name || person?.split(":").pop() || "on its own";
};

export const OWN = "terminal:local:main:main";
export const placeOf = (id) => (id === OWN ? "You" : plain(id?.split(":").slice(2).filter(Boolean).join(" ") || id));

export const where = (audience, people) => {
  const [kind, ...rest] = String(audience).split(":");
  return kind === "private" ? `in private with ${plain(nameOf(people, rest.join(":")))}` : kind === "shared" ? `in ${plain(rest.slice(2).join(" ") || rest.join(" "))} (${rest[0]})` : kind === "self" ? "anywhere" : plain(audience);
};

// What was heard; words that expired or were erased are said to be so, never shown as empty.
function Heard({ of, what }) {
  if (!of || (!of.person && !of.text && !of.kind)) return html`<${Nothing}>Nobody spoke: it began by itself.<//>`;
  if (of.erased) return html`<p class="heard gone">What was heard here was erased.</p>`;
  if (of.text === null || of.text === undefined) {
    return html`<blockquote class="heard">${of.preview && html`<p>${plain(of.preview)}</p>`}
      <p class="small">${of.preview ? "a preview of the ledger: " : ""}working memory let the full words go on ${when(of.expired_at)}</p></blockquote>`;
  }
  if (of.origin === "internal") return html`<p class="heard"><em>It rang: </em>${plain(what || of.text || spaced(of.kind))}</p>`;
  return html`<blockquote class="heard"><p>${plain(of.text)}</p></blockquote>`;
}

function Prompt({ turn }) {
  return html`<${Read} of=${useRead(`turns/${seg(turn)}?prompt=1`)}>${({ prompt }) => !prompt ? html`<${Nothing}>No model was asked, or the record has expired.<//>`
    : prompt === "erased" ? html`<${Nothing}>What it was built from was erased.<//>`
    : html`<h3>System</h3><pre class="private" tabindex="0">${plain(prompt.system)}</pre>${prompt.history.map((one) => html`<h3>${one.role}</h3><pre class="private" tabindex="0">${plain(one.content)}</pre>`)}<h3>Tail</h3><pre class="private" tabindex="0">${plain(prompt.tail)}</pre>`}<//>`;
}

export function Standing({ person, soul }) {
  const is = (one) => [one.person, one.peer, ...(one.linked ?? [])].includes(person);
  const edge = soul.psyche.data?.relationships.find(is), peer = useRead("peers", soul.turn).data?.find(is);
  return html`<p>${edge ? plain(edge.words) : "not met lately"} · ${peer?.trust != null ? html`trust ${trustWord(peer.trust)}: <span class="private">${plain(peer.rationale)}</span>` : "not assessed yet"}</p>`;
}

const Listed = ({ head, of }) => of.length > 0 && html`<h3>${head}</h3><ul class="private">${of.map(({ id, text, what = `${text} (${id})`, when: then, at = then, until = at }) => html`<li>${plain(what)} <span class="small">${until && when(until)}</span></li>`)}</ul>`;

// What `whoami` tells beside the portraits.
export const Kept = ({ known }) => html`<${Listed} head="Told" of=${known.facts}/><${Listed} head="Open" of=${known.open}/><${Listed} head="Planned" of=${known.plans}/>
  <p class="small">${known.moments} ${known.moments === 1 ? "message is" : "messages are"} kept for recall.</p>`;

export function Turn({ turn, soul, moved, level = "h3" }) {
  const found = useRead(turn ? `turns/${seg(turn)}` : null);
  if (!turn) return html`<${Nothing}>Pick a turn: by its tick, a dot, a row, or with the arrow keys.<//>`;
  return html`<${Read} of=${found}>${(why) => html`<article class="turn">
    <p class="small">${day(why.at)}, ${clock(why.at)} · ${spaced(why.process)}</p>
    <${level}>${why.person ? plain(nameOf(soul.people.data, why.person)) : "On its own"}<//>
    <${Heard} of=${why.perception} what=${why.entries.find((one) => one.metadata?.what)?.metadata.what}/>
    ${why.thoughts.filter((one) => one.content && one.step.endsWith("monologue")).map((one) => html`<${Thought} verb=${one.verb ?? spaced(one.step)} text=${one.content}/>`)}
    ${why.utterance ? html`<div class="spoken"><${Prose} text=${why.utterance}/>${(why.receipts ?? []).map((line) => html`<p class="small private">${plain(line)}</p>`)}</div>` : html`<p class="small">It said nothing.</p>`}
    ${why.apology && html`<p class="small">an apology: ${spaced(why.apology)}</p>`}
    ${moved && html`<h3>What it moved</h3><dl class="moved"><dt>mood</dt><dd class=${moved.delta < 0 ? "down" : "up"}>${signed(moved.delta)}</dd><dt>afterwards</dt><dd>${plain(moved.mood)}</dd></dl>`}
    <h3>Why it thought</h3>
    <p>${plain(why.explained.words || "Nobody asked for it: it took a moment of its own.")}</p>
    ${why.explained.numbers && html`<p class="small">${plain(why.explained.numbers)}</p>`}
    <h3>What changed</h3>${why.explained.changed.length ? why.explained.changed.map((line) => html`<p class="private">${plain(line)}</p>`) : html`<p>Nothing: it stayed in ${spaced(why.process)}.</p>`}
    <p class="small">${why.provider ? `${why.provider}${why.model === why.provider ? "" : ` ${why.model}`} · ${tokensIn(why.usage)} tokens in, ${why.usage.output_tokens} out · ${dollars(why.usage.cost_usd)}` : "no model was asked"}</p>
    <p class="small">${why.expired_at ? `The record of this turn expired on ${day(why.expired_at)}.` : html`<button class="link" onClick=${() => soul.show("The whole prompt", html`<${Prompt} turn=${turn}/>`)}>the whole prompt</button>`} · turn ${why.turn}</p>
    ${why.provider && !why.expired_at && html`<p><${Deed} label="Replay" does=${() => post("replay", { turns: [turn], files: {} })} done=${({ turns: [one] }) => (one.identical ? "built again: the same prompt, byte for byte" : "built again: not the same prompt")}/></p>`}
  </article>`}<//>`;
}
