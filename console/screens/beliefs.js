// Beliefs: what the second mind holds true, from what, for how long; and its cycles.
import { html, useState } from "../vendor/preact-htm.js";
import { post, seg } from "../net.js";
import { Deed, Layer, Nothing, Read, Section, Table, useRead } from "../parts.js";
import { nameOf, where } from "../turn.js";
import { date, plain, span, when } from "../words.js";

function Evidence({ ids, people, onClose }) {
  const found = useRead(ids.length ? `evidence?ids=${ids.join(",")}` : null);
  return html`<${Layer} title="What it was formed from" onClose=${onClose}>${ids.length ? html`<${Read} of=${found} what="the evidence">${(rows) => html`${rows.length ? html`<ul class="cards">${rows.map((row) => html`<li key=${row.id}><p class="private">${plain(row.preview)}</p><p class="small">${row.direction === "in" ? plain(nameOf(people, row.peer)) : `to ${plain(nameOf(people, row.peer))}`}, ${when(row.at)} · turn ${row.turn}</p></li>`)}</ul>` : null}
    ${rows.length < ids.length ? html`<${Nothing}>${ids.length - rows.length} of ${ids.length} are not kept any more.<//>` : null}`}<//>` : html`<${Nothing}>It names no message.<//>`}<//>`;
}

const left = (one, now) => one.state !== "active" ? one.state : `${span((date(one.expires_at) - now) / 1000)} left`;

export function Beliefs({ soul }) {
  const found = useRead("beliefs", soul.turn), cycles = useRead("cycles?n=20", soul.turn), people = useRead("people", soul.turn), psyche = useRead("psyche", soul.turn);
  const [evidence, setEvidence] = useState(null), [sure, setSure] = useState(null), now = psyche.data ? date(psyche.data.at) : new Date();
  const change = (key, hand) => () => post(`beliefs/${seg(key)}`, { hand });
  return html`<div class="one"><h1>Beliefs</h1>
    <${Section} id="held" title="In force"><${Read} of=${found} what="the beliefs">${({ beliefs, last_reflection_at: last }) => html`<p class="small">${last ? `It last reflected on ${when(last)}.` : "It has not reflected yet."}</p>
      ${beliefs.length ? html`<ul class="cards">${beliefs.map((one) => html`<li key=${one.key}><p class="private"><strong>${plain(one.value)}</strong></p><p class="small">${plain(one.key)}${one.peer ? ` · about ${plain(nameOf(people.data, one.peer))}` : ""} · ${left(one, now)} · may be shown ${where(one.audience, people.data)}</p><p class="private">${plain(one.rationale)}</p>
        <p><button class="plain" onClick=${() => setEvidence(one.evidence)}>Evidence (${one.evidence.length})<span class="sr"> of ${plain(one.key)}</span></button>
        ${["pin", "dispute"].map((hand) => html` <${Deed} key=${hand} label=${hand === "pin" ? "Pin" : "Dispute"} does=${change(one.key, hand)} done=${(was) => (was.state === "pinned" ? "pinned: kept for good" : "disputed: shown nowhere")} again=${soul.again}/>`)}
        ${sure === one.key ? html` <${Deed} deed=${true} label="Really delete" does=${change(one.key, "delete")} done=${() => "deleted; it may be formed again"} again=${soul.again}/> <button class="plain" onClick=${() => setSure(null)}>Keep it</button>` : html` <button class="plain" onClick=${() => setSure(one.key)}>Delete…</button>`}</p></li>`)}</ul>` : html`<${Nothing}>It believes nothing yet. A cycle of the second mind forms beliefs from what was said.<//>`}`}<//><//>
    <${Section} id="cycles" title="Cycles"><p><${Deed} label="Reflect now" does=${() => post("reflect", {})} done=${(one) => `cycle ${one.cycle}: ${one.outcome}. ${one.summary}`} again=${soul.again}/></p>
      <${Read} of=${cycles} what="the cycles">${(rows) => rows.length ? html`<${Table} label="cycles in a table" heads=${["when", "what started it", "what came of it", "read"]}>${rows.map((one) => html`<tr key=${one.cycle}><th scope="row">${when(one.at)}</th><td>${plain(one.trigger)}</td><td class="private">${plain(one.summary || one.outcome)} (assessed: ${one.assessments}, beliefs: ${one.beliefs}, directives: ${one.directives})</td><td><button class="link" onClick=${() => setEvidence(one.evidence)}>${one.evidence.length} messages<span class="sr"> read by cycle ${one.cycle}</span></button></td></tr>`)}<//>` : html`<${Nothing}>It has not reflected yet.<//>`}<//><//>
    ${evidence ? html`<${Evidence} ids=${evidence} people=${people.data} onClose=${() => setEvidence(null)}/>` : null}</div>`;
}
