// Soul: who it is, as texts. A draft is checked, previewed and asked before anything is written.
import { html, useEffect, useLayoutEffect, useRef, useState } from "../vendor/preact-htm.js";
import { lines, post, seg } from "../net.js";
import { Cards, count, dollars, Line, nameOf, Nothing, plain, Problem, Prose, Read, Section, shortDay, spaced, Thought, useRead, when } from "../parts.js";

const PAUSE_MS = 600, LIMIT = 900, MOST_ASKED = 24, MOST = 9e6, KEPT = "claudius.drafts";
const GROUPS = [["Who it is", /^(soul|skills|example|exchanges|aloud)\.md$/], ["Dossiers", /^dossiers/], ["Steps", /^steps/], ["Processes", /^(sub)?processes/], ["Other minds", /^(daimons|cortex|consult|triage|whisper)/], ["More", /./]];
const WHY = { process: "the last in this process", person: "the last with this person", mood: "it moved the mood" };
const called = (name) => plain(spaced(name.split("/").pop()));
const tokens = (text) => Math.ceil(text.length / 4);
const many = (n, word) => `${n} ${word}${n === 1 ? "" : "s"}`;

function grouped(names) {
  const first = (name) => (name === "soul.md" ? 0 : 1), ordered = [...names].sort((a, b) => first(a) - first(b) || a.localeCompare(b));
  const place = (name) => GROUPS.findIndex(([, fits]) => fits.test(name));
  return GROUPS.map(([title], n) => [title, ordered.filter((name) => place(name) === n)]).filter(([, found]) => found.length);
}

// The drafts of this tab, by file: {text, was}, where `was` is the hash of what was seen when it was begun.
function useDrafts() {
  const [drafts, set] = useState(() => JSON.parse(sessionStorage.getItem(KEPT) ?? "{}"));
  const change = (to) => set((was) => { const now = to(was); sessionStorage.setItem(KEPT, JSON.stringify(now)); return now; });
  const put = (file, text, was) => change((all) => ({ ...all, [file]: { text, was } }));
  const drop = (file, only) => change(({ [file]: draft, ...rest }) => (only === undefined || draft?.text === only ? rest : { ...rest, [file]: draft }));
  return [drafts, put, drop];
}

function Files({ names, own, drafts, chosen, onChoose }) {
  const groups = grouped([...new Set([...names, ...Object.keys(drafts), chosen])]);
  const mark = (name) => (drafts[name] ? "draft" : own.has(name) ? "yours" : "");
  return html`<section class="list files" aria-labelledby="files"><h2 id="files" class="sr">Texts</h2>
    ${groups.map(([title, found]) => html`<h3>${title}</h3><ul>${found.map((name) => html`<li key=${name}><button aria-current=${name === chosen ? "true" : null} onClick=${() => onChoose(name)}><span>${called(name)}</span> <em class="small">${mark(name)}</em></button></li>`)}</ul>`)}</section>
    <p class="picker"><label for="file">Text</label> <select id="file" class="field" value=${chosen} onChange=${(event) => onChoose(event.target.value)}>${groups.map(([title, found]) => html`<optgroup label=${title}>${found.map((name) => html`<option value=${name}>${called(name)}${mark(name) ? ` (${mark(name)})` : ""}</option>`)}</optgroup>`)}</select></p>`;
}

// A plain field, so that spelling, input methods, undo and screen readers work.
function Editor({ file, found, draft, onInput }) {
  const field = useRef(null), base = found?.text ?? "", text = draft?.text ?? base;
  useLayoutEffect(() => { if (field.current.value !== text) field.current.value = text; }, [file, text]); // before the next key
  return html`<textarea ref=${field} class=${`text ${file.startsWith("dossiers/") ? "private" : ""}`} aria-label=${`the text of ${file}`} spellcheck="true" disabled=${!found} onInput=${(event) => onInput(event.target.value)}></textarea>`;
}

// Return ["same" | "gone" | "add", item] of two lists in order; the longest common items stay.
function steps(a, b) {
  if (a.length * b.length > MOST) return [...a.map((one) => ["gone", one]), ...b.map((one) => ["add", one])];
  const table = Array.from({ length: a.length + 1 }, () => new Uint16Array(b.length + 1)), rows = [];
  for (let i = a.length - 1; i >= 0; i--) for (let j = b.length - 1; j >= 0; j--) table[i][j] = a[i] === b[j] ? table[i + 1][j + 1] + 1 : Math.max(table[i + 1][j], table[i][j + 1]);
  for (let i = 0, j = 0; i < a.length || j < b.length;) {
    if (a[i] === b[j]) rows.push(["same", a[i++], j++]);
    else if (j >= b.length || table[i + 1]?.[j] >= table[i][j + 1]) rows.push(["gone", a[i++]]);
    else rows.push(["add", b[j++]]);
  }
  return rows;
}

