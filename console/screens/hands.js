// Hands: what waits for a word, what may be done unasked, the last calls, the tools.
import { html } from "../vendor/preact-htm.js";
import { post, seg } from "../net.js";
import { Cards, Deed, plain, Section, Table, useRead, when } from "../parts.js";

const VERBS = [["allow", "Allow"], ["talk", "Allow for this talk"], ["deny", "No"]];

export function Hands({ soul }) {
  const waiting = useRead("tools/pending", soul.turn), calls = useRead("tools/calls", soul.turn), grants = useRead("tools/grants", soul.turn), tools = useRead("tools", soul.turn);
  const does = (id, verb) => () => post(`tools/${seg(id)}`, { verb });
  return html`<div class="one"><h1>Hands</h1><div class="columns">
    <${Section} title="Waits for a word" of=${waiting}>${(rows) => html`<${Cards} rows=${rows} none="It asks for nothing.">${(row) => html`<p><strong>${plain(row.tool)}</strong> (${row.class}) · ${plain(row.person)} · until ${when(row.until)}</p><dl class="facts private">${Object.entries(row.args).map(([name, value]) => html`<dt>${plain(name)}</dt><dd>${plain(typeof value === "string" ? value : JSON.stringify(value))}</dd>`)}</dl><p class="small private">${plain(row.reason)}</p>
      ${VERBS.map(([verb, label]) => (verb !== "talk" || row.for_talk) && html`<${Deed} label=${label} does=${does(row.id, verb)} done=${(found) => found.said} again=${soul.again}/>`)}`}<//>`}<//>
    <${Section} title="Allowed until" of=${grants}>${(rows) => html`<${Table} label="consents" none="Nothing: it asks each time." heads=${["tool", "for", "by", "until"]} rows=${rows}>${(row) => [plain(row.tool), row.scope, plain(row.granted_by), when(row.expires_at)]}<//>`}<//>
    <${Section} title="Last calls" of=${calls}>${(rows) => html`<${Table} label="calls" none="It has used no tool yet." heads=${["tool", "state", "when", "by"]} rows=${rows}>${(row) => [plain(row.tool), row.state, when(row.asked_at), plain(row.allowed_by)]}<//>`}<//>
    <${Section} title="Tools" of=${tools}>${(rows) => html`<${Table} label="all" heads=${["tool", "may", "does"]} rows=${rows}>${(row) => [plain(row.tool), row.class, plain(row.off || row.purpose)]}<//>`}<//></div></div>`;
}
