// Beliefs: what the second mind holds true, from what, for how long; and its cycles.
import { html, useState } from "../vendor/preact-htm.js";
import { post, seg } from "../net.js";
import { Cards, date, Deed, many, nameOf, Nothing, plain, Read, Section, spaced, span, Table, useRead, when, where } from "../parts.js";

function Evidence({ ids, people }) {
  const found = useRead(ids.length ? `evidence?ids=${ids.join(",")}` : null);
  if (!ids.length) return html`<${Nothing}>It names no message.<//>`;
  return html`<${Read} of=${found}>${(rows) => html`<${Cards} rows=${rows}>${(row) => html`<p class="private">${plain(row.preview)}</p><p class="small">${row.direction === "in" ? "" : "to "}${plain(nameOf(people, row.peer))}, ${when(row.at)} · turn ${row.turn}</p>`}<//>
    ${rows.length < ids.length && html`<${Nothing}>${ids.length - rows.length} of ${ids.length} are not kept any more.<//>`}`}<//>`;
}

const left = (one, now) => (one.state === "active" ? `${span((date(one.expires_at) - now) / 1000)} left` : one.state);

export function Beliefs({ soul }) {
  const found = useRead("beliefs", soul.turn), cycles = useRead("cycles?n=20", soul.turn), people = soul.people.data;
  const [sure, setSure] = useState(null), now = date(soul.psyche.data?.at ?? Date.now());
  const change = (key, hand) => () => post(`beliefs/${seg(key)}`, { hand });
  const evidence = (ids) => () => soul.show("What it was formed from", html`<${Evidence} ids=${ids} people=${people}/>`);
  return html`<div class="one"><h1>Beliefs</h1><div class="columns">
    <${Section} title="In force" of=${found}>${({ beliefs, last_reflection_at: last }) => html`<p class="small">${last ? `It last reflected on ${when(last)}.` : "It has not reflected yet."}</p>
      <${Cards} rows=${beliefs} none="It believes nothing yet. A cycle of the second mind forms beliefs from what was said.">${(one) => html`<p class="private"><strong>${plain(one.value)}</strong></p><p class="small"><span class="private">${plain(spaced(one.key))}</span>${one.peer ? ` · about ${plain(nameOf(people, one.peer))}` : ""} · ${left(one, now)} · may be shown ${where(one.audience, people)}</p><p class="private">${plain(one.rationale)}</p>
        <p><button class="plain" onClick=${evidence(one.evidence)}>Evidence (${one.evidence.length})<span class="sr"> of ${plain(one.key)}</span></button>
        <${Deed} label="Pin" does=${change(one.key, "pin")} done=${() => "pinned: kept for good"} again=${soul.again}/>
        <${Deed} label="Dispute" does=${change(one.key, "dispute")} done=${() => "disputed: shown nowhere"} again=${soul.again}/>
        ${sure === one.key ? html`<${Deed} deed label="Really delete" does=${change(one.key, "delete")} done=${() => "deleted; it may be formed again"} again=${soul.again}/> <button class="plain" onClick=${() => setSure(null)}>Keep it</button>` : html`<button class="plain" onClick=${() => setSure(one.key)}>Delete…</button>`}</p>`}<//>`}<//>
    <${Section} title="Cycles" of=${cycles} above=${html`<p><${Deed} label="Reflect now" does=${() => post("reflect", {})} done=${(one) => `cycle ${one.cycle}: ${one.outcome}`} again=${soul.again}/></p>`}>${(rows) => (rows.length ? html`<${Table} label="cycles in a table" heads=${["when", "what started it", "what came of it", "read"]} rows=${rows}>${(one) => [
      when(one.at), plain(one.trigger), html`<span class="private">${plain(one.summary || one.outcome)}</span> <span class="small">${many(one.assessments, "assessment")}, ${many(one.beliefs, "belief")}, ${many(one.directives, "directive")}</span>`,
      html`<button class="link" onClick=${evidence(one.evidence)}>${one.evidence.length}<span class="sr"> messages read by cycle ${one.cycle}</span></button>`]}<//>` : html`<${Nothing}>It has not reflected yet.<//>`)}<//></div></div>`;
}
