// Text that people, files and models wrote, as text: a small tree of our own, no markup of theirs, nothing hidden in it.
import { html } from "./vendor/preact-htm.js";

const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\u{e0000}-\u{e007f}]/gu;
const named = (sign) => `U+${sign.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`;

// Show control and direction signs as what they are.
export const plain = (text) => String(text ?? "").replace(/\r\n/g, "\n").replace(HIDDEN, named);

const INLINE = /(`[^`\n]+`)|(\*\*[^*\n]+\*\*)|(\*[^*\s][^*\n]*\*|\b_[^_\n]+_\b)|(https?:\/\/[^\s<>"')\]]+)/g;

function inline(text) {
  const parts = [];
  let at = 0;
  for (const found of text.matchAll(INLINE)) {
    if (found.index > at) parts.push(text.slice(at, found.index));
    const [whole, code, strong, weak, link] = found;
    if (code) parts.push(html`<code>${whole.slice(1, -1)}</code>`);
    else if (strong) parts.push(html`<strong>${whole.slice(2, -2)}</strong>`);
    else if (weak) parts.push(html`<em>${whole.slice(1, -1)}</em>`);
    else if (link) parts.push(html`<span class="address">${whole}</span><button class="copy" onClick=${() => navigator.clipboard?.writeText(whole)}>copy<span class="sr"> the address</span></button>`);
    at = found.index + whole.length;
  }
  if (at < text.length) parts.push(text.slice(at));
  return parts;
}

// Draw Markdown's paragraphs, lists, headings, emphasis and code; everything else stays as it was written.
export function Prose({ text }) {
  const blocks = [];
  let list = null, code = null, lines = [];
  const flush = () => {
    if (lines.length) blocks.push(html`<p>${inline(lines.join("\n"))}</p>`);
    if (list) blocks.push(list.ordered ? html`<ol>${list.items}</ol>` : html`<ul>${list.items}</ul>`);
    list = null;
    lines = [];
  };
  for (const line of plain(text).split("\n")) {
    if (code) {
      if (/^\s*```/.test(line)) { blocks.push(html`<pre tabindex="0"><code>${code.join("\n")}</code></pre>`); code = null; }
      else code.push(line);
      continue;
    }
    const item = /^\s*(?:[-*]|(\d+)[.)])\s+(.*)$/.exec(line);
    const head = /^#{1,6}\s+(.*)$/.exec(line);
    if (/^\s*```/.test(line)) { flush(); code = []; }
    else if (item) {
      if (lines.length) flush();
      list ??= { ordered: Boolean(item[1]), items: [] };
      list.items.push(html`<li>${inline(item[2])}</li>`);
    } else if (head) { flush(); blocks.push(html`<p class="head">${inline(head[1])}</p>`); }
    else if (!line.trim()) flush();
    else { if (list) flush(); lines.push(line); }
  }
  if (code) blocks.push(html`<pre tabindex="0"><code>${code.join("\n")}</code></pre>`);
  flush();
  return html`<div class="prose">${blocks}</div>`;
}

const formats = {};
const format = (options) => (formats[JSON.stringify(options)] ??= new Intl.DateTimeFormat("en-GB", options));
export const date = (at) => (typeof at === "number" ? new Date(at * 1000) : new Date(at));
export const day = (at) => format({ weekday: "long", day: "numeric", month: "short" }).format(date(at));
export const shortDay = (at) => format({ weekday: "short", day: "numeric", month: "short" }).format(date(at));
export const clock = (at) => format({ hour: "2-digit", minute: "2-digit" }).format(date(at));
export const when = (at) => (at ? `${day(at)}, ${clock(at)}` : "never");
export const brief = (at) => `${format({ weekday: "short" }).format(date(at))} ${clock(at)}`;
export const span = (seconds) => {
  const minutes = Math.max(0, Math.round(seconds / 60));
  return minutes < 120 ? `${minutes} min` : minutes < 2880 ? `${Math.round(minutes / 60)} h` : `${Math.round(minutes / 1440)} d`;
};
export const count = (n) => (n >= 10000 ? `${Math.round(n / 1000)} k` : n >= 1000 ? `${(n / 1000).toFixed(1)} k` : String(n ?? 0));
export const dollars = (n) => (n === null || n === undefined ? "price unknown" : `$${n.toFixed(n < 1 ? 4 : 2)}`);
export const signed = (n, digits = 2) => `${n < 0 ? "▼ −" : "▲ +"}${Math.abs(n).toFixed(digits)}`;
export const trustWord = (n) => `${n < 0 ? "−" : "+"}${Math.abs(n)} of ±10`;
export const spaced = (name) => String(name ?? "").replace(/\.md$/, "").replace(/_/g, " ");
