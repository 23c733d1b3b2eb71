// Clock: what is due and what it waits for, whispers and who felt them, daimons.
import { html, useState } from "../vendor/preact-htm.js";
import { post, seg } from "../net.js";
import { Deed, Layer, Nothing, Read, Section, Table, useRead } from "../parts.js";
import { Turn } from "../turn.js";
import { plain, spaced, when } from "../words.js";

const MODES = ["whisper", "speak", "both", "off"];

export function Clock({ soul }) {
  const plans = useRead("schedule", soul.turn), whispers = useRead("whispers", soul.turn), daimons = useRead("daimons", soul.turn), people = useRead("people", soul.turn), [turn, setTurn] = useState(null);
  return html`<div class="one"><h1>Clock</h1>
    <${Section} id="due" title="What is due"><${Read} of=${plans} what="the plans">${(rows) => {
      const made = rows.filter((row) => row.kind !== "job"), jobs = rows.filter((row) => row.kind === "job");
      return html`${made.length ? html`<ul class="cards">${made.map((row) => html`<li key=${row.id}><p><strong>${when(row.due_at)}</strong> · ${plain(row.conversation)}</p><p class="private">${plain(row.what)}</p>
        <p class="small">${row.lapsed_at ? "lapsed: it came too late" : row.waits_for ? `due; it waits for ${plain(row.waits_for)}` : row.process ? `then ${spaced(row.process)}` : "planned"}</p>
        ${row.lapsed_at ? null : html`<${Deed} label="Cancel" does=${() => post(`schedule/${seg(row.id)}/cancel`, {})} done=${() => "cancelled"} again=${soul.again}/>`}</li>`)}</ul>` : html`<${Nothing}>Nothing is planned. Ask it to remind you of something.<//>`}
        <h3>Its own jobs</h3><${Table} label="jobs in a table" heads=${["job", "next", "last outcome"]}>${jobs.map((row) => html`<tr><th scope="row">${plain(row.id)}</th><td>${when(row.due_at)}</td><td>${plain(row.text || "not run yet")}${row.failures ? html` <strong class="down">${row.failures} failures in a row</strong>` : null}</td></tr>`)}<//>`;
    }}<//><//>
    <${Section} id="daimons" title="Daimons"><${Read} of=${daimons} what="the daimons">${(rows) => html`<ul class="cards">${rows.map((row) => html`<li key=${row.name}><p><strong>${plain(row.name)}</strong> · ${row.enabled ? `on, ${row.mode}, over ${row.transport}` : "off in the settings"} · last whisper: ${when(row.last_whisper_at)}</p>
      ${row.problem ? html`<p class="small">${row.rests_until ? "rests" : "lately"}: ${plain(row.problem)}</p>` : null}
      ${row.enabled ? html`<p><${Deed} label="Whisper now" does=${() => post(`daimons/${seg(row.name)}`, { whisper: true })} done=${(found) => found.whisper || found.reason} again=${soul.again}/></p><div class="choice" role="group" aria-label=${`how ${row.name} may speak`}>${MODES.map((mode) => html`<${Deed} label=${mode === row.mode ? `${mode} (now)` : mode} does=${() => post(`daimons/${seg(row.name)}`, { mode })} done=${() => `from now on: ${mode}`} again=${soul.again}/>`)}</div>` : null}</li>`)}</ul>`}<//><//>
    <${Section} id="whispers" title="Whispers"><${Read} of=${whispers} what="the whispers">${(rows) => rows.length ? html`<ul class="cards">${rows.map((row) => html`<li key=${row.id}><p class="private">${plain(row.text)}</p><p class="small">${plain(row.daimon)}, ${when(row.at)} · ${row.used_turn ? html`felt: <button class="link" onClick=${() => setTurn(row.used_turn)}>the turn that felt it</button>` : row.state === "active" ? `waits to be felt until ${when(row.expires_at)}` : row.state === "expired" ? "faded unfelt" : spaced(row.state)}</p></li>`)}</ul>` : html`<${Nothing}>Nobody has whispered yet. docs/daimons.md says how to let one.<//>`}<//><//>
    ${turn ? html`<${Layer} title="The turn that felt it" onClose=${() => setTurn(null)}><${Turn} turn=${turn} people=${people.data} level="h3"/><//>` : null}</div>`;
}
