"""The page of the twelve stories can be printed, and says of each what the soul felt."""

import subprocess
import sys
from pathlib import Path

STORIES = Path(__file__).parents[2] / "bench" / "stories.py"


def test_the_page_of_twelve_stories_is_printed() -> None:
    """Each line stands with its appraisal and with what the next prompt said of feeling."""
    page = subprocess.run([sys.executable, STORIES], capture_output=True, text=True, check=True, timeout=120).stdout

    assert page.count("\n## ") == 12
    assert "praised you in scorn" in page
    assert "it is behind you both" in page
