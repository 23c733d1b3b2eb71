// Life: how it felt over time, and the turns that moved it.
import { html, useLayoutEffect, useRef, useState } from "../vendor/preact-htm.js";
import { brief, Choice, clock, Nothing, plain, Problem, Section, shortDay, signed, Table, Turn, useKeys, useRead } from "../parts.js";

const SPANS = [[1, "day"], [3, "3 days"], [7, "week"], [30, "month"], [365, "year"], [3660, "all"]];
const FEWEST = 280, NARROW = 620;
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

const TOP = 48, GAP = 26, TALL = 112, LOW = 78, LABEL = 14, SWING = 0.1, NEAR = 3;
const UNIT = { Mood: "bad to good", Strength: "none to full" };
const LOOK = { valence: "c1", energy: "c3", arousal: "c2", warmth: "c2", trust: "c1", tension: "c4 dashed" };
const ORDER = ["c1", "c2", "c3", "c4 dashed", "c5 dotted"];
const DAY = 86400, STEPS = [60, 300, 900, 3600, 10800, 21600, DAY, 7 * DAY, 28 * DAY, 91 * DAY];

const short = (text, most) => { const shown = plain(text); return shown.length > most ? `${shown.slice(0, most - 1)}…` : shown; };

// The part of a lane's scale that its curves use, in tenths, with where it rests inside it.
function scale(lane) {
  const values = lane.curves.flatMap((curve) => curve.runs.flat().map(([, value]) => value));
  if (!values.length) return [lane.low, lane.high];
  const low = Math.min(...values, lane.rest ?? values[0]), high = Math.max(...values, lane.rest ?? values[0]);
  return [Math.max(lane.low, Math.floor(low * 10 - 0.5) / 10), Math.min(lane.high, Math.ceil(high * 10 + 0.5) / 10)];
}

function apart(ends, top, bottom) {
  const ordered = [...ends].sort((a, b) => a.y - b.y);
  let at = top - LABEL;
  for (const one of ordered) at = one.label = Math.max(one.y, at + LABEL);
  let under = bottom + LABEL;
  for (const one of ordered.reverse()) under = one.label = Math.min(one.label, under - LABEL);
  return ordered;
}

function grid(from, to, x) {
  const most = Math.max(2, (x(to) - x(from)) / 72), step = STEPS.find((one) => (to - from) / one <= most) ?? (to - from) / most;
  const zone = new Date(from * 1000).getTimezoneOffset() * 60, found = [];
  for (let at = Math.ceil((from - zone) / step) * step + zone; at < to; at += step) found.push({ at, x: x(at), text: step < DAY ? clock(at) : shortDay(at) });
  return found;
}

