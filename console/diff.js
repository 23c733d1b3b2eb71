// The lines in which two texts differ, with a line around them; the longest common lines stay.
const MOST = 1500; // lines of the part that differs; beyond, all of it is shown as replaced
const AROUND = 1;

function common(a, b) {
  const table = Array.from({ length: a.length + 1 }, () => new Uint16Array(b.length + 1));
  for (let i = a.length - 1; i >= 0; i--) for (let j = b.length - 1; j >= 0; j--) table[i][j] = a[i] === b[j] ? table[i + 1][j + 1] + 1 : Math.max(table[i + 1][j], table[i][j + 1]);
  return table;
}

// Cut a line and the one that replaces it into [text, differs] pieces, word by word.
export function apart(before, after) {
  const [a, b] = [before, after].map((line) => line.split(/(?<=\s)/));
  if (a.length > MOST || b.length > MOST) return [[[before, true]], [[after, true]]];
  const table = common(a, b), old = [], fresh = [];
  const told = (to, word, differs) => { if (to.length && to.at(-1)[1] === differs) to.at(-1)[0] += word; else to.push([word, differs]); };
  let i = 0, j = 0;
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) { told(old, a[i++], false); told(fresh, b[j++], false); }
    else if (j >= b.length || (i < a.length && table[i + 1][j] >= table[i][j + 1])) told(old, a[i++], true);
    else told(fresh, b[j++], true);
  }
  return [old, fresh];
}

// Return [{kind: "same" | "gone" | "add" | "skip", text, parts?}], nothing where the texts are the same; `parts` as `apart` cuts a line.
export function difference(before, after) {
  const a = before.trimEnd().split("\n"), b = after.trimEnd().split("\n"), rows = [];
  let head = 0, tail = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head++;
  while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail++;
  const old = a.slice(head, a.length - tail), fresh = b.slice(head, b.length - tail);
  if (!old.length && !fresh.length) return [];
  const told = (kind) => (text) => rows.push({ kind, text });
  a.slice(0, head).forEach(told("same"));
  if (old.length > MOST || fresh.length > MOST) {
    old.forEach(told("gone"));
    fresh.forEach(told("add"));
  } else {
    const table = common(old, fresh);
    let i = 0, j = 0;
    while (i < old.length || j < fresh.length) {
      if (i < old.length && j < fresh.length && old[i] === fresh[j]) { told("same")(old[i]); i++; j++; }
      else if (j >= fresh.length || (i < old.length && table[i + 1][j] >= table[i][j + 1])) told("gone")(old[i++]);
      else told("add")(fresh[j++]);
    }
  }
  a.slice(a.length - tail).forEach(told("same"));
  for (const [n, row] of rows.entries()) {
    const next = rows[n + 1];
    if (row.kind === "gone" && next?.kind === "add" && rows[n - 1]?.kind !== "gone" && rows[n + 2]?.kind !== "add") [row.parts, next.parts] = apart(row.text, next.text);
  }
  const near = rows.map((here, n) => (here.kind !== "same" || here.text.trim()) && rows.slice(Math.max(0, n - AROUND), n + AROUND + 1).some((row) => row.kind !== "same"));
  return rows.flatMap((row, n) => (near[n] ? [row] : n && near[n - 1] && near.indexOf(true, n) > 0 ? [{ kind: "skip", text: "⋯" }] : []));
}
