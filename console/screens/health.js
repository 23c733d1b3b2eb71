// Health: what runs and waits, what is wrong and how to mend it, what it cost.
import { html, useState } from "../vendor/preact-htm.js";
import { Choice, count, dollars, Line, Nothing, plain, Section, span, Table, tokensIn, useRead, when } from "../parts.js";

const BY = [["day"], ["model"], ["person"], ["conversation"], ["job"]];

const wrong = (what, fix) => html`<li class="wrong"><strong><${Line} text=${what}/></strong>${fix && html`<br/><${Line} text=${fix}/>`}</li>`;

function Notices({ now }) {
  const failed = now.last_failure, found = (now.health?.problems ?? []).map((one) => wrong(one.detail, one.fix));
  if (now.disk.problem) found.push(wrong(now.disk.problem));
  if (now.brake) found.push(wrong(now.brake.message));
  if (failed) found.push(wrong(`The turn of ${when(failed.at)} failed: ${failed.detail}`, failed.fix));
  return html`${found.length ? html`<ul class="plainlist checks">${found}</ul>` : html`<p>Nothing is wrong that it would tell you.</p>`}
    ${now.offers?.length > 0 && html`<details><summary>Off until you want it (${now.offers.length})</summary><ul class="plainlist">${now.offers.map((one) => html`<li>${plain(one.what)}<br/><code>${plain(one.command)}</code></li>`)}</ul></details>`}`;
}

const size = (bytes) => (bytes < 1e6 ? `${Math.round(bytes / 1e3)} kB` : `${(bytes / 1e6).toFixed(1)} MB`);

const Backups = ({ rows }) => (rows.length ? html`<p>The newest is of ${when(rows[0].at)}. Each was verified when it was made; <code>claudius backup verify PATH</code> does it again, <code>claudius backup restore PATH</code> puts one back.</p>
  <${Table} label="backups in a table" heads=${["made", "size", "where"]} rows=${rows}>${(row) => [when(row.at), size(row.bytes), html`<code>${plain(row.path)}</code>`]}<//>`
  : html`<${Nothing}>There is no backup yet: <code>claudius backup create</code> makes one; the daemon does every night.<//>`);

export function Health({ soul }) {
  const [by, setBy] = useState("day"), [again, setAgain] = useState(0);
  const status = useRead("status", soul.turn), doctor = useRead("doctor", again), usage = useRead(`usage?by=${by}`, soul.turn), backups = useRead("backups", soul.turn);
  return html`<div class="one"><h1>Health</h1><div class="columns">
    <div><${Section} title="State" of=${status}>${(now) => html`<dl class="facts">
      <dt>process</dt><dd>${now.running ? `awake: process ${now.pid}, up ${span(now.uptime_s)}` : html`asleep: <code>claudius daemon start</code> wakes it`}${now.careful ? " · careful after an unclean end" : ""}</dd>
      <dt>voice</dt><dd>${plain(now.provider?.name ?? "none")} ${now.provider?.model !== now.provider?.name && plain(now.provider?.model)}</dd>
      <dt>waiting</dt><dd>${now.inbox.pending} to think, ${now.outbox.pending} to say${now.inbox.dead + now.outbox.failed ? ` · given up: ${now.inbox.dead} heard, ${now.outbox.failed} said` : ""}</dd>
      <dt>turns</dt><dd>${now.turns.total}, ${now.turns.today} today</dd><dt>home</dt><dd>${plain(now.home)} · version ${now.version}</dd>
      ${now.adapters.map((one) => html`<dt>${plain(one.name)}</dt><dd>${one.connected ? "connected" : "not connected"}, ${one.last_inbound_s === null ? "never heard" : `last heard ${span(one.last_inbound_s)} ago`}${one.detail ? ` · ${plain(one.detail)}` : ""}</dd>`)}</dl>`}<//>
    <${Section} title="Notices" of=${status}>${(now) => html`<${Notices} now=${now}/>`}<//></div>
    <${Section} title="Doctor" of=${doctor} above=${html`<p><button class="plain" onClick=${() => setAgain(again + 1)}>Run the doctor</button></p>`}>${({ ok, checks }) => html`<p role="status">${ok ? "Nothing is wrong." : "Something is to be mended."}</p>
      <ul class="plainlist checks">${checks.map((one) => html`<li class=${one.ok ? "fine" : "wrong"}><strong>${one.ok ? "✓ " : "✗ to mend: "}${plain(one.name)}</strong>: <${Line} text=${one.detail}/>${one.fix && !one.ok && html`<br/><${Line} text=${one.fix}/>`}</li>`)}</ul>`}<//>
    <${Section} title="Usage" kind="broad" of=${usage} above=${html`<${Choice} label="what each row counts" of=${BY} now=${by} onChoose=${setBy}/>`}>${(found) => html`<p>${found.budget.limit_usd ? `Today ${dollars(found.budget.spent_usd)} of ${dollars(found.budget.limit_usd)}: stage ${found.budget.stage}.` : "No daily budget is set: the screen Mind sets one."}</p>
      <${Table} label="usage in a table" heads=${[by, "turns", "tokens in", "of them cached", "of them written to the cache", "tokens out", "cost"]} rows=${[...found.rows, { ...found.total, [by]: "total" }]}>${(row) => [plain(row[by]), row.turns, count(tokensIn(row)), count(row.cache_read_tokens), count(row.cache_write_tokens), count(row.output_tokens), `${dollars(row.cost_usd)}${row.unpriced && row.cost_usd !== null ? " + unknown" : ""}`]}<//>`}<//>
    <${Section} title="Backups" kind="broad" of=${backups}>${(rows) => html`<${Backups} rows=${rows}/>`}<//></div></div>`;
}