// Its title stands left of it, with its curves' ends to the right; where that is too narrow, all of them stand above.
function Lane({ lane, top, height, x, left, right, narrow, trust, label, veiled }) {
  const [low, high] = scale(lane), y = (value) => top + height - (height * (value - low)) / (high - low || 1);
  const lines = lane.curves.map((curve, n) => ({ curve, look: LOOK[curve.name] ?? ORDER[n % ORDER.length] }));
  const points = (run) => run.map(([at, value]) => `${x(at).toFixed(1)},${y(value).toFixed(1)}`).join(" ");
  const ends = lines.filter(({ curve }) => curve.runs.length).map(({ curve, look }) => { const [, value] = curve.runs.at(-1).at(-1); return { y: y(value), look, text: `${short(curve.name, 12)} ${value.toFixed(2)}` }; });
  const rest = lane.rest === null ? null : y(lane.rest), id = `clip-${label}`;
  return html`<g><rect class="ground" x=${left} y=${top} width=${right - left} height=${height} rx="4"/>
    <text class="title" x="0" y=${narrow ? top - 6 : top + 12}>${short(lane.title, 14)}${narrow && ends.map((one) => html` <tspan class=${`end ${one.look}`} dx="8">${one.text}</tspan>`)}</text>
    ${!narrow && html`<text class="small" x="0" y=${top + 28}>${UNIT[lane.title] ?? `${lane.low} to ${lane.high}`}</text>`}
    <text class="small" x=${left - 6} y=${top + 10} text-anchor="end">${high.toFixed(1)}</text><text class="small" x=${left - 6} y=${top + height} text-anchor="end">${low.toFixed(1)}</text>
    ${rest === null ? null : html`<path class="rest" d=${`M${left} ${rest}H${right}`}/>`}
    ${lines.length === 1 && rest !== null && html`<clipPath id=${`${id}-above`}><rect x=${left} y=${top} width=${right - left} height=${Math.max(0, rest - top)}/></clipPath><clipPath id=${`${id}-below`}><rect x=${left} y=${rest} width=${right - left} height=${Math.max(0, top + height - rest)}/></clipPath>
      ${lines[0].curve.runs.map((run) => ["above", "below"].map((side) => html`<polygon class=${side} clip-path=${`url(#${id}-${side})`} points=${`${x(run[0][0])},${rest} ${points(run)} ${x(run.at(-1)[0])},${rest}`}/>`))}`}
    ${lines.map(({ curve, look }) => curve.runs.map((run) => html`<polyline class=${`curve ${look}`} points=${points(run)}/>`))}
    ${!narrow && apart(ends, top + 8, top + height).map((one) => html`<text class=${`end ${one.look}`} x=${right + 6} y=${one.label + 4}>${one.text}</text>`)}
    ${(trust ?? []).map((one) => html`<g class="judged"><title>${`trust ${one.trust}${veiled ? "" : `: ${plain(one.rationale)}`}`}</title><path d=${`M${one.x} ${top + height - 8}v8`}/>${one.told && html`<text x=${one.x} y=${top + height - 10} text-anchor="middle">${one.trust > 0 ? `+${one.trust}` : String(one.trust).replace("-", "−")}</text>`}</g>`)}</g>`;
}

// Trust as it was judged, inside the span; one that repeats the last, or stands too near to it, has no number.
function judged(rows, from, to, x) {
  let last = null, edge = -100;
  return (rows ?? []).map((one) => ({ ...one, t: Date.parse(one.at) / 1000 })).filter((one) => one.t >= from && one.t <= to).map((one) => {
    const at = x(one.t), told = one.trust !== last && at - edge > 18;
    if (told) { last = one.trust; edge = at; }
    return { ...one, x: at, told };
  }).filter((one) => one.told);
}

const nameIn = (life, person) => life.names[person] || person?.split(":").pop() || "on its own";
const told = (life, one) => `${nameIn(life, one.person)}, ${shortDay(one.at)}, ${clock(one.at)}: ${one.mood}, ${signed(one.delta)}`;

function Picture({ life, lanes, width, chosen, onChoose, veiled }) {
  const narrow = width < NARROW, left = narrow ? 38 : 92, right = width - (narrow ? 6 : 118);
  const from = Date.parse(life.from) / 1000, to = Date.parse(life.to) / 1000;
  const x = (at) => left + ((right - left) * (at - from)) / Math.max(1, to - from);
  const tops = [TOP];
  for (const [n] of lanes.entries()) tops.push(tops[n] + (n ? LOW : TALL) + GAP);
  const bottom = tops.at(-1), height = bottom + 46;
  const people = Object.fromEntries(Object.keys(life.names).map((person) => [nameIn(life, person), person]));
  const mood = lanes[0]?.title === "Mood" ? lanes[0] : null, [low, high] = mood ? scale(mood) : [0, 1];
  const swings = mood ? life.turns.filter((one) => Math.abs(one.delta) >= SWING) : [];
  const ticks = [];
  for (const one of life.turns) {
    const at = x(one.at);
    if (ticks.length && at - ticks.at(-1).x < NEAR) { ticks.at(-1).count += 1; ticks.at(-1).turns.push(one); } else ticks.push({ x: at, count: 1, turns: [one] });
  }
  const at = life.turns.findIndex((one) => one.turn === chosen), now = life.turns[at];
  const pick = (event) => {
    const box = event.currentTarget.ownerSVGElement.getBoundingClientRect(), px = event.clientX - box.left;
    const near = life.turns.reduce((best, one) => (Math.abs(x(one.at) - px) < Math.abs(x(best.at) - px) ? one : best), life.turns[0]);
    if (near) onChoose(near.turn);
  };
  let edge = 0;
  return html`<svg class="picture" width=${width} height=${height} viewBox=${`0 0 ${width} ${height}`} role="group" aria-label="strips over time; the table below says the same">
    ${grid(from, to, x).map((one) => html`<path class="grid" d=${`M${one.x} ${TOP - 8}V${bottom + 8}`}/><text class="small" x=${one.x} y=${bottom + 40} text-anchor="middle">${one.text}</text>`)}
    ${lanes.map((lane, n) => html`<${Lane} lane=${lane} label=${n} top=${tops[n]} height=${n ? LOW : TALL} x=${x} left=${left} right=${right} narrow=${narrow} veiled=${veiled} trust=${people[lane.title] ? judged(life.trust[people[lane.title]], from, to, x) : null}/>`)}
    ${swings.map((one) => {
      const px = x(one.at), y = tops[0] + TALL - (TALL * (one.valence - low)) / (high - low || 1), free = px > edge;
      if (free) edge = px + 12 + nameIn(life, one.person).length * 7;
      const back = px > right - 50;
      return html`<g class=${`swing ${one.delta < 0 ? "down" : "up"}`} onClick=${() => onChoose(one.turn)}><title>${told(life, one)}</title><circle cx=${px} cy=${y} r="4"/>${free && html`<text x=${back ? px - 7 : px + 7} text-anchor=${back ? "end" : "start"} y=${Math.max(tops[0] + 10, y + (one.delta < 0 ? 8 : 3))}>${short(nameIn(life, one.person), 12)}</text>`}</g>`;
    })}
    ${now && html`<path class="cursor" d=${`M${x(now.at)} ${TOP - 22}V${bottom + 22}`}/><text class="cursorword" x=${Math.min(x(now.at) + 5, right - 90)} y=${TOP - 26}>${plain(now.mood)}</text>`}
    <text class="title" x="0" y=${bottom + 16}>Turns</text><text class="small" x="0" y=${bottom + 40}>time</text>
    <g class="ticks" role="slider" tabindex="0" aria-label="turns, picked with the arrow keys" aria-valuemin="1" aria-valuemax=${Math.max(1, life.turns.length)} aria-valuenow=${at + 1 || 1} aria-valuetext=${now ? told(life, now) : "no turn picked"} onClick=${pick}>
      <rect class="catch" x=${left} y=${bottom - 10} width=${right - left} height="44"/>
      ${ticks.map((tick) => html`<path class=${`tick ${tick.turns[0].outcome}${tick.turns.some((one) => one.turn === chosen) ? " chosen" : ""}`} d=${`M${tick.x} ${bottom + 20}v-${tick.turns[0].outcome === "think" ? 16 : 10}`}><title>${tick.count > 1 ? `${tick.count} turns: ` : ""}${told(life, tick.turns[0])}</title></path>`)}
    </g></svg>`;
}

export function Life({ soul }) {
  const [days, setDays] = useState(7), [kind, setKind] = useState("people"), [chosen, choose] = useState(null);
  const [box, width] = useWidth();
  const read = useRead(`life?days=${days}&px=${Math.min(2000, Math.max(200, width - (width < NARROW ? 44 : 210)))}`, soul.turn);
  const kept = useRef(null);
  if (read.data) kept.current = read.data;
  const life = kept.current, turns = life?.turns ?? [], at = turns.findIndex((one) => one.turn === chosen), moved = turns[at];
  useKeys((key) => {
    const step = soul.keys && { ArrowLeft: -1, k: -1, ArrowRight: 1, j: 1 }[key];
    if (!step || !turns.length) return false;
    choose(turns[at < 0 && step < 0 ? turns.length - 1 : Math.min(turns.length - 1, Math.max(0, at + step))].turn);
    return true;
  });
  const lanes = life?.lanes.filter((lane, n) => n < 2 || ((kind === "needs") === NEEDS.includes(lane.title) && lane.curves.some((curve) => curve.runs.length))) ?? [];
  const most = life ? life.most.map((turn) => turns.find((one) => one.turn === turn)).filter((one) => one && Math.abs(one.delta) >= 0.005) : [];
  return html`<div class="life"><div class="strips"><header class="head"><h1>How it felt</h1>
      <${Choice} label="how far back" of=${SPANS} now=${days} onChoose=${setDays}/><${Choice} label="what to show" of=${[["people"], ["needs"]]} now=${kind} onChoose=${setKind}/></header>
    ${read.error && html`<${Problem} error=${read.error}/>`}
    <div class="scroll" ref=${box} tabindex="0" role="region" aria-label="the picture">${turns.length ? html`<${Picture} life=${life} lanes=${lanes} width=${width} chosen=${chosen} onChoose=${choose} veiled=${soul.veiled}/>`
      : life ? html`<${Nothing}>Nothing moved it in this time. ${days < 30 ? "Look further back, or say something." : "Say something."}<//>` : html`<${Nothing}>Drawing…<//>`}</div>
    ${turns.length > 0 && html`<p class="legend">${kind === "people" && html`${LEGEND.map(([word, look]) => html`<span><svg width="26" height="8" aria-hidden="true"><path class=${`curve ${look}`} d="M1 4H25"/></svg> ${word}</span>`)}
      <span>+4: what the second mind judged trust to be, −10 to 10</span>`}<span>dotted: where it rests</span><span>up: how much, across: time</span> <button class="link" onClick=${soul.help}>what trust and arousal are</button></p>
    <${Section} title="What moved it most"><${Table} label="the turns, in a table" heads=${["when", "who", "what was said", "mood"]} rows=${most} chosen=${moved}>${(one) => [
      html`<button class="link" onClick=${() => choose(one.turn)}>${days > 7 ? `${shortDay(one.at)}, ${clock(one.at)}` : brief(one.at)}</button>`, plain(nameIn(life, one.person)),
      html`<span class="private">${plain(life.said[one.turn] || "it began by itself")}</span>`, html`<span class=${one.delta < 0 ? "down" : "up"}>${signed(one.delta)}</span>`]}<//><//>`}
    ${life?.diary?.length > 0 && html`<${Section} title="Its diary"><${Table} label="the diary" heads=${["when", "what it wrote"]} rows=${life.diary}>${(one) => [`${shortDay(one.at)}, ${clock(one.at)}`, html`<span class="private">${plain(one.diary)}</span>`]}<//><//>`}</div>
    <aside class="detail" aria-label="the turn" aria-live="polite"><${Turn} turn=${chosen} soul=${soul} moved=${moved} level="h2"/></aside></div>`;
}
