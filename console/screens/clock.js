// Clock: what is due, whispers, daimons.
import { html, useState } from "../vendor/preact-htm.js";
import { post, seg } from "../net.js";
import { Cards, Deed, placeOf, plain, Section, spaced, Table, Turn, useRead, when } from "../parts.js";

const MODES = ["whisper", "speak", "both", "off"];

// An instant as a field for a local time has it.
const local = (at) => { const then = new Date(at); return new Date(then - then.getTimezoneOffset() * 60000).toISOString().slice(0, 16); };

function Plan({ row, again }) {
  const was = local(row.due_at), [at, set] = useState(was), does = (verb, body) => () => post(`schedule/${seg(row.id)}/${verb}`, body);
  return html`<p><strong>${when(row.due_at)}</strong>${row.repeat && ` and ${plain(row.repeat)}`} · ${placeOf(row.conversation)} · ${row.plan}</p><p class="private">${plain(row.what)}</p>
    <p class="small">${row.lapsed_at ? "lapsed" : row.waits_for ? `waits for ${plain(row.waits_for)}` : "planned"}</p>
    ${!row.lapsed_at && html`<${Deed} label="Cancel" does=${does("cancel", {})} done=${() => "cancelled"} again=${again}/>
      ${!row.waits_for && html`<span class="inline"><input class="field" type="datetime-local" aria-label="another time" value=${at} onInput=${(event) => set(event.target.value)}/> <${Deed} label="Move" disabled=${!at || at === was} does=${does("move", { at: new Date(at || 0).toISOString() })} done=${() => "moved"} again=${again}/></span>`}`}`;
}

export function Clock({ soul }) {
  const plans = useRead("schedule", soul.turn), whispers = useRead("whispers", soul.turn), daimons = useRead("daimons", soul.turn);
  const felt = (turn) => () => soul.show("The turn that felt it", html`<${Turn} turn=${turn} soul=${soul}/>`);
  return html`<div class="one"><h1>Clock</h1><div class="columns">
    <${Section} title="What is due" of=${plans}>${(rows) => html`<${Cards} rows=${rows.filter((row) => row.kind !== "job")} none="Nothing is planned. Ask it to remind you.">${(row) => html`<${Plan} row=${row} again=${soul.again}/>`}<//>
      <h3>Its own jobs</h3><${Table} label="its jobs" heads=${["job", "next", "last"]} rows=${rows.filter((row) => row.kind === "job")}>${(row) => [plain(spaced(row.id)), when(row.due_at), html`${plain(row.text)}${row.failures > 0 && html` <strong class="down">${row.failures} failures</strong>`}`]}<//>`}<//>
    <div><${Section} title="Daimons" of=${daimons}>${(rows) => html`<${Cards} rows=${rows}>${(row) => html`<p><strong>${plain(row.name)}</strong> · ${row.enabled ? `on, ${row.mode}, over ${row.transport}` : "off"} · last: ${when(row.last_whisper_at)}</p>
      ${row.problem && html`<p class="small">${row.rests_until ? "rests" : "lately"}: ${plain(row.problem)}</p>`}
      ${row.enabled && html`<p><${Deed} label="Whisper now" does=${() => post(`daimons/${seg(row.name)}`, { whisper: true })} done=${(found) => (found.whisper ? "whispered: it stands below" : found.reason)} again=${soul.again}/></p><div class="choice" role="group" aria-label=${`how ${row.name} may speak`}>${MODES.map((mode) => html`<${Deed} label=${mode === row.mode ? `${mode} (now)` : mode} does=${() => post(`daimons/${seg(row.name)}`, { mode })} done=${() => `from now on: ${mode}`} again=${soul.again}/>`)}</div>`}`}<//>`}<//>
    <${Section} title="Whispers" of=${whispers}>${(rows) => html`<${Cards} rows=${rows} none="Nobody has whispered yet.">${(row) => html`<p class="private">${plain(row.text)}</p><p class="small">${plain(row.daimon)}, ${when(row.at)} · ${row.used_turn ? html`felt: <button class="link" onClick=${felt(row.used_turn)}>the turn that felt it</button>` : row.state === "active" ? `waits to be felt until ${when(row.expires_at)}` : row.state === "expired" ? "faded unfelt" : spaced(row.state)}</p>`}<//>`}<//></div></div></div>`;
}
