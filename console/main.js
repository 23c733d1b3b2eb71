// The frame of the page: the strip on top, the rail, the keys, and what is open.
import { html, render, useCallback, useEffect, useLayoutEffect, useRef, useState } from "./vendor/preact-htm.js";
import { heed } from "./live.js";
import { close, enter, follow, hasToken, post } from "./net.js";
import { count, dollars, Layer, Nothing, plain, Problem, tokensIn, useKeys, useRead, when } from "./parts.js";

const SCREENS = ["Now", "Life", "People", "Beliefs", "Soul", "Clock", "Hands", "Mind", "Health"].map((title) => [title.toLowerCase(), title]);
const KEYS = [["1 to 9", "a screen"], ["/", "what you say"], ["j, k", "the next and the last turn"], ["← →", "along time"], ["v", "veil private text"], ["?", "this help"]];
const WORDS = [
  ["trust", "how far it relies on somebody: the curve, −1 to 1, is what it feels; the figures, −10 to 10, are what its second mind judged from the record"],
  ["arousal", "how stirred it is, from drowsy at 0 to agitated at 1; valence is how pleasant that is, and energy its strength for the day"],
  ["veil", "blurs all that was said, thought or learned, in this tab alone, until you press it again"],
];

const here = () => SCREENS.find(([name]) => `#${name}` === location.hash.split("/")[0]) ?? SCREENS[0];

function useStored(key, initial) {
  const [value, set] = useState(() => sessionStorage.getItem(key) ?? initial);
  return [value, (to) => { sessionStorage.setItem(key, to); set(to); }];
}

// A screen's file is fetched when it is first opened, and again where that failed.
function useScreen(name, title) {
  const [found, set] = useState({});
  useLayoutEffect(() => {
    let wanted = true;
    const tell = (what) => wanted && set({ name, ...what });
    import(`./screens/${name}.js`).then((file) => tell({ Screen: file[title] }), () => tell({ error: { message: `${title} could not be fetched.`, fix: "Is the console's process still there? `claudius console` starts it." } }));
    return () => { wanted = false; };
  }, [name]);
  return found.name === name ? found : {};
}

function Strip({ status, psyche, usage, veiled, onVeil, onHelp, lost }) {
  const needs = Object.values(psyche?.drives ?? {}).sort((a, b) => b.level - a.level);
  const need = needs.length && needs[0].level > 0.5 ? needs[0].words : "no need presses";
  const today = usage?.rows?.find((row) => row.day === new Date().toISOString().slice(0, 10));
  const waits = (status?.inbox?.pending ?? 0) + (status?.outbox?.pending ?? 0);
  const life = lost ? "lost: this is the last picture" : !status ? "…" : status.brake ? status.brake.message : status.running ? "awake" : "asleep: claudius daemon start";
  return html`<header class="strip">
    <p class="name">Claudius</p>
    ${psyche && html`<p class="mood">${plain(psyche.mood.words)}</p>
    <p class="energy wide">energy <meter min="0" max="1" value=${psyche.energy} aria-label="energy">${psyche.energy.toFixed(2)}</meter></p>
    <p class="wide">${plain(need)}</p>`}
    <p class="right"><span class=${`dot ${status?.running && !lost ? "on" : "off"}`} aria-hidden="true"></span> ${plain(life)}${status?.provider?.name ? ` · voice: ${status.provider.name}` : ""}${status?.bridge ? ` · ${plain(status.bridge.name)} is at the bench` : ""}${waits ? ` · ${waits} waiting` : ""}</p>
    <p class="wide">today ${today ? `${today.calls} call${today.calls === 1 ? "" : "s"} · ${count(tokensIn(today) + today.output_tokens)} tokens · ${dollars(today.cost_usd)}` : "no calls yet"}</p>
    <button class="plain" aria-pressed=${veiled} onClick=${onVeil}>${veiled ? "Unveil" : "Veil"} <kbd>v</kbd></button><button class="plain" aria-label="help" onClick=${onHelp}>?</button>
  </header>`;
}

