// People: what it makes of each, line by line and version by version; and taking it back.
import { html, useState } from "../vendor/preact-htm.js";
import { get, post, seg } from "../net.js";
import { Cards, Choice, Deed, Kept, nameOf, Nothing, plain, Prose, Read, Standing, Turn, useRead, when, where } from "../parts.js";

const LINKED = "Linked: whoever has either id is shown what both said in private; `claudius users unlink` undoes it.";
const named = (one) => plain(nameOf([one], one.person));
const at = (person, part = "") => `people/${seg(person)}${part}`;

function Forget({ person, soul }) {
  const [typed, setTyped] = useState(""), [receipt, setReceipt] = useState(null), kept = useRead(receipt ? null : at(person.person, "/export"));
  const name = person.name || person.person;
  if (receipt) return html`<h3>Receipt</h3>${receipt.lines.map((line) => html`<p>${plain(line)}</p>`)}`;
  return html`<p><strong>This erases a person from everything, history and backups too. Nothing brings it back.</strong></p>
    <${Read} of=${kept}>${(all) => html`<p>What goes: ${all.models.length} portraits with every version (${person.versions}), ${all.messages.length} lines of talk, ${all.state.length} values learned from them, and every mark of them in ledger, psyche, log and backups.</p>`}<//>
    <p>What stays: posts on networks, copies that you made elsewhere, and what others said about them.</p><label for="typed">Type the name out: <strong>${plain(name)}</strong></label> <input id="typed" class="field" value=${typed} onInput=${(event) => setTyped(event.target.value)} autocomplete="off"/>
    <p><${Deed} deed label="Forget for good" disabled=${typed !== name} does=${async () => setReceipt(await post(at(person.person, "/forget"), { name: typed }))} again=${soul.again}/></p>`;
}

const Diff = ({ lines }) => html`<div class="diff private">${lines.map((line) => html`<p class=${{ "+": "add", "-": "gone" }[line[0]]}>${plain(line)}</p>`)}</div>`;

function Portrait({ person, model, soul }) {
  const asked = `?audience=${seg(model.audience)}`, place = where(model.audience, soul.people.data), lines = useRead(at(person, `/blame${asked}`), soul.turn), log = useRead(at(person, "/log"), soul.turn);
  const behind = (turn) => () => soul.show("The turn behind it", html`<${Turn} turn=${turn} soul=${soul}/>`);
  const changed = async (version) => { const found = await get(at(person, `/diff${asked}&a=${version - 1}&b=${version}`)); soul.show(`Version ${found.old} to ${found.new}`, html`<${Diff} lines=${found.diff.slice(2)}/>`); };
  return html`<section class="columns" aria-label=${`portrait ${place}`}><div><h3>Portrait ${place}, version ${model.version}${model.suspect ? " (suspect)" : ""}</h3>
    <${Read} of=${lines}>${(rows) => html`<table class="blame"><thead class="sr"><tr><th scope="col">line</th><th scope="col">from</th></tr></thead><tbody>${rows.filter((row) => row.line.trim()).map((row) => html`<tr><td class="private"><${Prose} text=${row.line}/></td><td class="small">${row.turn ? html`<button class="link" onClick=${behind(row.turn)}>v${row.version}<span class="sr">: the turn behind this line</span></button>` : `v${row.version}, by hand`}</td></tr>`)}</tbody></table>`}<//>
    </div><div><h3>Versions</h3><${Read} of=${log}>${(rows) => html`<${Cards} rows=${rows.filter((row) => row.version && row.audience === model.audience)}>${(row) => html`<p><strong>${row.version}</strong> · ${when(row.at)} · <span class="private">${plain(row.note)}</span>${row.suspect && html` <strong class="down">suspect</strong>`}</p>
      <p><${Deed} label=${html`What changed<span class="sr"> in version ${row.version}</span>`} does=${() => changed(row.version)} done=${() => ""}/>
      ${row.version === model.version ? "the newest" : html`<${Deed} label=${`Back to ${row.version}`} does=${() => post(at(person, "/revert"), { version: row.version, audience: model.audience, was: model.version })} done=${(made) => `version ${made.version} is version ${made.from} again; back to ${model.version} takes it back`} again=${soul.again}/>`}</p>`}<//>`}<//></div></section>`;
}

function Person({ person, people, soul, onTold }) {
  const found = useRead(at(person.person), soul.turn), [other, setOther] = useState("");
  const save = async () => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([JSON.stringify(await get(at(person.person, "/export")), null, 2)], { type: "application/json" }));
    link.download = "person.json";
    link.click();
    URL.revokeObjectURL(link.href);
  };
  return html`<article aria-label=${named(person)}><h2>${named(person)}</h2><p class="small">${plain(person.person)}${person.linked.length ? ` · also ${person.linked.map(plain).join(", ")}` : ""}</p>
    <${Standing} person=${person.person} soul=${soul}/>
    <${Read} of=${found}>${(known) => html`${known.models.map((model) => html`<${Portrait} key=${model.audience} person=${person.person} model=${model} soul=${soul}/>`)}<${Kept} known=${known}/>`}<//>
    <section aria-label="changes"><h3>Decide</h3><p><label for="other">The same person as</label> <select id="other" class="field" value=${other} onChange=${(event) => setOther(event.target.value)}><option value="">choose…</option>${people.filter((one) => one !== person).map((one) => html`<option value=${one.person}>${named(one)} (${plain(one.person)})</option>`)}</select>
      ${other && html` <${Deed} label="Link" does=${async () => { await post(at(person.person, "/link"), { other }); onTold(LINKED); }} again=${soul.again}/>`}</p>
      <p><${Deed} label="Export" does=${save} done=${() => "saved by your browser"}/> <button class="plain" onClick=${() => soul.show(`Forget ${named(person)}`, html`<${Forget} person=${person} soul=${soul}/>`)}>Forget…</button></p></section></article>`;
}

export function People({ soul }) {
  const [chosen, choose] = useState(""), [told, tell] = useState("");
  return html`<div class="one"><h1>People</h1><${Read} of=${soul.people}>${(rows) => {
    const person = rows.find((one) => one.person === chosen || one.linked.includes(chosen)) ?? rows[0];
    if (!person) return html`<${Nothing}>Nobody has spoken to it yet: say something.<//>`;
    return html`<${Choice} label="who" of=${rows.map((one) => [one.person, named(one)])} now=${person.person} onChoose=${(one) => { tell(""); choose(one); }}/><p role="status" class="told">${told}</p><${Person} key=${person.person} person=${person} people=${rows} soul=${soul} onTold=${tell}/>`;
  }}<//></div>`;
}
