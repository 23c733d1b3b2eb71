// Life: how it felt over time, and the turns that moved it.
import { html, useEffect, useLayoutEffect, useRef, useState } from "../vendor/preact-htm.js";
import { Nothing, Problem, Section, Table, useRead } from "../parts.js";
import { nameIn, Picture } from "../picture.js";
import { Turn } from "../turn.js";
import { brief, clock, plain, shortDay, signed } from "../words.js";

const SPANS = [["day", 1], ["3 days", 3], ["week", 7], ["month", 30], ["year", 365], ["all", 3660]];
const FEWEST = 620;
const NEEDS = ["Needs", "On its mind"];
const LEGEND = [["warmth", "c2"], ["trust", "c1"], ["tension", "c4 dashed"]];

function useWidth() {
  const box = useRef(null), [width, set] = useState(900);
  useLayoutEffect(() => {
    if (!box.current) return undefined;
    const look = new ResizeObserver(([entry]) => set(Math.max(FEWEST, Math.floor(entry.contentRect.width))));
    look.observe(box.current);
    return () => look.disconnect();
  }, []);
  return [box, width];
}

const delta = (one) => html`<td class=${one.delta < 0 ? "down" : "up"}>${signed(one.delta)}</td>`;

export function Life({ soul }) {
  const [days, setDays] = useState(7), [kind, setKind] = useState("people"), [chosen, choose] = useState(null);
  const [box, width] = useWidth(), people = useRead("people", soul.turn);
  const read = useRead(`life?days=${days}&px=${Math.min(2000, Math.max(200, width - 210))}`, soul.turn);
  const kept = useRef(null);
  if (read.data) kept.current = read.data;
  const life = kept.current, state = useRef({});
  state.current = { life, chosen };
  useEffect(() => {
    const press = (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || !soul.keys || document.querySelector("dialog[open]") || event.target.closest?.("input, textarea, select")) return;
      const step = { ArrowLeft: -1, k: -1, ArrowRight: 1, j: 1 }[event.key], { life: now, chosen: was } = state.current;
      if (!step || !now?.turns.length) return;
      const at = now.turns.findIndex((one) => one.turn === was);
      const next = at < 0 ? (step < 0 ? now.turns.length - 1 : 0) : Math.min(now.turns.length - 1, Math.max(0, at + step));
      choose(now.turns[next].turn);
      event.preventDefault();
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, [soul.keys]);
  const lanes = life?.lanes.filter((lane, n) => n < 2 || (kind === "people" ? !NEEDS.includes(lane.title) : NEEDS.includes(lane.title))) ?? [];
  const most = life ? life.most.map((turn) => life.turns.find((one) => one.turn === turn)).filter((one) => one && Math.abs(one.delta) >= 0.005) : [];
  const moved = life?.turns.find((one) => one.turn === chosen);
  return html`<div class="life"><div class="strips"><header class="head"><h1>How it felt</h1>
      <div class="choice" role="group" aria-label="how far back">${SPANS.map(([word, many]) => html`<button aria-pressed=${days === many} onClick=${() => setDays(many)}>${word}</button>`)}</div>
      <div class="choice" role="group" aria-label="what to show">${["people", "needs"].map((word) => html`<button aria-pressed=${kind === word} onClick=${() => setKind(word)}>${word}</button>`)}</div></header>
    ${read.error ? html`<${Problem} error=${read.error}/>` : null}
    <div class="scroll" ref=${box} tabindex="0" role="region" aria-label="the picture">${life?.turns.length ? html`<${Picture} life=${life} lanes=${lanes} width=${width} chosen=${chosen} onChoose=${choose}/>`
      : life ? html`<${Nothing}>Nothing moved it in this time. ${days < 30 ? "Look further back, or say something." : "Say something."}<//>` : html`<${Nothing}>Drawing…<//>`}</div>
    ${life?.turns.length ? html`<p class="legend">${kind === "people" ? LEGEND.map(([word, look]) => html`<span><svg width="26" height="8" aria-hidden="true"><path class=${`curve ${look}`} d="M1 4H25"/></svg> ${word}</span>`) : null}
      ${kind === "people" ? html`<span>+4: what the second mind judged trust to be, −10 to 10</span>` : null}<span>dotted: where it rests</span></p>
    <${Section} id="most" title="What moved it most">
      <${Table} label="the turns, in a table" heads=${["when", "who", "what was said", "mood"]}>${most.map((one) => html`<tr key=${one.turn} aria-selected=${one.turn === chosen ? "true" : null} class=${one.turn === chosen ? "chosen" : ""}><td><button class="link" onClick=${() => choose(one.turn)}>${days > 7 ? `${shortDay(one.at)}, ${clock(one.at)}` : brief(one.at)}</button></td><td>${plain(nameIn(life, one.person))}</td><td class="private">${plain(life.said[one.turn] || "it began by itself")}</td>${delta(one)}</tr>`)}<//><//>` : null}</div>
    <aside class="detail" aria-label="the turn" aria-live="polite"><${Turn} turn=${chosen} people=${people.data} moved=${moved}/></aside></div>`;
}