// Return [kind, line] of each line in which two texts differ, and of the lines around it.
function difference(before, after) {
  const rows = steps(...[before, after].map((text) => text.trimEnd().split("\n")));
  const near = rows.map((_, n) => [n - 1, n, n + 1].some((at) => rows[at] && rows[at][0] !== "same"));
  return rows.flatMap((row, n) => (near[n] ? [row] : near[n - 1] && near.includes(true, n) ? [["skip", "⋯"]] : []));
}

const SIGN = { add: ["+", "added: "], gone: ["−", "removed: "] };

function Difference({ before, after }) {
  const rows = difference(before, after);
  return rows.length ? html`<div class="diff private" role="region" tabindex="0" aria-label="the lines that differ">${rows.map(([kind, line]) => html`<p class=${kind}><span class="sr">${SIGN[kind]?.[1]}</span><span aria-hidden="true">${SIGN[kind]?.[0] ?? " "} </span>${plain(line)}</p>`)}</div>` : html`<${Nothing}>The two texts are the same.<//>`;
}

function Preview({ file, found, drafts, preview }) {
  const draft = drafts[file], { checked, replays, error } = preview;
  const rows = replays?.turns ?? [], rebuilt = rows.filter((row) => row.identical).length, parts = [...new Set(rows.flatMap((row) => row.changed))];
  const same = parts.length === 1 && parts[0] === "system" && rows.every((row) => row.changed.length);
  return html`<section aria-label="What it would do">${error && html`<${Problem} error=${error}/>`}
    <ul class="plainlist checks" aria-live="polite">
      ${!checked ? html`<li>Looking at the draft…</li>` : checked.ok ? html`<li class="fine"><strong>✓</strong> every text can be used (${count(tokens(found.text))} → ${count(tokens(draft.text))} tokens)</li>`
        : checked.problems.map((one) => html`<li class="wrong"><strong>✗</strong> ${plain(one.file.split("/soul/").pop())}${one.line ? `, line ${one.line}` : ""}: ${plain(one.detail)}. ${plain(one.fix)}</li>`)}
      ${(checked?.doubts ?? []).map((one) => html`<li><strong class="down">!</strong> ${plain(one.file.split("/soul/").pop())}: <${Line} text=${one.detail}/>. <${Line} text=${one.fix}/></li>`)}
      ${!replays ? null : !rows.length ? html`<li>No turn is kept yet whose prompt could be built again.</li>` : html`<li class="fine"><strong>✓</strong> ${rebuilt} of ${many(rows.length, "kept turn")} rebuild byte for byte; ${same ? "with this text their system part changes, and nothing else does" : parts.length ? `with this text ${parts.join(" and ")} change in ${rows.filter((row) => row.changed.length).length} of them` : "with this text none of their prompts changes"}</li>`}
      ${parts.includes("system") && html`<li><strong class="down">!</strong> the provider's prompt cache is written anew once: the next turn of each conversation costs its full input</li>`}
    </ul></section>
    <${Section} title="What you changed"><${Difference} before=${found.text} after=${draft.text}/><//>`;
}

const Said = ({ title, thoughts, verb, text, rung, nothing }) => html`<div class="answer"><p class="small">${title}${text ? `, ${many(text.split(/\s+/).length, "word")}` : ""}${verb && verb !== "said" ? ` · ${plain(verb)}` : ""}${rung && rung !== "complete" ? ` · ${spaced(rung)}` : ""}</p>
  ${thoughts.map((one) => html`<${Thought} verb=${one.verb} text=${one.content}/>`)}${text ? html`<div class="spoken"><${Prose} text=${text}/></div>` : html`<p class="small">${nothing}</p>`}</div>`;

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
  return html`<${Section} kind="ask" title="Ask again: what would it have said?">
    ${rows.length ? html`<p><button class="plain" disabled=${!taken.length || taken.length > MOST_ASKED || state.busy || !ready} onClick=${ask}>Ask ${many(taken.length, "turn")} · ≈ ${count(sum)} tokens · ${cost ? dollars(cost) : cost === 0 ? "free" : "price unknown"}</button>
      ${state.busy && html` <button class="plain" onClick=${() => abort.current.abort()}>Stop</button>`}</p>
      <details><summary>Which turns (${taken.length} of ${rows.length})</summary><fieldset class="turns"><legend class="sr">turns to ask again, at most ${MOST_ASKED}</legend>${rows.map((row) => html`<label key=${row.turn}><input type="checkbox" checked=${chosen.includes(row.turn)} onChange=${(event) => pick(event.target.checked ? [...chosen, row.turn] : chosen.filter((one) => one !== row.turn))}/> <span class="small">${plain(nameOf(people, row.person))}, ${shortDay(row.at)}${row.chosen.length ? ` · ${row.chosen.map((why) => WHY[why]).join(", ")}` : ""}</span> <span class="private">${plain((row.heard ?? "").slice(0, 90))}</span></label>`)}</fieldset></details>`
      : html`<${Nothing}>No turn is kept yet that could be asked again: say something first.<//>`}
    <p class="small">Asked of the model, told to nobody, kept nowhere but in the usage.</p>
    ${state.error && html`<${Problem} error=${state.error}/>`}
    <div aria-live="polite">${asked.map((row) => html`<article class="compared" key=${row.turn}><p class="small">${plain(nameOf(people, row.person))} · ${shortDay(row.at)} — <span class="private">${plain(row.heard ?? "")}</span></p>
      <div class="two"><${Said} title="said then" thoughts=${row.thought} verb=${row.verb} text=${row.said} rung=${row.rung} nothing="It said nothing."/>
      ${row.error ? html`<div class="answer"><${Problem} error=${{ message: row.error.detail, fix: row.error.fix }}/></div>` : html`<${Said} title="would say now" thoughts=${row.would_think} verb=${row.would_verb} text=${row.would_say} rung=${row.would_rung} nothing="It would say nothing."/>`}</div></article>`)}
      ${state.busy ? html`<p class="small">Asking: ${asked.length} of ${taken.length}…</p>` : state.done ? html`<p class="small">${many(asked.length, "turn")} asked: ${count(spent)} tokens.</p>` : null}</div><//>`;
}

