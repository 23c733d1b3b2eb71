// What is under way in each conversation, built from events: what was heard, what is thought, the words as they come.

export class Grown {
  constructor(text = "") { this.text = text; this.heard = new Set(); }
  add(piece) { this.text += piece; for (const one of this.heard) one(); }
  listen(one) { this.heard.add(one); return () => this.heard.delete(one); }
}

const BEGINS = ["hear", "think.delta", "speak.delta"];
const isThought = (step) => step.endsWith("monologue");

// Take an event into `lives`: conversation → its turns, oldest first. Two connections tell, in no order.
export function heed(lives, one) {
  const rows = lives.get(one.conversation) ?? [];
  let now = one.turn && rows.find((row) => row.turn === one.turn);
  if (!now) {
    if (!one.turn || !BEGINS.includes(one.kind)) return;
    now = { turn: one.turn, keys: [], heard: [], thoughts: [], words: null, gate: "", over: false };
    lives.set(one.conversation, [...rows.filter((row) => row.over), now].slice(-10));
  }
  const known = () => now.thoughts.find((thought) => thought.step === one.step && !thought.voided);
  switch (one.kind) {
    case "hear": now.keys.push(one.key); now.heard.push(one.text.replace(/^[^ ]+: /, "")); break;
    case "think.delta":
      if (!isThought(one.step)) break;
      if (!known()) now.thoughts.push({ step: one.step, verb: one.verb, grown: new Grown() });
      known().grown.add(one.text);
      break;
    case "think.void": for (const thought of now.thoughts) thought.voided = true; break;
    case "gate": if (!/^\w+_check/.test(one.text)) now.gate = one.text; break;
    case "speak.delta": (now.words ??= new Grown()).add(one.text); break;
    case "speak": case "speech": now.words = new Grown(one.body ?? one.text); now.over = true; break;
    case "error": now.over = true; break;
  }
}

export const isBusy = (row) => Boolean(row) && !row.over && !row.thoughts.at(-1)?.voided;
