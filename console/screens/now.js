// Now: the conversations, the talk, and the inner life while it happens.
import { html, useEffect, useMemo, useRef, useState } from "../vendor/preact-htm.js";
import { get, post, seg } from "../net.js";
import { clock, day, Growing, Grown, Kept, nameOf, Nothing, plain, Problem, Prose, Read, shortDay, spaced, Standing, Thought, Turn, useKeys, useRead } from "../parts.js";

const OWN = "terminal:local:main:main";
const isOwn = (id) => id.startsWith("terminal:local:main:");
const MOST_TURNS = 500;
const EMPTY = { entries: [], before: null };

function title(row, people) {
  if (row.conversation === OWN) return "You";
  if (row.audience?.startsWith("private:")) return nameOf(people, row.audience.slice(8));
  return row.conversation.split(":").slice(2).filter(Boolean).join(" ") || row.conversation;
}

function Conversations({ rows, people, chosen, thinking, onChoose }) {
  return html`<section class="list" aria-labelledby="talks"><h2 id="talks">Conversations</h2>
    <ul>${rows.map((row) => html`<li key=${row.conversation}><button aria-current=${row.conversation === chosen ? "true" : null} onClick=${() => onChoose(row.conversation)}>
      <strong>${plain(title(row, people))}</strong> ${thinking.has(row.conversation) && html`<em class="thinking">thinking</em>`}
      <span class="small">${row.conversation.split(":")[0]} · ${spaced(row.process || "main process")}</span>
      <span class="small">${row.last_at ? `${shortDay(row.last_at)}, ${clock(row.last_at)}` : "nothing said yet"}</span></button></li>`)}</ul></section>`;
}

function turns(entries) {
  const found = new Map();
  for (const one of entries) {
    if (!found.has(one.turn)) found.set(one.turn, { turn: one.turn, at: one.at, entries: [] });
    found.get(one.turn).entries.push(one);
  }
  return [...found.values()];
}

function Entry({ one, people, onWhy }) {
  switch (one.entry_type) {
    case "userMessage": return html`<div class="said theirs"><p class="small">${plain(one.name || nameOf(people, one.person))} · ${clock(one.at)}${one.expired ? " · a preview, the words have expired" : ""}</p>
      <p class="bubble">${plain(one.content)}</p></div>`;
    case "internalMonologue": return html`<${Thought} verb=${one.verb} text=${one.content}/>`;
    case "externalDialog": case "daimonSpeech": return html`<div class="said ours"><div class="spoken"><${Prose} text=${one.content}/></div>
      ${(one.metadata?.receipts ?? []).map((line) => html`<p class="small">${plain(line)}</p>`)}<p class="small">${one.unsaid ? "this was never delivered · " : ""}<button class="link" onClick=${() => onWhy(one.turn)}>why<span class="sr"> it said so at ${clock(one.at)}</span></button></p></div>`;
    case "perception": case "event": return html`<p class="rang">on its own: ${plain(one.content)}</p>`;
    case "erased": return html`<p class="rang">What was said here was erased.</p>`;
    case "expired": return html`<p class="rang">Of this turn only its record is kept. <button class="link" onClick=${() => onWhy(one.turn)}>why</button></p>`;
    default: return null;
  }
}

