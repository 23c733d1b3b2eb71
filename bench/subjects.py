"""In how many natural threads of five messages a subject is born, and in how many chats of unrelated ones.

Run alone: `bench/subjects.py [--locomo DIRECTORY] [--lines FILE] [--talks FILE…] [--json]`. Its own threads and chats
stand in `tests/psyche/threads/`; public dialogue is read by path and never kept here: `--locomo` takes a directory of
conversations of LoCoMo, one JSON file each, `--lines` a text with one dialogue a line, `--talks` files with one talk a
line, each a JSON list of messages: their first five are a thread, and a chat takes each message from another file if
there are several. The second half of each was never tuned on.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
import tomllib
from collections.abc import Sequence
from itertools import chain, pairwise
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "daemon"))

from claudius.psyche.arcs import Said, birth

ROOT = Path(__file__).resolve().parents[1]
GAP_S = 60.0
MOST = 300
Talk = Sequence[str]


def is_born(talk: Talk) -> bool:
    """Return whether a subject is born in a talk."""
    said: list[Said] = []
    for n, text in enumerate(talk):
        now = Said(text, n * GAP_S, "somebody")
        if birth(f"t{n}", now, said, "shared:a:b:c", "claudius"):
            return True
        said.append(now)
    return False


def locomo(directory: Path) -> list[list[Talk]]:
    """Return the sessions of each conversation, without the speakers' names, which are only called."""
    found: list[list[Talk]] = []
    for path in sorted(directory.rglob("*.json")):
        whole = json.loads(path.read_text("utf-8"))
        names = re.compile(rf"\b({whole['speaker_a']}|{whole['speaker_b']}|Mel|Jo|Deb|Jon)\b")
        sessions = [whole[key] for key in whole if re.fullmatch(r"session_\d+", key) and isinstance(whole[key], list)]
        found.append(
            [[names.sub("", one.get("text") or one.get("clean_text") or "") for one in talk] for talk in sessions]
        )
    return found


def dialogues(path: Path) -> list[Talk]:
    """Return each dialogue of a text in five pieces of whole sentences."""
    found: list[Talk] = []
    for line in path.read_text("utf-8").splitlines():
        said = [one for one in re.split(r"(?<=[.?!])\s+", line.strip()) if one]
        if size := len(said) // 5:
            cuts = [*range(0, 5 * size, size), len(said)]
            found.append([" ".join(said[begin:end]) for begin, end in pairwise(cuts)])
    return found


def windows(sessions: Sequence[Talk]) -> list[Talk]:
    """Cut sessions into threads of five messages."""
    return [session[at : at + 5] for session in sessions for at in range(0, len(session) - 4, 5)]


def measured(threads: Sequence[Talk], chats: Sequence[Talk]) -> dict[str, float | int]:
    """Return the shares in which a subject is born."""
    born, false = [is_born(one) for one in threads], [is_born(one) for one in chats]
    return {"threads": round(sum(born) / len(born), 3), "chats": round(sum(false) / len(false), 3), "of": len(born)}


def halves(talks: Sequence[Talk]) -> tuple[Sequence[Talk], Sequence[Talk]]:
    """Return the half that was tuned on, and the other."""
    return talks[: len(talks) // 2], talks[len(talks) // 2 :]


def figures(
    locomo_at: Path | None, lines_at: Path | None, talks_at: Sequence[Path]
) -> dict[str, dict[str, float | int]]:
    """Measure every set."""
    chance, found = random.Random(18), {}
    for name in ("tuning", "held_out"):
        kept = tomllib.loads((ROOT / "tests" / "psyche" / "threads" / f"{name}.toml").read_text("utf-8"))
        found[f"own, {name}"] = measured(kept["threads"], kept["chats"])
    if locomo_at:
        talks = locomo(locomo_at)
        for name, part in (("tuning", talks[:5]), ("held_out", talks[5:])):
            threads = windows([*chain.from_iterable(part)])
            chats = [[chance.choice(chance.choice(one)) for one in part[:5]] for _ in range(MOST)]
            found[f"locomo, {name}"] = measured(chance.sample(threads, min(MOST, len(threads))), chats)
    if lines_at:
        for name, lines in zip(("tuning", "held_out"), halves(dialogues(lines_at)), strict=True):
            chats = [[chance.choice(one) for one in chance.sample(lines, 5)] for _ in range(MOST)]
            found[f"lines, {name}"] = measured(lines[:MOST], chats)
    files = {path.stem: halves([*map(json.loads, path.read_text("utf-8").splitlines())]) for path in talks_at}
    for n, name in enumerate(("tuning", "held_out")):
        parts = [both[n] for both in files.values()]
        chats = [
            [chance.choice(chance.choice(parts[k % len(parts)])) for k in range(5)] for _ in range(MOST if parts else 0)
        ]
        for file, both in files.items():
            threads = [talk[:5] for talk in both[n] if len(talk) >= 5]
            found[f"{file}, {name}"] = measured(chance.sample(threads, min(MOST, len(threads))), chats)
    return found


def main() -> None:
    """Print every figure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--locomo", type=Path, help="a directory of LoCoMo's conversations")
    parser.add_argument("--lines", type=Path, help="a text with one dialogue a line")
    parser.add_argument("--talks", type=Path, nargs="+", default=[], help="files with a JSON list of messages a line")
    parser.add_argument("--json", action="store_true", help="one JSON document")
    given = parser.parse_args()
    found = figures(given.locomo, given.lines, given.talks)
    if given.json:
        print(json.dumps(found, indent=1))
        return
    for name, one in found.items():
        print(f"{name:<18} threads {one['threads']:.0%}   unrelated {one['chats']:.0%}   of {one['of']}")


if __name__ == "__main__":
    main()
