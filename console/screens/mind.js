// Mind: who thinks, with which model, key and budget; and models to have at home.
import { html, useLayoutEffect, useState } from "../vendor/preact-htm.js";
import { lines, post, seg } from "../net.js";
import { Cards, Deed, Line, plain, Problem, Read, Section, useRead } from "../parts.js";

const WHO = [["auto", "whichever is there"], ["home", "a model at home"], ["anthropic_api", "Anthropic, with a key"], ["agent_sdk", "Claude, with your login (Agent SDK)"], ["claude_cli", "Claude, with your login (claude)"], ["openai_compat", "a chat-completions server"], ["rehearsal", "nobody: the rehearsal voice"]];
const NAMES = [["anthropic.model", "Anthropic's model"], ["claude.model", "Model of your login"], ["openai.base_url", "Chat-completions server"], ["openai.model", "Its model"]];
const BUDGET = [["budget.daily_usd", "Dollars a day, 0 = no cap"], ["budget.monthly_usd", "Dollars a month, 0 = no cap"]];
const KEYS = [["ANTHROPIC_API_KEY", "Anthropic"], ["CLAUDE_CODE_OAUTH_TOKEN", "Claude login"], ["CLAUDIUS_OPENAI_API_KEY", "Chat-completions server"]];
const size = (bytes) => `${(bytes / 1e9).toFixed(1)} GB`;

// One setting: its field, and a button once it differs. What is set elsewhere says so.
function Field({ name, label, row, of, again }) {
  const was = [row.value].flat().join(","), [now, set] = useState(was);
  useLayoutEffect(() => set(was), [was]); // before anybody can choose
  const input = (event) => set(event.target.value);
  return html`<div class="setting"><label for=${name}>${label}</label> <span>${of ? html`<select id=${name} class="field" value=${now} onChange=${input}>${(of.some(([value]) => value === was) ? of : [[was, was], ...of]).map(([value, word]) => html`<option value=${value}>${word}</option>`)}</select>`
    : html`<input id=${name} class="field" value=${now} onInput=${input} autocomplete="off" spellcheck="false"/>`}
    <${Deed} label=${html`Set<span class="sr"> ${label}</span>`} disabled=${now === was} does=${() => post(`settings/${seg(name)}`, { value: now })} done=${(found) => found.but || "set: it counts from the next message on"} again=${again}/>
    ${["environment", ".env"].includes(row.source) && html`<span class="small">set in ${row.source === ".env" ? ".env" : "the environment"}, which wins</span>`}</span></div>`;
}

// A key goes in and never comes back.
function Key({ name, label, row, again }) {
  const [value, set] = useState(""), keep = (text) => async () => { await post(`keys/${name}`, { value: text }); set(""); };
  return html`<div class="setting"><label for=${name}>${label} <span class="small">${row.value === "set" ? "there is one" : "none"}</span></label> <span><input id=${name} class="field" type="password" value=${value} onInput=${(event) => set(event.target.value)} autocomplete="new-password" placeholder=${row.value === "set" ? "another one" : ""}/>
    <${Deed} label=${html`Keep<span class="sr"> the key for ${label}</span>`} disabled=${!value.trim()} does=${keep(value)} done=${() => "kept in .env"} again=${again}/>
    ${row.value === "set" && html`<${Deed} label=${html`Remove<span class="sr"> the key for ${label}</span>`} does=${keep("")} done=${() => "removed from .env"} again=${again}/>`}</span></div>`;
}

function Model({ row, again }) {
  const [state, set] = useState({});
  const get = async () => {
    try { for await (const one of lines(`models/${seg(row.name)}`, { verb: "get" })) set({ ...one, busy: !one.said }); } catch (error) { set({ error }); }
    again();
  };
  return html`<p><strong>${plain(row.name)}</strong> · ${size(row.bytes)}${row.here ? "" : ` to download · needs ${size(row.memory)} of memory · languages: ${plain(row.languages)} · ${plain(row.licence)}`}${row.used ? " · the one at home" : ""}</p>
    ${!row.tried && html`<p class="small">Not tried by us.</p>`}
    ${row.here ? html`<p><${Deed} label=${html`Have it think<span class="sr">: ${plain(row.name)}</span>`} does=${() => post(`models/${seg(row.name)}`, { verb: "use" })} done=${() => "it speaks from the next message on"} again=${again}/></p>`
      : html`<p><button class="plain" disabled=${state.busy} onClick=${get}>Download<span class="sr"> ${plain(row.name)}</span></button> ${state.busy && html`<progress max=${state.of} value=${state.bytes} aria-label="downloaded"></progress> ${size(state.bytes)}`}</p>`}
    <p role="status" class="told">${state.said && html`<${Line} text=${state.said}/>`}</p>${state.error && html`<${Problem} error=${state.error}/>`}`;
}

export function Mind({ soul }) {
  const [turn, setTurn] = useState(0), status = useRead("status", soul.turn + turn), found = useRead("settings", soul.turn + turn), models = useRead("models", soul.turn + turn);
  const again = () => { setTurn((n) => n + 1); soul.again(); };
  const fields = (names, rows) => names.map(([name, label]) => html`<${Field} key=${name} name=${name} label=${label} row=${rows[name]} again=${again}/>`);
  return html`<div class="one"><h1>Mind</h1><div class="columns">
    <div><${Section} title="Who thinks" of=${found}>${(rows) => html`<${Read} of=${status}>${({ provider }) => html`<p>Now: <strong>${plain(provider?.name ?? "nobody")}</strong> ${provider?.model !== provider?.name && plain(provider?.model)}</p>${provider?.last_error && html`<p class="small"><${Line} text=${provider.last_error.detail ?? ""}/> <${Line} text=${provider.last_error.fix ?? ""}/></p>`}`}<//>
      <${Field} name="providers" label="Who speaks" row=${rows.providers} of=${WHO} again=${again}/>${fields(NAMES, rows)}`}<//>
    <${Section} title="Keys" of=${found}>${(rows) => html`<p class="small">A key is written to <code>.env</code> and never shown again. Another server's address takes the old server's key away.</p>${KEYS.map(([name, label]) => html`<${Key} key=${name} name=${name} label=${label} row=${rows[name]} again=${again}/>`)}`}<//>
    <${Section} title="Budget" of=${found}>${(rows) => fields(BUDGET, rows)}<//></div>
    <${Section} title="Models at home" of=${models}>${(rows) => html`<p class="small">They think on this machine, without a key.</p><${Cards} rows=${rows} none="None is known.">${(row) => html`<${Model} row=${row} again=${again}/>`}<//>`}<//></div></div>`;
}
