// People: what it makes of each, line by line and version by version; and taking it back.
import { html, useState } from "../vendor/preact-htm.js";
import { get, post, seg } from "../net.js";
import { Deed, Layer, Nothing, Read, useRead } from "../parts.js";
import { Turn, where } from "../turn.js";
import { plain, trustWord, when } from "../words.js";

const WILL_NOT = "What stays: posts on networks, copies that you made elsewhere, and what others said about them.";

const LINKED = "Linked: whoever has either id is shown what both said in private; `claudius users unlink` undoes it.";

function Forget({ person, onClose, onDone }) {
  const [typed, setTyped] = useState(""), [receipt, setReceipt] = useState(null), kept = useRead(`people/${seg(person.person)}/export`);
  const name = person.name || person.person;
  if (receipt) return html`<${Layer} title="Receipt" onClose=${onDone}><p><strong>${receipt.verified ? "Searched everywhere, and found nowhere." : `Still found in ${receipt.left.map(plain).join(", ")}: do it once more.`}</strong></p>
    <ul>${Object.entries(receipt.rows).map(([table, rows]) => html`<li>${plain(table)}: ${rows} rows</li>`)}<li>git: ${receipt.git} versions</li><li>log: ${receipt.logs} lines</li><li>old backups: ${receipt.backups}</li></ul><p class="small">Not ours to erase: ${receipt.not_ours.map(plain).join("; ")}.</p><//>`;
  return html`<${Layer} title=${`Forget ${plain(name)}`} onClose=${onClose}><p><strong>This erases a person from everything, history and backups too. Nothing brings it back.</strong></p>
    <${Read} of=${kept} what="what will go">${(all) => html`<p>What goes: ${all.models.length} portraits with every version (${person.versions}), ${all.messages.length} lines of talk, ${all.state.length} values learned from them, and every mark of them in ledger, psyche, log and backups.</p>`}<//>
    <p>${WILL_NOT}</p><label for="typed">Type the name out: <strong>${plain(name)}</strong></label> <input id="typed" class="field" value=${typed} onInput=${(event) => setTyped(event.target.value)} autocomplete="off"/>
    <p>${typed === name ? html`<${Deed} deed=${true} label="Forget for good" does=${() => post(`people/${seg(person.person)}/forget`, { name: typed })} done=${(found) => { setReceipt(found); return "forgotten"; }}/>` : html`<button class="deed" disabled>Forget for good</button>`}</p><//>`;
}

