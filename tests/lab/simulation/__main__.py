"""`PYTHONPATH=tests python -m lab.simulation`: lives from their seeds; a broken one is told, shrunk, as a line of JSON."""

import argparse
import json
import logging
import os
import sys

from msgspec import to_builtins

import made_once
from lab.simulation import Life, Script, live, script_of, shrunk
from lab.simulation.mutants import MUTANTS, OF_WORKERS, Mutant
from lab.simulation.workers import SharedScript, live_together, shared_script_of


def lived(script: Script, mutant: Mutant | None) -> Life:
    """Live through a script, with one process after the other or with several at a time."""
    if isinstance(script, SharedScript):
        return live_together(script, broken=mutant)
    return live(script, broken=mutant)


def main() -> int:
    """Live through seeds; return 1 where the oracle found a rule broken."""
    parser = argparse.ArgumentParser(description="Live through whole lives of a daemon, in virtual time.")
    parser.add_argument("--seeds", default="0-99", help="FIRST-LAST, or one")
    parser.add_argument("--messages", type=int, default=20, help="how much is said in each life")
    parser.add_argument("--workers", action="store_true", help="let several workers share one soul")
    parser.add_argument(
        "--mutant", choices=sorted({**MUTANTS, **OF_WORKERS}), help="break the product in this way first"
    )
    parser.add_argument("--until-broken", action="store_true", help="stop at the first life that is broken")
    parser.add_argument("--tell", action="store_true", help="tell of each life that held, too")
    parser.add_argument("--no-shrink", action="store_true", help="tell a broken life as it is")
    chosen = parser.parse_args()
    logging.disable(logging.CRITICAL)
    made_once.install()
    first, _, last = chosen.seeds.partition("-")
    mutant = {**MUTANTS, **OF_WORKERS}.get(chosen.mutant)
    code = 0
    for seed in range(int(first), int(last or first) + 1):
        script = shared_script_of(seed, chosen.messages) if chosen.workers else script_of(seed, chosen.messages)
        found = lived(script, mutant)
        if not found.broken:
            if chosen.tell:
                sys.stdout.write(json.dumps({"seed": seed, "steps": found.steps, "seen": found.seen}) + "\n")
            continue
        code = 1
        if not chosen.no_shrink and not chosen.until_broken:
            script = shrunk(script, lambda one: bool(lived(one, mutant).broken))
            found = lived(script, mutant)
        sys.stdout.write(json.dumps({"seed": seed, "broken": list(found.broken), "script": to_builtins(script)}) + "\n")
        sys.stdout.flush()
        if chosen.until_broken:
            break
    return code


if __name__ == "__main__":
    if os.environ.get("PYTHONHASHSEED") != "0":  # the order of a set is chance too, and not the seed's
        again = [sys.executable, "-m", "lab.simulation", *sys.argv[1:]]
        os.execve(sys.executable, again, os.environ | {"PYTHONHASHSEED": "0"})  # noqa: S606 - ourselves, once more
    found_code = main()
    sys.stdout.flush()
    os._exit(found_code)  # what killed processes held is not taken apart
