"""A whole daemon, lived through in a moment: real store, real lanes, virtual time, and everything that goes wrong.

    PYTHONPATH=tests python -m lab.simulation --seeds 0-99
    PYTHONPATH=tests python -m lab.simulation --seeds 0-99 --workers

A life is a function of its seed and of the code: who says what when, what the network loses, doubles, delays and hides,
how the model fails, and after which steps of the event loop the process is killed. The oracle judges its end.
With `--workers`, several processes share one soul in one virtual time (`workers.py`, `server.py`).
Source: the reliability design, section 13; the scale design, section 11.
"""

from lab.simulation.life import Life, live
from lab.simulation.script import Script, script_of, shrunk

__all__ = ["Life", "Script", "live", "script_of", "shrunk"]
