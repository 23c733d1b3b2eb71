// Clock: what is due, whispers, daimons.
import { html } from "../vendor/preact-htm.js";
import { post, seg } from "../net.js";
import { Cards, Deed, plain, Section, spaced, Table, Turn, useRead, when } from "../parts.js";

const MODES = ["whisper", "speak", "both", "off"];

export function Clock({ soul }) {
  const plans = useRead("schedule", soul.turn), whispers = useRead("whispers", soul.turn), daimons = useRead("daimons", soul.turn);
  const felt = (turn) => () => soul.show("The turn that felt it", html`<${Turn} turn=${turn} soul=${soul}/>`);
  return html`<div class="one"><h1>Clock</h1>
    <${Section} title="What is due" of=${plans}>${(rows) => html`<${Cards} rows=${rows.filter((row) => row.kind !== "job")} none="Nothing is planned. Ask it to remind you.">${(row) => html`<p><strong>${when(row.due_at)}</strong> ${row.repeat} · ${row.plan} ${plain(row.conversation)}</p><p class="private">${plain(row.what)}</p>
        <p class="small">${row.lapsed_at ? "lapsed" : row.waits_for ? `waits for ${plain(row.waits_for)}` : "planned"}</p>
        ${!row.lapsed_at && html`<${Deed} label="Cancel" does=${() => post(`schedule/${seg(row.id)}/cancel`, {})} done=${() => "cancelled"} again=${soul.again}/>${!row.waits_for && html`<${Deed} label="Move" does=${() => post(`schedule/${seg(row.id)}/move`, { at: prompt("When?", row.due_local) ?? row.due_local })} again=${soul.again}/>`}`}`}<//>
      <h3>Its own jobs</h3><${Table} label="its jobs" heads=${["job", "next", "last"]} rows=${rows.filter((row) => row.kind === "job")}>${(row) => [plain(row.id), when(row.due_at), html`${plain(row.text)}${row.failures > 0 && html` <strong class="down">${row.failures} failures</strong>`}`]}<//>`}<//>
    <${Section} title="Daimons" of=${daimons}>${(rows) => html`<${Cards} rows=${rows}>${(row) => html`<p><strong>${plain(row.name)}</strong> · ${row.enabled ? `on, ${row.mode}, over ${row.transport}` : "off"} · last: ${when(row.last_whisper_at)}</p>
      ${row.problem && html`<p class="small">${row.rests_until ? "rests" : "lately"}: ${plain(row.problem)}</p>`}
      ${row.enabled && html`<p><${Deed} label="Whisper now" does=${() => post(`daimons/${seg(row.name)}`, { whisper: true })} done=${(found) => found.whisper || found.reason} again=${soul.again}/></p><div class="choice" role="group" aria-label=${`how ${row.name} may speak`}>${MODES.map((mode) => html`<${Deed} label=${mode === row.mode ? `${mode} (now)` : mode} does=${() => post(`daimons/${seg(row.name)}`, { mode })} done=${() => `from now on: ${mode}`} again=${soul.again}/>`)}</div>`}`}<//>`}<//>
    <${Section} title="Whispers" of=${whispers}>${(rows) => html`<${Cards} rows=${rows} none="Nobody has whispered yet.">${(row) => html`<p class="private">${plain(row.text)}</p><p class="small">${plain(row.daimon)}, ${when(row.at)} · ${row.used_turn ? html`felt: <button class="link" onClick=${felt(row.used_turn)}>the turn that felt it</button>` : row.state === "active" ? `waits to be felt until ${when(row.expires_at)}` : row.state === "expired" ? "faded unfelt" : spaced(row.state)}</p>`}<//>`}<//></div>`;
}
