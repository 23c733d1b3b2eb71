// Soul: who it is, as texts. A draft is checked, previewed and asked before anything is written.
import { html, useEffect, useRef, useState } from "../vendor/preact-htm.js";
import { difference } from "../diff.js";
import { lines, post, seg } from "../net.js";
import { Nothing, Problem, Read, Thought, useRead } from "../parts.js";
import { nameOf } from "../turn.js";
import { count, dollars, plain, Prose, shortDay, spaced, when } from "../words.js";

const PAUSE_MS = 600, LIMIT = 900, MOST_ASKED = 24, KEPT = "claudius.drafts";
const FIRST = ["soul.md", "skills.md", "example.md", "exchanges.md", "aloud.md"], MINDS = ["cortex.md", "consult.md", "triage.md", "whisper.md"];
const GROUPS = [
  ["Who it is", (name) => FIRST.includes(name)], ["Dossiers", (name) => name.startsWith("dossiers/")], ["Steps", (name) => name.startsWith("steps/")],
  ["Processes", (name) => /^(sub)?processes\//.test(name)], ["Other minds", (name) => MINDS.includes(name) || name.startsWith("daimons/")], ["More", () => true],
];
const WHY = { process: (row) => `the last in ${spaced(row.process)}`, person: (row, people) => `the last with ${plain(nameOf(people, row.person))}`, mood: () => "it moved the mood" };
const tokens = (text) => Math.ceil(text.length / 4);
const words = (text) => (text?.trim() ? text.trim().split(/\s+/).length : 0);
const many = (n, word) => `${n} ${word}${n === 1 ? "" : "s"}`;

function grouped(names) {
  const place = (name) => GROUPS.findIndex(([, fits]) => fits(name)), rank = (name) => (FIRST.includes(name) ? FIRST.indexOf(name) : FIRST.length);
  const ordered = [...names].sort((a, b) => rank(a) - rank(b) || a.localeCompare(b));
  return GROUPS.map(([title], n) => [title, ordered.filter((name) => place(name) === n)]).filter(([, found]) => found.length);
}

// The drafts of this tab, by file: {text, was}, where `was` is the hash of what was seen when it was begun.
function useDrafts() {
  const [drafts, set] = useState(() => JSON.parse(sessionStorage.getItem(KEPT) ?? "{}"));
  const change = (to) => set((was) => { const now = to(was); sessionStorage.setItem(KEPT, JSON.stringify(now)); return now; });
  const put = (file, text, was) => change((all) => ({ ...all, [file]: { text, was } }));
  const drop = (file) => change(({ [file]: _, ...rest }) => rest);
  return [drafts, put, drop];
}

function Files({ names, own, drafts, chosen, onChoose }) {
  const groups = grouped([...new Set([...names, ...Object.keys(drafts), chosen])]);
  const mark = (name) => (drafts[name] ? "draft" : own.has(name) ? "yours" : "");
  return html`<section class="list files" aria-labelledby="files"><h2 id="files" class="sr">Texts</h2>
    ${groups.map(([title, found]) => html`<h3>${title}</h3><ul>${found.map((name) => html`<li key=${name}><button aria-current=${name === chosen ? "true" : null} onClick=${() => onChoose(name)}><span>${plain(spaced(name.split("/").pop()))}</span> <em class="small">${mark(name)}</em></button></li>`)}</ul>`)}
    <${Fresh} onChoose=${onChoose}/></section>
    <p class="picker"><label for="file">Text</label> <select id="file" class="field" value=${chosen} onChange=${(event) => onChoose(event.target.value)}>${groups.map(([title, found]) => html`<optgroup label=${title}>${found.map((name) => html`<option value=${name}>${plain(spaced(name.split("/").pop()))}${mark(name) ? ` (${mark(name)})` : ""}</option>`)}</optgroup>`)}</select></p>`;
}

function Fresh({ onChoose }) {
  const [name, set] = useState(""), fits = /^[\p{L}\p{N}][\p{L}\p{N} _-]{0,60}$/u.test(name);
  return html`<form class="fresh" onSubmit=${(event) => { event.preventDefault(); if (fits) { onChoose(`dossiers/${name.trim().replace(/ /g, "_")}.md`); set(""); } }}>
    <label for="fresh" class="small">New dossier</label> <input id="fresh" class="field" value=${name} onInput=${(event) => set(event.target.value)} autocomplete="off"/> <button class="plain" disabled=${!fits}>Begin</button></form>`;
}

// The text itself: a plain field, so that spelling, input methods, undo and screen readers work.
function Editor({ file, found, draft, onInput }) {
  const field = useRef(null), base = found?.text ?? "", text = draft?.text ?? base;
  useEffect(() => { if (field.current && field.current.value !== text) field.current.value = text; }, [file, text]);
  return html`<textarea class="text" ref=${field} aria-label=${`the text of ${file}`} spellcheck="true" disabled=${!found} onInput=${(event) => onInput(event.target.value)}></textarea>`;
}

export const Difference = ({ before, after, what }) => {
  const rows = difference(before, after), sign = { add: "+", gone: "−", same: " ", skip: " " };
  return rows.length ? html`<div class="diff private" role="region" tabindex="0" aria-label=${what}>${rows.map((row) => html`<p class=${row.kind}>${row.kind === "add" || row.kind === "gone" ? html`<span class="sr">${row.kind === "add" ? "added: " : "removed: "}</span>` : null}<span aria-hidden="true">${sign[row.kind]} </span>${row.parts ? row.parts.map(([text, differs]) => (differs ? html`<strong>${plain(text)}</strong>` : plain(text))) : plain(row.text)}</p>`)}</div>` : html`<${Nothing}>The two texts are the same.<//>`;
};

// What the drafts would do: whether they can be used, and what they change in the prompts of the turns that are kept.
function Preview({ file, found, drafts, preview }) {
  const draft = drafts[file], { checked, replays, error } = preview;
  const rows = replays?.turns ?? [], rebuilt = rows.filter((row) => row.identical).length, parts = [...new Set(rows.flatMap((row) => row.changed))];
  const same = parts.length === 1 && parts[0] === "system" && rows.every((row) => row.changed.length);
  return html`<section aria-labelledby="effect"><h3 id="effect" class="sr">What it would do</h3>${error ? html`<${Problem} error=${error}/>` : null}
    <ul class="plainlist checks" aria-live="polite">
      ${!checked ? html`<li>Looking at the draft…</li>` : checked.ok ? html`<li class="fine"><strong>✓</strong> every text can be used (${count(tokens(found.text))} → ${count(tokens(draft.text))} tokens)</li>`
        : checked.problems.map((one) => html`<li class="wrong"><strong>✗</strong> ${plain(one.file.split("/soul/").pop())}${one.line ? `, line ${one.line}` : ""}: ${plain(one.detail)}. ${plain(one.fix)}</li>`)}
      ${!replays ? null : !rows.length ? html`<li>No turn is kept yet whose prompt could be built again.</li>` : html`<li class="fine"><strong>✓</strong> ${rebuilt} of ${many(rows.length, "kept turn")} rebuild byte for byte; ${same ? "with this text their system part changes, and nothing else does" : parts.length ? `with this text ${parts.join(" and ")} change in ${rows.filter((row) => row.changed.length).length} of them` : "with this text none of their prompts changes"}</li>`}
      ${parts.includes("system") ? html`<li><strong class="down">!</strong> the provider's prompt cache is written anew once: the next turn of each conversation costs its full input</li>` : null}
    </ul></section>
    <section aria-labelledby="yours"><h3 id="yours">What you changed</h3><${Difference} before=${found.text} after=${draft.text} what="the lines that you changed"/></section>`;
}

const Said = ({ title, thoughts, verb, text, rung, nothing }) => html`<div class="answer"><p class="small">${title}${text ? `, ${many(words(text), "word")}` : ""}${verb && verb !== "said" ? ` · ${plain(verb)}` : ""}${rung && rung !== "complete" ? ` · ${spaced(rung)}` : ""}</p>
  ${thoughts.map((one) => html`<${Thought} verb=${one.verb} text=${one.content}/>`)}${text ? html`<div class="spoken"><${Prose} text=${text}/></div>` : html`<p class="small">${nothing}</p>`}</div>`;

// Ask the voice again: a few turns, as many tokens as are agreed to, told to nobody.
function Ask({ rows, files, people, ready }) {
  const [picked, pick] = useState(null), [asked, set] = useState([]), [state, setState] = useState({}), abort = useRef(null);
  useEffect(() => () => abort.current?.abort(), []);
  const chosen = picked ?? rows.filter((row) => row.chosen.length).map((row) => row.turn), taken = rows.filter((row) => chosen.includes(row.turn));
  const sum = taken.reduce((all, row) => all + row.tokens, 0), cost = taken.some((row) => row.cost_usd === null) ? null : taken.reduce((all, row) => all + row.cost_usd, 0);
  const ask = async () => {
    abort.current = new AbortController();
    set([]);
    setState({ busy: true });
    try {
      for await (const row of lines("ask", { turns: taken.map((one) => one.turn), files, agreed_tokens: sum }, abort.current.signal)) set((was) => [...was, row]);
      setState({ done: true });
    } catch (error) { if (!abort.current.signal.aborted) setState({ error }); else setState({}); }
  };
  const spent = asked.reduce((all, row) => all + row.tokens, 0);
  return html`<section class="ask" aria-labelledby="ask"><h3 id="ask">Ask again: what would it have said?</h3>
    ${rows.length ? html`<p><button class="plain" disabled=${!taken.length || taken.length > MOST_ASKED || state.busy || !ready} onClick=${ask}>Ask ${many(taken.length, "turn")} · ≈ ${count(sum)} tokens · ${cost ? dollars(cost) : cost === 0 ? "free" : "price unknown"}</button>
      ${state.busy ? html` <button class="plain" onClick=${() => abort.current.abort()}>Stop</button>` : null}</p>
      <details><summary>Which turns (${taken.length} of ${rows.length})</summary><fieldset class="turns"><legend class="sr">turns to ask again, at most ${MOST_ASKED}</legend>${rows.map((row) => html`<label key=${row.turn}><input type="checkbox" checked=${chosen.includes(row.turn)} onChange=${(event) => pick(event.target.checked ? [...chosen, row.turn] : chosen.filter((one) => one !== row.turn))}/> <span class="small">${row.person ? plain(nameOf(people, row.person)) : "on its own"}, ${shortDay(row.at)}${row.chosen.length ? ` · ${row.chosen.map((why) => WHY[why](row, people)).join(", ")}` : ""}</span> <span class="private">${plain((row.heard ?? "").slice(0, 90))}</span></label>`)}</fieldset></details>`
      : html`<${Nothing}>No turn is kept yet that could be asked again: say something first.<//>`}
    <p class="small">Asked of the model, told to nobody, kept nowhere but in the usage.</p>
    ${state.error ? html`<${Problem} error=${state.error}/>` : null}
    <div aria-live="polite">${asked.map((row) => html`<article class="compared" key=${row.turn}><p class="small">${row.person ? plain(nameOf(people, row.person)) : "On its own"} · ${shortDay(row.at)} — <span class="private">${plain(row.heard ?? "")}</span></p>
      <div class="two"><${Said} title="said then" thoughts=${row.thought} verb=${row.verb} text=${row.said} rung=${row.rung} nothing="It said nothing."/>
      ${row.error ? html`<div class="answer"><${Problem} error=${{ message: row.error.detail, fix: row.error.fix }}/></div>` : html`<${Said} title="would say now" thoughts=${row.would_think} verb=${row.would_verb} text=${row.would_say} rung=${row.would_rung} nothing="It would say nothing."/>`}</div></article>`)}
      ${state.busy ? html`<p class="small">Asking: ${asked.length} of ${taken.length}…</p>` : state.done ? html`<p class="small">${many(asked.length, "turn")} asked: ${count(spent)} tokens.</p>` : null}</div></section>`;
}

// Somebody else saved this file since the draft was begun: both texts, and what to do.
const Conflict = ({ file, draft, now, onMine, onTheirs }) => html`<section class="conflict" aria-labelledby="conflict"><h3 id="conflict">${file} was changed meanwhile</h3>
  <p role="alert">Nothing was saved. Removed lines are what it says now, added ones are your draft.</p><${Difference} before=${now.text} after=${draft.text} what="the lines that differ"/>
  <p><button class="plain" onClick=${onTheirs}>Take what it says now</button> <button class="plain" onClick=${onMine}>Keep my draft over it</button></p></section>`;

function Earlier({ found, onPut }) {
  const kept = [...found.history.map((one) => [`the text until ${when(one.at)}`, one.text]), ...(found.shipped !== null ? [["the shipped text", found.shipped]] : [])].filter(([, text]) => text !== found.text);
  return html`<section aria-labelledby="earlier"><h3 id="earlier">Put back</h3>${kept.length ? html`<ul class="cards">${kept.map(([name, text]) => html`<li><p><strong>${name}</strong> · ${count(tokens(text))} tokens</p>
    <details><summary>What putting it back changes</summary><${Difference} before=${found.text} after=${text} what=${`the lines of ${name}`}/></details>
    <p><button class="plain" onClick=${() => onPut(text)}>Put back<span class="sr"> ${name}</span> as a draft</button></p></li>`)}</ul>` : html`<${Nothing}>It is the shipped text; no earlier one is kept.<//>`}</section>`;
}

export function Soul({ soul }) {
  const texts = useRead("soul", soul.turn), shadows = useRead("soul/check", soul.turn), people = useRead("people", soul.turn);
  const [file, choose] = useState(() => sessionStorage.getItem("claudius.file") ?? "soul.md"), [drafts, put, drop] = useDrafts();
  const read = useRead(`soul/${seg(file)}`, soul.turn), [preview, setPreview] = useState({}), [state, setState] = useState({}), [again, setAgain] = useState(0);
  const found = read.data, draft = drafts[file], files = Object.fromEntries(Object.entries(drafts).map(([name, one]) => [name, one.text])), key = JSON.stringify(files);
  const own = new Set((shadows.data?.shadows ?? []).map((one) => one.file)), yours = new Set(Object.entries(texts.data ?? {}).filter(([name, one]) => own.has(one.source) || name.startsWith("dossiers/")).map(([name]) => name));
  const stale = draft && found && draft.was !== found.sha256 && draft.text !== found.text, saved = state.saved && state.saved === found?.sha256;
  useEffect(() => { if (draft && found && draft.text === found.text) drop(file); }, [found?.sha256]);
  useEffect(() => {
    if (key === "{}") { setPreview({}); return undefined; }
    const abort = new AbortController();
    setPreview((was) => ({ ...was, checked: null }));
    const look = setTimeout(async () => {
      try {
        const checked = await post("soul/check", { files }, abort.signal);
        setPreview((was) => ({ ...was, checked, error: null }));
        if (checked.ok) { const replays = await post("replay", { turns: [], files }, abort.signal); setPreview({ checked, replays }); } else setPreview({ checked });
      } catch (error) { if (!abort.signal.aborted) setPreview((was) => ({ ...was, error })); }
    }, PAUSE_MS);
    return () => { clearTimeout(look); abort.abort(); };
  }, [key, again]);
  const input = (text) => { setState({}); if (text === found.text) drop(file); else put(file, text, draft?.was ?? found.sha256); };
  const pick = (name) => { sessionStorage.setItem("claudius.file", name); setState({}); choose(name); };
  const save = async () => {
    setState({ busy: true });
    try { setState({ saved: (await post(`soul/${seg(file)}`, { text: draft.text, was_sha256: draft.was })).sha256 }); soul.again(); }
    catch (error) { setState({ error }); soul.again(); }
  };
  const can = draft && !stale && preview.checked && !preview.checked.problems.some((one) => one.file.endsWith(`/soul/${file}`)) && !state.busy && !state.saved;
  return html`<div class="soul"><${Files} names=${Object.keys(texts.data ?? {})} own=${yours} drafts=${drafts} chosen=${file} onChoose=${pick}/>
    <div class="editing"><header class="head"><h1>${plain(file)}</h1><p class="small">${draft || found ? `${count(tokens(draft?.text ?? found.text))}${file === "soul.md" ? ` of ${LIMIT}` : ""} tokens` : ""}${found && !draft ? (found.is_own ? " · yours" : found.shipped === null ? " · new" : " · as shipped") : ""}</p>
      <p class="deeds">${draft ? html`<button class="plain" onClick=${() => { drop(file); setState({}); }}>Drop the draft</button>` : null} <button class="deed" disabled=${!can} onClick=${save}>Save${state.busy ? " …" : ""}</button></p></header>
      ${read.error ? html`<${Problem} error=${read.error}/>` : null}<${Editor} file=${file} found=${found} draft=${draft} onInput=${input}/></div>
    <aside class="before" aria-label="before you save"><header class="head"><h2>${draft ? "Before you save" : "This text"}</h2><p class="small">${draft ? "nothing is written yet; the soul speaks as before" : "write in it: what that would change is shown here, before anything is written"}</p></header>
      <p role="status" class="told">${saved ? "Saved: the next turn has it. The text before it stands under Put back." : ""}</p>
      ${state.error && !stale ? html`<${Problem} error=${state.error}/>` : null}
      ${texts.error && !texts.data ? html`<${Problem} error=${texts.error}/>` : null}
      ${stale ? html`<${Conflict} file=${file} draft=${draft} now=${found} onMine=${() => { setState({}); put(file, draft.text, found.sha256); }} onTheirs=${() => { setState({}); drop(file); }}/>` : null}
      ${found && draft && !stale ? html`<${Preview} file=${file} found=${found} drafts=${drafts} preview=${preview}/>` : null}
      ${preview.error ? html`<p><button class="plain" onClick=${() => setAgain(again + 1)}>Look again</button></p>` : null}
      ${draft && preview.replays ? html`<${Ask} rows=${preview.replays.turns} files=${files} people=${people.data} ready=${Boolean(preview.checked)}/>` : null}
      <${Read} of=${read} what="its earlier texts">${(one) => html`<${Earlier} found=${one} onPut=${(text) => { setState({}); put(file, text, one.sha256); }}/>`}<//></aside></div>`;
}