function Talk({ page, older, onOlder, people, pending, grown, onWhy }) {
  const box = useRef(null), stuck = useRef(true), height = useRef(0);
  const shown = useMemo(() => turns([...older.flatMap((one) => one.entries), ...page.entries]), [older, page]);
  const first = older[0] ?? page;
  useEffect(() => {
    const node = box.current;
    if (!node) return;
    if (stuck.current) node.scrollTop = node.scrollHeight;
    else if (height.current) node.scrollTop += node.scrollHeight - height.current;
    height.current = 0;
  }, [shown, pending, grown]);
  const more = () => { if (!box.current) return; height.current = box.current.scrollHeight; stuck.current = false; onOlder(first.before); };
  const scrolled = () => {
    const node = box.current;
    if (!node) return;
    stuck.current = node.scrollHeight - node.scrollTop - node.clientHeight < 60;
    if (node.scrollTop < 80 && first.before && shown.length < MOST_TURNS) more();
  };
  let last = "";
  return html`<div class="talk" ref=${box} onScroll=${scrolled} tabindex="0" role="log" aria-live="polite" aria-relevant="additions" aria-label="the talk">
    ${first.before && html`<p class="rang">${shown.length < MOST_TURNS ? html`<button class="link" onClick=${more}>older turns</button>` : html`older: <code>claudius conversations show --before ${first.before}</code>`}</p>`}
    ${!shown.length && !pending.length && html`<${Nothing}>Nobody has spoken here yet: say something.<//>`}
    ${shown.map((turn) => {
      const today = day(turn.at), fresh = today !== last;
      last = today;
      return html`<section class="exchange" key=${turn.turn}>${fresh && html`<p class="day">${today}</p>`}${turn.entries.map((one) => html`<${Entry} one=${one} people=${people} onWhy=${onWhy}/>`)}</section>`;
    })}
    ${pending.map((one) => html`<div class="said theirs" key=${one.id}><p class="small">You · ${one.state}</p><p class="bubble">${plain(one.text)}</p>${one.error && html`<${Problem} error=${one.error}/>`}</div>`)}
    ${grown && html`<div class="said ours" aria-live="off"><div class="spoken">${grown.spoken ? html`<${Prose} text=${grown.spoken}/>` : grown.words ? html`<${Growing} of=${grown.words}/>` : "…"}</div></div>`}
  </div>`;
}

function Compose({ conversation, busy, onSay, onStop, keys }) {
  const field = useRef(null), key = `claudius.draft.${conversation}`, own = isOwn(conversation);
  useEffect(() => {
    field.current.value = sessionStorage.getItem(key) ?? "";
  }, [key]);
  useKeys((key) => {
    if (key !== "/" || !keys) return false;
    field.current.focus();
    return true;
  });
  const input = () => sessionStorage.setItem(key, field.current.value);
  const say = () => {
    const text = field.current.value;
    if (!text.trim()) return;
    onSay(text);
    field.current.value = "";
    input();
  };
  const press = (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing || event.keyCode === 229) return;
    event.preventDefault();
    say();
  };
  return html`<form class="compose" onSubmit=${(event) => { event.preventDefault(); say(); }}>
    <label class="sr" for="words">What you say</label>
    <textarea id="words" ref=${field} rows="1" disabled=${!own} onInput=${input} onKeyDown=${press} placeholder=${own ? "Say something (Enter says it, Shift+Enter breaks the line)" : "You read here; write to it in your own conversation"}></textarea>
    ${busy && own && html`<button type="button" class="plain" onClick=${onStop}>Stop</button>`}
    <button class="deed" disabled=${!own}>Say</button></form>`;
}

// The live turn of each conversation, built from events; thoughts and words grow in place.
function heed(inner, one) {
  const id = one.conversation;
  const begin = () => ({ turn: one.turn, heard: "", gate: "", thoughts: [], words: null, spoken: "", changed: [], over: false });
  let now = inner.get(id);
  const other = now && one.turn && now.turn && one.turn !== now.turn;
  if (other && one.kind === "speech") return false; // of the turn before: two connections tell, in no order
  if (one.kind === "hear" || other || !now) {
    if (!["hear", "think.delta", "think", "gate", "speak.delta", "working", "speak"].includes(one.kind)) return false;
    if (!now || now.over || other || one.kind === "hear") inner.set(id, (now = begin()));
  }
  now.turn = one.turn || now.turn;
  switch (one.kind) {
    case "working": if (one.on && now.over) inner.set(id, begin()); return true;
    case "hear": now.heard = one.text.replace(/^[^ ]+: /, ""); return true;
    case "think.delta": {
      const known = now.thoughts.find((thought) => thought.step === one.step && !thought.voided && thought.grown);
      if (known) { known.grown.add(one.text); return false; }
      const grown = new Grown();
      grown.add(one.text);
      now.thoughts.push({ step: one.step, verb: one.verb ?? "", grown });
      return true;
    }
    case "think.void": for (const thought of now.thoughts) thought.voided = true; return true;
    case "think": {
      const [, step, verb, text] = /^(\S+) \(([^)]*)\): ([^]*)$/.exec(one.text) ?? [null, "", "", one.text];
      now.thoughts = now.thoughts.filter((thought) => thought.step !== step || thought.voided);
      now.thoughts.push({ step, verb, text });
      return true;
    }
    case "gate": if (/^[\w]+_check/.test(one.text)) now.changed.push(one.text); else now.gate = one.text; return true;
    case "transition": now.changed.push(`process: ${spaced(one.text)}`); return true;
    case "whisper": now.changed.push(one.text); return true;
    case "speak.delta": if (!now.words) { now.words = new Grown(); now.words.add(one.text); return true; } now.words.add(one.text); return false;
    case "speak": now.spoken = one.text; now.over = true; return true;
    case "speech": now.spoken = one.body; now.over = true; return true;
    default: return false;
  }
}

const Step = ({ label, state, children }) => html`<li class=${`step ${state}`}><h3>${label}</h3>${children}</li>`;

function Inner({ now, last, who, soul }) {
  if (now) return html`<ol class="steps">
    <${Step} label="Heard" state=${now.heard ? "done" : ""}><p>${now.heard ? `${who}: “${plain(now.heard)}”` : "…"}</p><//>
    ${now.gate && html`<${Step} label="Attended" state="done"><p>${plain(now.gate)}</p><//>`}
    <${Step} label="Thinks" state=${now.over ? "done" : now.thoughts.length ? "doing" : ""}>${now.thoughts.length ? now.thoughts.map((one) => html`<${Thought} verb=${one.verb} text=${one.text ?? ""} voided=${one.voided}>${one.grown && one.text === undefined && html`<${Growing} of=${one.grown}/>`}<//>`) : html`<p class="small">…</p>`}<//>
    <${Step} label="Speaks" state=${now.spoken ? "done" : now.words ? "doing" : ""}>${now.spoken ? html`<div class="spoken"><${Prose} text=${now.spoken}/></div>` : now.words ? html`<div class="spoken"><${Growing} of=${now.words}/></div>` : html`<p class="small">not yet; nothing has left</p>`}<//>
    ${now.over && html`<${Step} label="Changed" state="done"><p class="small">${now.changed.length ? now.changed.map(plain).join(" · ") : "nothing"}</p><//>`}</ol>`;
  return html`<p class="small">Nothing moves just now. This was the last turn here:</p><${Turn} turn=${last} soul=${soul}/>`;
}

function Known({ person, soul }) {
  const people = soul.people.data, met = people?.some((one) => one.person === person || one.linked?.includes(person)); // who is only just heard has no document yet
  const found = useRead(met ? `people/${seg(person)}` : null, soul.turn);
  return html`<section class="known" aria-labelledby="known"><h2 id="known">What it knows of ${plain(nameOf(people, person))}</h2>
    <${Standing} person=${person} soul=${soul}/>
    ${found.data?.models?.map((model) => html`<div class="portrait private"><${Prose} text=${model.markdown}/></div><p class="small">version ${model.version}${model.commit ? `, git ${model.commit.slice(0, 7)}` : ""}${model.suspect ? " · marked as suspect" : ""}</p>`)}
    ${found.data && html`<${Kept} known=${found.data}/>`}</section>`;
}

export function Now({ soul }) {
  const rows = useRead("conversations", soul.turn), people = soul.people.data;
  const [chosen, choose] = useState(() => sessionStorage.getItem("claudius.place") || "");
  const [older, setOlder] = useState([]), [pending, setPending] = useState([]);
  const [, draw] = useState(0), inner = useRef(new Map()), [open, setOpen] = useState(false);
  const listed = rows.data ? (rows.data.some((row) => row.conversation === OWN) ? rows.data : [...rows.data, { conversation: OWN, audience: "", process: "" }]) : [];
  const id = chosen || listed[0]?.conversation || OWN;
  const begun = rows.data?.some((one) => one.conversation === id);
  const page = useRead(begun ? `conversations/${seg(id)}` : null, soul.turn);
  const data = begun ? page.data : rows.data && EMPTY;
  const row = listed.find((one) => one.conversation === id) ?? { conversation: id, audience: "" };
  const person = data && (data.entries.findLast((one) => one.person)?.person ?? (row.audience?.startsWith("private:") ? row.audience.slice(8) : ""));
  useEffect(() => soul.setPlace(isOwn(id) ? id : ""), [id]);
  useEffect(() => soul.listen((one) => {
    if (one.kind === "speech") post("shown", { conversation: one.conversation, key: one.key }).catch(() => {});
    if (one.conversation && heed(inner.current, one)) draw((n) => n + 1);
    if (one.kind === "speech" || one.kind === "speak") soul.again();
  }), []);
  useEffect(() => {
    if (!data) return;
    const told = (one) => data.entries.some((entry) => entry.entry_type === "userMessage" && entry.content === one.text && !one.before.has(entry.turn));
    setPending((was) => was.filter((one) => one.place !== id || one.error || !told(one)));
    const now = inner.current.get(id);
    if (now?.over && data.entries.some((one) => one.turn === now.turn)) { now.kept = true; draw((n) => n + 1); }
  }, [data]);
  const pick = (to) => { sessionStorage.setItem("claudius.place", to); setOlder([]); choose(to); };
  const say = async (text, one = { id: crypto.randomUUID(), text, place: id, before: new Set(data?.entries.map((entry) => entry.turn)), state: "on its way" }) => {
    const mark = (change) => setPending((was) => [...was.filter((each) => each.id !== one.id), { ...one, ...change }]);
    mark({});
    try { await post("say", { id: one.id, conversation: id, text }); mark({ state: "heard" }); }
    catch (error) { mark({ state: "not heard", error }); }
  };
  const now = inner.current.get(id), thinking = new Set([...inner.current].filter(([, one]) => !one.over).map(([place]) => place));
  const lastTurn = data?.entries.at(-1)?.turn;
  if (rows.error && !rows.data) return html`<div class="one"><h1>Now</h1><${Problem} error=${rows.error}/></div>`;
  return html`<div class=${`now ${open ? "opened" : ""}`}><h1 class="sr">Now</h1>
    <${Conversations} rows=${listed} people=${people} chosen=${id} thinking=${thinking} onChoose=${pick}/>
    <div class="middle">${data ? html`<${Talk} key=${id} page=${data} older=${older} people=${people} pending=${pending.filter((one) => one.place === id)} grown=${now && !now.kept ? now : null}
        onWhy=${(turn) => soul.show("Why it said so", html`<${Turn} turn=${turn} soul=${soul}/>`)} onOlder=${async (before) => { const found = await get(`conversations/${seg(id)}?before=${seg(before)}`); setOlder((was) => (was[0]?.before === found.before ? was : [found, ...was])); }}/>`
      : html`<div class="talk"><${Read} of=${page}/></div>`}
      <${Compose} conversation=${id} busy=${thinking.has(id)} keys=${soul.keys} onSay=${say} onStop=${() => post("stop", { id: crypto.randomUUID(), conversation: id }).catch(() => {})}/></div>
    <aside class="inner" aria-label="inner life"><div class="live"><h2><button class="fold" aria-expanded=${open} onClick=${() => setOpen(!open)}>Inner life, live</button></h2>
      <p class="note">Private: only you, on this machine, see this.</p>
      <${Inner} now=${now} last=${lastTurn} who=${plain(title(row, people))} soul=${soul}/></div>
      ${person && html`<${Known} person=${person} soul=${soul}/>`}</aside></div>`;
}
