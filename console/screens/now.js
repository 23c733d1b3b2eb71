// Now: the conversations, the talk, and the inner life while it happens.
import { html, useEffect, useLayoutEffect, useMemo, useRef, useState } from "../vendor/preact-htm.js";
import { get, isBusy, post, seg } from "../net.js";
import { clock, day, Growing, Kept, nameOf, Nothing, OWN, placeOf, plain, Problem, Prose, Read, shortDay, spaced, Standing, Thought, Turn, useKeys, useRead } from "../parts.js";

const isOwn = (id) => id.startsWith("terminal:local:main:");
const MOST_TURNS = 500;
const EMPTY = { entries: [], before: null };

function title(row, people) {
  return row.conversation !== OWN && row.audience?.startsWith("private:") ? nameOf(people, row.audience.slice(8)) : placeOf(row.conversation);
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
      ${(one.metadata?.receipts ?? []).map((line) => html`<p class="small private">${plain(line)}</p>`)}<p class="small">${one.unsaid ? "this was never delivered · " : ""}<button class="link" onClick=${() => onWhy(one.turn)}>why<span class="sr"> it said so at ${clock(one.at)}</span></button></p></div>`;
    case "perception": case "event": return html`<p class="rang">${one.metadata.what ? "its clock rang: " : "on its own: "}<span class="private">${plain(one.metadata.what ?? one.content)}</span></p>`;
    case "erased": return html`<p class="rang">What was said here was erased.</p>`;
    case "expired": return html`<p class="rang">Of this turn only its record is kept. <button class="link" onClick=${() => onWhy(one.turn)}>why</button></p>`;
    default: return null;
  }
}

const Thoughts = ({ of }) => of.map((one) => html`<${Thought} verb=${one.verb} voided=${one.voided}><${Growing} of=${one.grown}/><//>`);

const Words = ({ of }) => html`<div class="spoken">${of.over ? html`<${Prose} text=${of.words.text}/>` : html`<${Growing} of=${of.words}/>`}</div>`;

const isOf = (row) => (one) => row.keys.includes(`terminal:${one.id}`);

// A line of this tab that the talk does not hold: on its way, or a command with its answer.
const Pending = ({ one }) => html`${one.text && html`<div class="said theirs"><p class="small">You · ${one.state}</p><p class="bubble">${plain(one.text)}</p>${one.error && html`<${Problem} error=${one.error}/>`}</div>`}
  ${one.answer && html`<div class="said ours"><div class="spoken"><${Prose} text=${one.answer}/></div></div>`}`;

// A turn under way, as it will stand: what it answers, its thought, its words.
function Going({ of, asked }) {
  return html`${asked.length ? asked.map((one) => html`<${Pending} one=${one}/>`) : of.heard.map((text) => html`<div class="said theirs"><p class="bubble">${plain(text)}</p></div>`)}
    <div class="said ours" aria-live="off"><${Thoughts} of=${of.thoughts}/>${of.words ? html`<${Words} of=${of}/>` : isBusy(of) ? html`<p class="thinking">thinking…</p>` : ""}</div>`;
}

function Talk({ page, older, onOlder, people, pending, going, looked, onWhy }) {
  const box = useRef(null), inside = useRef(null), stuck = useRef(true), height = useRef(0);
  const shown = useMemo(() => turns([...older.flatMap((one) => one.entries), ...page.entries]), [older, page]);
  const first = older[0] ?? page, answered = (turn) => pending.filter((one) => one.answer && one.after === turn).map((one) => html`<${Pending} key=${one.id} one=${one}/>`);
  useEffect(() => {
    const look = new ResizeObserver(() => {
      const node = box.current;
      if (!node) return; // the screen was left meanwhile
      if (stuck.current) node.scrollTop = node.scrollHeight;
      else if (height.current) node.scrollTop += node.scrollHeight - height.current;
      height.current = 0;
    });
    look.observe(inside.current);
    return () => look.disconnect();
  }, []);
  const more = () => { height.current = box.current.scrollHeight; stuck.current = false; onOlder(first.before); };
  const scrolled = () => {
    const node = box.current;
    if (!node) return;
    stuck.current = node.scrollHeight - node.scrollTop - node.clientHeight < 60;
    if (node.scrollTop < 80 && first.before && shown.length < MOST_TURNS) more();
  };
  let last = "";
  return html`<div class="talk" ref=${box} onScroll=${scrolled} tabindex="0" role="log" aria-live="polite" aria-relevant="additions" aria-label="the talk">
    <div ref=${inside}>
    ${first.before && html`<p class="rang">${shown.length < MOST_TURNS ? html`<button class="link" onClick=${more}>older turns</button>` : html`older: <code>claudius conversations show --before ${first.before}</code>`}</p>`}
    ${!shown.length && !pending.length && !going.length && html`<${Nothing}>Nobody has spoken here yet: say something.<//>`}
    ${answered(undefined)}
    ${shown.map((turn) => {
      const today = day(turn.at), fresh = today !== last;
      last = today;
      return html`<section class=${`exchange ${turn.turn === looked ? "looked" : ""}`} key=${turn.turn}>${fresh && html`<p class="day">${today}</p>`}${turn.entries.map((one) => html`<${Entry} one=${one} people=${people} onWhy=${onWhy}/>`)}</section>${answered(turn.turn)}`;
    })}
    ${going.map((row) => html`<${Going} key=${row.turn} of=${row} asked=${pending.filter(isOf(row))}/>`)}
    ${pending.filter((one) => !one.answer && !going.some((row) => isOf(row)(one))).map((one) => html`<${Pending} key=${one.id} one=${one}/>`)}
  </div></div>`;
}

function Compose({ conversation, busy, onSay, onStop, keys }) {
  const field = useRef(null), key = `claudius.draft.${conversation}`, own = isOwn(conversation);
  useLayoutEffect(() => {
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

const Step = ({ label, state, children }) => html`<li class=${`step ${state}`}><h3>${label}</h3>${children}</li>`;

function Inner({ now, who }) {
  const spoken = now.over && now.words, thoughts = now.thoughts; // what it changed, its record tells
  return html`<ol class="steps">
    <${Step} label="Heard" state="done">${now.heard.map((text) => html`<p>${who}: <span class="private">“${plain(text)}”</span></p>`)}<//>
    ${now.gate && html`<${Step} label="Attended" state="done"><p>${plain(now.gate)}</p><//>`}
    <${Step} label="Thinks" state=${now.words || now.over ? "done" : thoughts.length ? "doing" : ""}>${thoughts.length ? html`<${Thoughts} of=${thoughts}/>` : html`<p class="small">…</p>`}<//>
    <${Step} label="Speaks" state=${spoken ? "done" : now.words ? "doing" : ""}>${now.words ? html`<${Words} of=${now}/>` : html`<p class="small">not yet; nothing has left</p>`}<//></ol>`;
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
  const [, draw] = useState(0), [open, setOpen] = useState(false), [picked, pick] = useState("");
  const listed = rows.data ? (rows.data.some((row) => row.conversation === OWN) ? rows.data : [...rows.data, { conversation: OWN, audience: "", process: "" }]) : [];
  const id = chosen || listed[0]?.conversation || OWN;
  const begun = rows.data?.some((one) => one.conversation === id);
  const page = useRead(begun ? `conversations/${seg(id)}` : null, soul.turn);
  const data = begun ? page.data : rows.data && EMPTY;
  const row = listed.find((one) => one.conversation === id) ?? { conversation: id, audience: "" };
  const person = data && (data.entries.findLast((one) => one.person)?.person ?? (row.audience?.startsWith("private:") ? row.audience.slice(8) : ""));
  const last = useRef();
  last.current = data?.entries.at(-1)?.turn;
  useEffect(() => soul.setPlace(isOwn(id) ? id : ""), [id]);
  useEffect(() => soul.listen((one) => {
    if (one.kind === "speech") post("shown", { conversation: one.conversation, key: one.key }).catch(() => {});
    if (one.kind === "speech" && !one.turn) {
      const key = one.key.replace("terminal:", "");
      setPending((was) => [...was.filter((each) => each.id !== key), { ...(was.find((each) => each.id === key) ?? { id: key, text: "", place: one.conversation, after: last.current }), state: "heard", answer: one.body }]);
    }
    if (one.kind === "speech" || one.kind === "speak") soul.again();
    if (one.conversation) draw((n) => n + 1);
  }), []);
  useEffect(() => {
    const told = (one) => data?.entries.some((entry) => entry.entry_type === "userMessage" && entry.content.trim() === one.text.trim() && !one.before.has(entry.turn));
    setPending((was) => was.filter((one) => one.place !== id || one.error || one.answer || !told(one)));
  }, [data]);
  const go = (to) => { sessionStorage.setItem("claudius.place", to); setOlder([]); pick(""); choose(to); };
  const say = async (text) => {
    const turns = new Set(data?.entries.map((entry) => entry.turn)), one = { id: crypto.randomUUID(), text, place: id, before: turns, after: last.current, state: "on its way" };
    const mark = (change) => setPending((was) => was.map((each) => (each.id === one.id ? { ...each, ...change } : each)));
    setPending((was) => [...was, one]);
    pick("");
    try { await post("say", { id: one.id, conversation: id, text }); mark({ state: "heard" }); }
    catch (error) { mark({ state: "not heard", error }); }
  };
  const kept = new Set(data?.entries.map((one) => one.turn)), going = (soul.lives.get(id) ?? []).filter((one) => !kept.has(one.turn)), now = going.at(-1);
  const thinking = new Set([...soul.lives].filter(([place, all]) => isBusy(all.at(-1)) && !(place === id && !now)).map(([place]) => place));
  const looked = picked || data?.entries.findLast((one) => one.entry_type === "externalDialog")?.turn;
  if (rows.error && !rows.data) return html`<div class="one"><h1>Now</h1><${Problem} error=${rows.error}/></div>`;
  return html`<div class=${`now ${open ? "opened" : ""}`}><h1 class="sr">Now</h1>
    <${Conversations} rows=${listed} people=${people} chosen=${id} thinking=${thinking} onChoose=${go}/>
    <div class="middle">${data ? html`<${Talk} key=${id} page=${data} older=${older} people=${people} pending=${pending.filter((one) => one.place === id)} going=${going} looked=${picked}
        onWhy=${(turn) => { pick(turn); setOpen(true); }} onOlder=${async (before) => { const found = await get(`conversations/${seg(id)}?before=${seg(before)}`); setOlder((was) => (was[0]?.before === found.before ? was : [found, ...was])); }}/>`
      : html`<div class="talk"><${Read} of=${page}/></div>`}
      <${Compose} conversation=${id} busy=${thinking.has(id)} keys=${soul.keys} onSay=${say} onStop=${() => post("stop", { id: crypto.randomUUID(), conversation: id }).catch(() => {})}/></div>
    <aside class="inner" aria-label="inner life"><div class="live"><h2><button class="fold" aria-expanded=${open} onClick=${() => setOpen(!open)}>Inner life, live</button></h2>
      <p class="note">Private: only you, on this machine, see this.</p>
      ${now && !picked ? html`<${Inner} now=${now} who=${plain(title(row, people))}/>`
        : looked ? html`<p class="small">${picked ? html`The turn that you look at. <button class="link" onClick=${() => pick("")}>Back to what happens</button>` : "Nothing moves just now. Behind its last words here:"}</p><${Turn} turn=${looked} soul=${soul}/>`
        : html`<${Nothing}>It has said nothing here yet.<//>`}</div>
      ${person && html`<${Known} person=${person} soul=${soul}/>`}</aside></div>`;
}