// Somebody else saved this file since the draft was begun: both texts, and what to do.
const Conflict = ({ file, draft, now, onMine, onTheirs }) => html`<${Section} kind="conflict" title=${`${file} was changed meanwhile`}>
  <p role="alert">Nothing was saved. Removed lines are what it says now, added ones are your draft.</p><${Difference} before=${now.text} after=${draft.text}/>
  <p><button class="plain" onClick=${onTheirs}>Take what it says now</button> <button class="plain" onClick=${onMine}>Keep my draft over it</button></p><//>`;

function Earlier({ found, onPut }) {
  const kept = [...found.history.map((one) => [`the text until ${when(one.at)}`, one.text]), ...(found.shipped !== null ? [["the shipped text", found.shipped]] : [])].filter(([, text]) => text !== found.text);
  return html`<${Section} title="Put back"><${Cards} rows=${kept} none="It is the shipped text; no earlier one is kept.">${([name, text]) => html`<p><strong>${name}</strong> · ${count(tokens(text))} tokens</p>
    <details><summary>What putting it back changes</summary><${Difference} before=${found.text} after=${text}/></details>
    <p><button class="plain" onClick=${() => onPut(text)}>Put back<span class="sr"> ${name}</span> as a draft</button></p>`}<//><//>`;
}

export function Soul({ soul }) {
  const texts = useRead("soul", soul.turn), shadows = useRead("soul/check", soul.turn), people = soul.people.data;
  const [file, choose] = useState(() => sessionStorage.getItem("claudius.file") ?? "soul.md"), [drafts, put, drop] = useDrafts();
  const read = useRead(`soul/${seg(file)}`, soul.turn), [preview, setPreview] = useState({}), [state, setState] = useState({}), [again, setAgain] = useState(0);
  const found = read.data, draft = drafts[file], files = Object.fromEntries(Object.entries(drafts).map(([name, one]) => [name, one.text])), key = JSON.stringify(files);
  const own = new Set((shadows.data?.shadows ?? []).map((one) => one.file)), yours = new Set(Object.entries(texts.data ?? {}).filter(([name, one]) => own.has(one.source) || name.startsWith("dossiers/")).map(([name]) => name));
  const stale = draft && found && draft.was !== found.sha256 && draft.text !== found.text, saved = state.saved && state.saved === found?.sha256;
  useEffect(() => { if (draft && found) drop(file, found.text); }, [found?.sha256]);
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
      <p class="deeds">${draft && html`<button class="plain" onClick=${() => { drop(file); setState({}); }}>Drop the draft</button>`} <button class="deed" disabled=${!can} onClick=${save}>Save${state.busy ? " …" : ""}</button></p></header>
      ${read.error && html`<${Problem} error=${read.error}/>`}<${Editor} file=${file} found=${found} draft=${draft} onInput=${input}/></div>
    <aside class="before" aria-label="before you save"><header class="head"><h2>${draft ? "Before you save" : "This text"}</h2><p class="small">${draft ? "nothing is written yet; the soul speaks as before" : "write in it: what that would change is shown here, before anything is written"}</p></header>
      <p role="status" class="told">${saved ? "Saved: the next turn has it. The text before it stands under Put back." : ""}</p>
      ${state.error && !stale && html`<${Problem} error=${state.error}/>`}
      ${texts.error && !texts.data && html`<${Problem} error=${texts.error}/>`}
      ${stale && html`<${Conflict} file=${file} draft=${draft} now=${found} onMine=${() => { setState({}); put(file, draft.text, found.sha256); }} onTheirs=${() => { setState({}); drop(file); }}/>`}
      ${found && draft && !stale && html`<${Preview} file=${file} found=${found} drafts=${drafts} preview=${preview}/>`}
      ${preview.error && html`<p><button class="plain" onClick=${() => setAgain(again + 1)}>Look again</button></p>`}
      ${draft && preview.replays && html`<${Ask} rows=${preview.replays.turns} files=${files} people=${people} ready=${Boolean(preview.checked)}/>`}
      <${Read} of=${read}>${(one) => html`<${Earlier} found=${one} onPut=${(text) => { setState({}); put(file, text, one.sha256); }}/>`}<//></aside></div>`;
}
