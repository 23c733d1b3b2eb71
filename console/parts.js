// Parts that several screens share: what was only thought, what to do when there is nothing or something broke.
import { html, useEffect, useRef, useState } from "./vendor/preact-htm.js";
import { Failed, get } from "./net.js";
import { plain, Prose } from "./words.js";

// Read a document, and read it again when `turn` changes; the last one stays while a new one is fetched or fails.
export function useRead(path, turn = 0) {
  const [found, set] = useState({ data: null, error: null, path: null });
  useEffect(() => {
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

// A failed part says what failed and what to do, in its own place.
export const Problem = ({ error }) => html`<p class="problem" role="alert"><strong>${plain(error.message)}</strong>${error.fix ? html` ${plain(error.fix)}` : null}</p>`;

export const Nothing = ({ children }) => html`<p class="nothing">${children}</p>`;

export function Read({ of, children, what = "it" }) {
  if (of.data !== null) return children(of.data);
  return of.error ? html`<${Problem} error=${of.error}/>` : html`<p class="nothing">Reading ${what}…</p>`;
}

export const Section = ({ id, title, children }) => html`<section aria-labelledby=${id}><h2 id=${id}>${title}</h2>${children}</section>`;

// A table that scrolls inside itself where it is wider than the page.
export const Table = ({ label, heads, children }) => html`<div class="scroll" tabindex="0" role="region" aria-label=${label}><table><thead><tr>${heads.map((one) => html`<th scope="col">${one}</th>`)}</tr></thead><tbody>${children}</tbody></table></div>`;

export const Thought = ({ verb, text, children, voided }) => html`<div class=${`thought${voided ? " voided" : ""}`}>
  <p class="kind"><span class="sr">private thought: </span>private${verb ? ` · ${plain(verb)}` : ""}${voided ? " · taken back" : ""}</p>
  <div class="private">${children ?? html`<${Prose} text=${text}/>`}</div></div>`;

// Text that grows while it is written: each piece is appended to one text node, nothing else is drawn anew.
export function Growing({ of }) {
  const place = useRef(null);
  useEffect(() => {
    const node = document.createTextNode(plain(of.text));
    place.current.replaceChildren(node);
    return of.listen((piece) => node.appendData(plain(piece)));
  }, [of]);
  return html`<span class="growing"><span ref=${place}></span><span class="caret" aria-hidden="true"></span></span>`;
}

export class Grown {
  constructor() { this.text = ""; this.heard = new Set(); }
  add(piece) { this.text += piece; for (const one of this.heard) one(piece); }
  listen(one) { this.heard.add(one); return () => this.heard.delete(one); }
}

// A modal layer: Escape closes it, focus goes in and comes back.
export function Layer({ title, onClose, children }) {
  const box = useRef(null);
  useEffect(() => {
    const before = document.activeElement;
    box.current.showModal();
    return () => before?.focus?.();
  }, []);
  return html`<dialog ref=${box} class="layer" onClose=${onClose} aria-label=${title}>
    <header><h2>${title}</h2><button class="plain" onClick=${() => box.current.close()}>Close</button></header>
    <div class="inside">${children}</div></dialog>`;
}

// A button that does one thing and says what came of it; where it failed, the error stays beside it.
export function Deed({ label, does, done, again, deed = false }) {
  const [state, set] = useState({});
  const press = async () => {
    set({ busy: true });
    try { const found = await does(); set({ said: done?.(found) ?? "done" }); again?.(); } catch (error) { set({ error }); }
  };
  return html`<span class="deedline"><button class=${deed ? "deed" : "plain"} disabled=${state.busy} onClick=${press}>${label}${state.busy ? " …" : ""}</button>
    <span role="status">${state.said ? html` <em>${plain(state.said)}</em>` : null}</span>${state.error ? html`<${Problem} error=${state.error}/>` : null}</span>`;
}

export { Failed };
