// One turn, explained: heard, thought, said, what it moved, why it thought.
import { html, useState } from "./vendor/preact-htm.js";
import { Layer, Nothing, Read, Thought, useRead } from "./parts.js";
import { seg } from "./net.js";
import { clock, day, dollars, plain, Prose, signed, spaced, when } from "./words.js";

export const nameOf = (people, person) => {
  const found = people?.find((one) => one.person === person || one.linked?.includes(person));
  return found?.name || person?.split(":").pop() || "nobody";
};

// An audience in words.
export const where = (audience, people) => {
  const [kind, ...rest] = String(audience).split(":");
  return kind === "private" ? `in private with ${plain(nameOf(people, rest.join(":")))}` : kind === "shared" ? `in ${plain(rest.slice(2).join(" ") || rest.join(" "))} (${rest[0]})` : kind === "self" ? "anywhere" : plain(audience);
};

// What was heard; words that expired or were erased are said to be so, never shown as empty.
export function Heard({ of }) {
  if (!of || (!of.person && !of.text && !of.kind)) return html`<${Nothing}>Nobody spoke: it began by itself.<//>`;
  if (of.erased) return html`<p class="heard gone">What was heard here was erased.</p>`;
  if (of.text === null || of.text === undefined) {
    return html`<blockquote class="heard">${of.preview ? html`<p>${plain(of.preview)}</p>` : null}
      <p class="small">${of.preview ? "a preview of the ledger: " : ""}working memory let the full words go on ${when(of.expired_at)}</p></blockquote>`;
  }
  if (of.origin === "internal") return html`<p class="heard"><em>It rang: </em>${plain(of.text || of.kind)}</p>`;
  return html`<blockquote class="heard"><p>${plain(of.text)}</p></blockquote>`;
}

const ASIDE = ["external_dialogue", "daimonic_intuition"];

function Changes({ of, process }) {
  const lines = [];
  for (const [key, value] of Object.entries(of ?? {})) {
    if (key === "process") lines.push(`process: ${spaced(value.from)} → ${spaced(value.to)}`);
    else if (key === "mood") lines.push(`emotional state: ${value}`);
    else if (key === "user_model") lines.push(`portrait: ${value.result}${value.note ? `: ${value.note}` : ""}`);
    else lines.push(`${spaced(key)}: ${typeof value === "string" ? value : value?.result ?? JSON.stringify(value)}`);
  }
  if (!lines.length) return html`<p>It changed nothing; it stayed in ${spaced(process)}.</p>`;
  return html`<ul class="plainlist">${lines.map((line) => html`<li>${plain(line)}</li>`)}</ul>`;
}

function Prompt({ turn, onClose }) {
  const found = useRead(`turns/${seg(turn)}?prompt=1`);
  return html`<${Layer} title="The whole prompt" onClose=${onClose}><${Read} of=${found} what="the prompt">${({ prompt }) => !prompt ? html`<${Nothing}>No model was asked, or the record has expired.<//>`
    : prompt === "erased" ? html`<${Nothing}>What it was built from was erased.<//>`
    : html`<h3>System</h3><pre tabindex="0">${plain(prompt.system)}</pre>${prompt.history.map((one) => html`<h3>${one.role}</h3><pre tabindex="0">${plain(one.content)}</pre>`)}<h3>Tail</h3><pre tabindex="0">${plain(prompt.tail)}</pre>`}<//><//>`;
}

export function Turn({ turn, people, moved, level = "h2" }) {
  const found = useRead(turn ? `turns/${seg(turn)}` : null);
  const [prompt, setPrompt] = useState(false);
  if (!turn) return html`<${Nothing}>Pick a turn: by its tick, a dot, a row, or with the arrow keys.<//>`;
  return html`<${Read} of=${found} what="the turn">${(why) => html`<article class="turn">
    <p class="small">${day(why.at)}, ${clock(why.at)} · ${spaced(why.process)}</p>
    <${level}>${why.person ? plain(nameOf(people, why.person)) : "On its own"}<//>
    <${Heard} of=${why.perception}/>
    ${why.thoughts.filter((one) => !ASIDE.includes(one.step) && one.content && one.step.endsWith("monologue")).map((one) => html`<${Thought} verb=${one.verb ?? spaced(one.step)} text=${one.content}/>`)}
    ${why.utterance ? html`<div class="spoken"><${Prose} text=${why.utterance}/></div>` : html`<p class="small">It said nothing.</p>`}
    ${why.apology ? html`<p class="small">an apology: ${spaced(why.apology)}</p>` : null}
    ${moved ? html`<h3>What it moved</h3><dl class="moved"><dt>mood</dt><dd class=${moved.delta < 0 ? "down" : "up"}>${signed(moved.delta)}</dd><dt>afterwards</dt><dd>${plain(moved.mood)}</dd></dl>` : null}
    <h3>Why it thought</h3>
    <p>${plain(why.explained.words || `${why.attention.outcome ?? "kept"}: ${why.attention.reason ?? ""}`)}</p>
    ${why.explained.numbers ? html`<p class="small">${plain(why.explained.numbers)}</p>` : null}
    <h3>What changed</h3><${Changes} of=${why.changes} process=${why.process}/>
    <p class="small">${why.provider ? `${why.provider} ${why.model} · ${why.usage.input_tokens + why.usage.cache_read_tokens} tokens in, ${why.usage.output_tokens} out · ${dollars(why.usage.cost_usd)}` : "no model was asked"}</p>
    <p class="small">${why.expired_at ? `The record of this turn expired on ${day(why.expired_at)}.` : html`<button class="link" onClick=${() => setPrompt(true)}>the whole prompt</button>`} · <code>claudius replay ${why.turn}</code></p>
    ${prompt ? html`<${Prompt} turn=${turn} onClose=${() => setPrompt(false)}/>` : null}
  </article>`}<//>`;
}