function App() {
  const [screen, setScreen] = useState(here());
  const [veil, setVeil] = useStored("claudius.veil", "");
  const [keys, setKeys] = useStored("claudius.keys", "on");
  const [help, setHelp] = useState(false);
  const [turn, setTurn] = useState(0);
  const [state, setState] = useState(""); // what was read before it was live is read again
  const [last, setLast] = useState(Date.now());
  const [place, setPlace] = useState("");
  const [layers, setLayers] = useState([]);
  const listeners = useRef(new Set()), lives = useRef(new Map());
  const changed = useRef(0);
  const again = useCallback(() => {
    clearTimeout(changed.current);
    changed.current = setTimeout(() => setTurn((n) => n + 1), 200);
  }, []);
  useLayoutEffect(() => {
    const move = () => setScreen(here());
    addEventListener("hashchange", move);
    return () => removeEventListener("hashchange", move);
  }, []);
  useEffect(() => follow({
    conversation: place,
    event: (one) => {
      setLast(Date.now());
      heed(lives.current, one);
      if (one.kind === "changed" || one.kind === "soul") again();
      for (const listen of listeners.current) listen(one);
    },
    gone: again,
    state: (now) => {
      setState((was) => { if (was !== "live" && now === "live") again(); return now; });
      if (now === "live") setLast(Date.now());
    },
  }), [place]);
  const on = keys === "on", toVeil = () => setVeil(veil ? "" : "on");
  useKeys((key) => {
    const found = SCREENS[key - 1];
    if (!on) return false;
    if (found) location.hash = found[0];
    else if (key === "v") toVeil();
    else if (key === "?") setHelp(true);
    else return false;
    return true;
  });
  const status = useRead("status", turn), psyche = useRead("psyche", turn), usage = useRead("usage?by=day", turn), people = useRead("people", turn);
  const listen = useCallback((one) => { listeners.current.add(one); return () => listeners.current.delete(one); }, []);
  const show = useCallback((title, body) => setLayers((was) => [...was, [title, body]]), []);
  const soul = { turn, again, listen, lives: lives.current, keys: on, setPlace, people, psyche, show, veiled: Boolean(veil), help: () => setHelp(true) };
  const [name, title] = screen, { Screen, error } = useScreen(name, title);
  const refused = state.status === 401 || !hasToken(), lost = state && state !== "live" && !refused;
  useEffect(() => { document.title = `${title} · Claudius`; }, [title]);
  if (refused) return html`<${Door}/>`;
  return html`<div class=${`frame ${veil ? "veiled" : ""} ${lost ? "lost" : ""}`}>
    <nav aria-label="skip"><a class="skip" href="#main" onClick=${(event) => { event.preventDefault(); document.querySelector("main").focus(); }}>To the screen</a></nav>
    <${Strip} status=${status.data} psyche=${psyche.data} usage=${usage.data} veiled=${Boolean(veil)} onVeil=${toVeil} onHelp=${soul.help} lost=${lost}/>
    <nav class="rail" aria-label="screens"><ul>${SCREENS.map(([id, label], n) => html`<li key=${id}><a href=${`#${id}`} aria-current=${id === name ? "page" : null}>${label} <kbd>${n + 1}</kbd></a></li>`)}</ul></nav>
    ${lost && html`<section class="banner" aria-label="what is lost" ><strong role="alert">${state.message}</strong> ${state.fix} You see the last picture, of ${when(last / 1000)}.</section>`}
    ${!lost && status.data && !status.data.running && html`<section class="banner" aria-label="asleep">It is asleep: <code>claudius daemon start</code> wakes it. Everything can be read; what you say wakes it, too, for as long as this console runs.</section>`}
    <main id="main" tabindex="-1">${Screen ? html`<${Screen} soul=${soul}/>` : html`<div class="one"><h1>${title}</h1>${error ? html`<${Problem} error=${error}/>` : html`<${Nothing}>Opening…<//>`}</div>`}</main>
    ${help && html`<${Layer} title="Help" onClose=${() => setHelp(false)}><dl class="facts">${WORDS.map(([word, what]) => html`<dt>${word}</dt><dd>${what}.</dd>`)}</dl>
      <dl class="facts">${KEYS.map(([key, what]) => html`<dt><kbd>${key}</kbd></dt><dd>${what}</dd>`)}</dl>
      <p>Keys do nothing inside a field. <button class="plain" onClick=${() => setKeys(on ? "off" : "on")}>Switch the keys ${on ? "off" : "on"}</button></p>
      <p><button class="plain" onClick=${async () => open(`/#${(await post("link", {})).ticket}`, "_blank", "noopener")}>Open another tab</button><button class="plain" onClick=${async () => { await close(); location.reload(); }}>Close the door in every tab</button></p><//>`}
    ${layers.map(([title, body]) => html`<${Layer} title=${title} onClose=${() => setLayers((was) => was.slice(0, -1))}>${body}<//>`)}
  </div>`;
}

const Door = ({ error }) => html`<main class="door"><h1>Claudius</h1><p>${error && error.status !== 401 ? plain(error.message) : "This door is closed."}</p>
  <p><code>claudius console --link</code> gives a link that works once, for a minute.</p></main>`;

async function begin() {
  let error = null;
  try { await enter(); } catch (refusal) { error = refusal; }
  const root = document.getElementById("app");
  root.replaceChildren();
  if (error || !hasToken()) return render(html`<${Door} error=${error}/>`, root);
  render(html`<${App}/>`, root);
}

begin();
