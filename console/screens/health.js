// Health: what runs and waits, what is wrong and how to mend it, what it cost.
import { html, useState } from "../vendor/preact-htm.js";
import { Read, useRead } from "../parts.js";
import { count, dollars, plain, span } from "../words.js";

const BY = ["day", "model", "person", "conversation", "job"];

export function Health({ soul }) {
  const [by, setBy] = useState("day"), [again, setAgain] = useState(0);
  const status = useRead("status", soul.turn), doctor = useRead("doctor", again), usage = useRead(`usage?by=${by}`, soul.turn);
  return html`<div class="one"><h1>Health</h1>
    <section aria-labelledby="state"><h2 id="state">State</h2><${Read} of=${status} what="the state">${(now) => html`<dl class="facts">
      <dt>process</dt><dd>${now.running ? `awake: process ${now.pid}, up ${span(now.uptime_s)}` : "asleep: `claudius daemon start` wakes it"}${now.careful ? " · careful after an unclean end" : ""}</dd>
      <dt>voice</dt><dd>${plain(now.provider?.name ?? "none")} ${plain(now.provider?.model ?? "")}</dd>
      <dt>waiting</dt><dd>${now.inbox.pending} to think, ${now.outbox.pending} to say${now.inbox.dead + now.outbox.failed ? ` · given up: ${now.inbox.dead} heard, ${now.outbox.failed} said` : ""}</dd>
      <dt>turns</dt><dd>${now.turns.total}, ${now.turns.today} today</dd><dt>home</dt><dd>${plain(now.home)} · version ${now.version}</dd>
      ${now.adapters.map((one) => html`<dt>${plain(one.name)}</dt><dd>${one.connected ? "connected" : "not connected"}, ${one.last_inbound_s === null ? "never heard" : `last heard ${span(one.last_inbound_s)} ago`}${one.detail ? ` · ${plain(one.detail)}` : ""}</dd>`)}</dl>`}<//></section>
    <section aria-labelledby="doctor"><h2 id="doctor">Doctor</h2><p><button class="plain" onClick=${() => setAgain(again + 1)}>Run the doctor</button></p>
      <${Read} of=${doctor} what="the doctor's findings">${({ ok, checks }) => html`<p role="status">${ok ? "Nothing is wrong." : "Something is to be mended."}</p><ul class="plainlist checks">${checks.map((one) => html`<li class=${one.ok ? "fine" : "wrong"}><strong>${one.ok ? "✓ " : "✗ to mend: "}${plain(one.name)}</strong>: ${plain(one.detail)}${one.fix && !one.ok ? html`<br/>${plain(one.fix)}` : null}</li>`)}</ul>`}<//></section>
    <section aria-labelledby="usage"><h2 id="usage">Usage</h2><div class="choice" role="group" aria-label="what each row counts">${BY.map((word) => html`<button aria-pressed=${by === word} onClick=${() => setBy(word)}>${word}</button>`)}</div>
      <${Read} of=${usage} what="the usage">${(found) => html`<p>${found.budget.limit_usd ? `Today ${dollars(found.budget.spent_usd)} of ${dollars(found.budget.limit_usd)}: stage ${found.budget.stage}.` : "No daily budget is set (`budget.daily_usd`)."}</p>
        <div class="scroll" tabindex="0" role="region" aria-label="usage in a table"><table><thead><tr><th scope="col">${by}</th><th scope="col">turns</th><th scope="col">tokens in</th><th scope="col">of them cached</th><th scope="col">tokens out</th><th scope="col">cost</th></tr></thead>
        <tbody>${[...found.rows, { ...found.total, [by]: "total" }].map((row) => html`<tr><th scope="row">${plain(row[by])}</th><td>${row.turns}</td><td>${count(row.input_tokens + row.cache_read_tokens)}</td><td>${count(row.cache_read_tokens)}</td><td>${count(row.output_tokens)}</td><td>${dollars(row.cost_usd)}</td></tr>`)}</tbody></table></div>`}<//></section></div>`;
}