function Portrait({ person, model, people, soul }) {
  const asked = `?audience=${seg(model.audience)}`, lines = useRead(`people/${seg(person)}/blame${asked}`, soul.turn), log = useRead(`people/${seg(person)}/log`, soul.turn);
  const [turn, setTurn] = useState(null), [diff, setDiff] = useState(null);
  const versions = log.data?.filter((row) => row.audience === model.audience) ?? [];
  return html`<section aria-label=${`portrait ${where(model.audience, people)}`}><h3>Portrait ${where(model.audience, people)}, version ${model.version}${model.suspect ? " (suspect)" : ""}</h3>
    <${Read} of=${lines} what="the portrait">${(rows) => html`<table class="blame"><thead class="sr"><tr><th scope="col">line</th><th scope="col">from</th></tr></thead><tbody>${rows.filter((row) => row.line.trim()).map((row) => html`<tr><td class="private">${plain(row.line)}</td><td class="small">${row.turn ? html`<button class="link" onClick=${() => setTurn(row.turn)}>v${row.version}<span class="sr">: the turn behind “${plain(row.line)}”</span></button>` : `v${row.version}, by hand`}</td></tr>`)}</tbody></table>`}<//>
    <h3>Versions</h3><ul class="cards">${versions.map((row) => html`<li key=${row.version}><p><strong>${row.version}</strong> · ${when(row.at)} · <span class="private">${plain(row.note)}</span>${row.suspect ? html` <strong class="down">suspect</strong>` : null}</p>
      <p><button class="plain" onClick=${async () => setDiff(await get(`people/${seg(person)}/diff${asked}&a=${row.version - 1}&b=${row.version}`))}>What changed<span class="sr"> in version ${row.version}</span></button>
      ${row.version === model.version ? " the newest" : html` <${Deed} label=${`Back to ${row.version}`} does=${() => post(`people/${seg(person)}/revert`, { version: row.version, audience: model.audience, was: model.version })} done=${(made) => `version ${made.version} is version ${made.from} again; back to ${model.version} takes it back`} again=${soul.again}/>`}</p></li>`)}</ul>
    ${turn ? html`<${Layer} title="The turn behind it" onClose=${() => setTurn(null)}><${Turn} turn=${turn} people=${people} level="h3"/><//>` : null}
    ${diff ? html`<${Layer} title=${`Version ${diff.old} to ${diff.new}`} onClose=${() => setDiff(null)}><div class="diff private">${diff.diff.slice(2).map((line) => html`<p class=${line[0] === "+" ? "add" : line[0] === "-" ? "gone" : "same"}>${plain(line)}</p>`)}</div><//>` : null}</section>`;
}

function Person({ person, people, soul, onForget, onTold }) {
  const found = useRead(`people/${seg(person.person)}`, soul.turn), peers = useRead("peers", soul.turn), felt = useRead("psyche", soul.turn);
  const [other, setOther] = useState("");
  const peer = peers.data?.find((one) => one.peer === person.person), edge = felt.data?.relationships.find((one) => one.person === person.person);
  return html`<article aria-label=${plain(person.name || person.person)}><h2>${plain(person.name || person.person)}</h2><p class="small">${plain(person.person)}${person.linked.length ? ` · also ${person.linked.map(plain).join(", ")}` : ""}</p>
    <p>${edge ? plain(edge.words) : "not met lately"}${peer?.trust != null ? ` · trust ${trustWord(peer.trust)}: ${plain(peer.rationale)}` : " · not assessed yet"}</p>
    <${Read} of=${found} what="the portraits">${({ models }) => models.length ? models.map((model) => html`<${Portrait} key=${model.audience} person=${person.person} model=${model} people=${people} soul=${soul}/>`) : html`<${Nothing}>Nothing has been written about them yet.<//>`}<//>
    <section aria-label="changes"><h3>Decide</h3><p><label for="other">The same person as</label> <select id="other" class="field" value=${other} onChange=${(event) => setOther(event.target.value)}><option value="">choose…</option>${people.filter((one) => one.person !== person.person).map((one) => html`<option value=${one.person}>${plain(one.name || one.person)} (${plain(one.person)})</option>`)}</select>
      ${other ? html` <${Deed} label="Link" does=${async () => { await post(`people/${seg(person.person)}/link`, { other }); onTold(LINKED); }} again=${soul.again}/>` : null}</p>
      <p><${Deed} label="Export" does=${async () => { const all = await get(`people/${seg(person.person)}/export`); const link = document.createElement("a"); link.href = URL.createObjectURL(new Blob([JSON.stringify(all, null, 2)], { type: "application/json" })); link.download = "person.json"; link.click(); URL.revokeObjectURL(link.href); }} done=${() => "saved by your browser"}/> <button class="plain" onClick=${onForget}>Forget…</button></p></section></article>`;
}

export function People({ soul }) {
  const people = useRead("people", soul.turn), [chosen, choose] = useState(""), [leaving, setLeaving] = useState(null), [told, tell] = useState("");
  return html`<div class="one"><h1>People</h1><${Read} of=${people} what="the people">${(rows) => {
    const person = rows.find((one) => one.person === chosen || one.linked.includes(chosen)) ?? rows[0];
    if (!person) return html`<${Nothing}>Nobody has spoken to it yet: say something.<//>`;
    return html`<div class="choice" role="group" aria-label="who">${rows.map((one) => html`<button key=${one.person} aria-pressed=${one === person} onClick=${() => { tell(""); choose(one.person); }}>${plain(one.name || one.person)}</button>`)}</div><p role="status" class="told">${told}</p><${Person} key=${person.person} person=${person} people=${rows} soul=${soul} onForget=${() => setLeaving(person)} onTold=${tell}/>`;
  }}<//>
    ${leaving ? html`<${Forget} key=${leaving.person} person=${leaving} onClose=${() => setLeaving(null)} onDone=${() => { setLeaving(null); choose(""); soul.again(); }}/>` : null}</div>`;
}
