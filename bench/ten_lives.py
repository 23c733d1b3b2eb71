"""Live the ten lives of `tests/lives.py` and write them into docs/psyche.md: a table and a picture each.

Run alone: `bench/ten_lives.py [NAME…] [--show]`. With names only those are lived and drawn; `--show` prints the tables
and writes nothing. Each is the real daemon in virtual time with a scripted voice; the same code gives the same words.
"""

from __future__ import annotations

import argparse
import logging
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta
from html import escape
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from textwrap import wrap

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "daemon"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from claudius.psyche.bands import drive_words, mood_words
from claudius.psyche_types import DRIVES
from lives import DAYS, LIVES, Evening, Life, Lived, live
from living import MONDAY

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "psyche.md"
PICTURES = ROOT / "docs" / "lives"
BEGIN, END = "<!-- the lives: written by bench/ten_lives.py -->", "<!-- the end of the lives -->"
WIDTH, LEFT, RIGHT, ROW, TOP = 1060, 150, 16, 36, 92
LINES, SUBJECTS = 2, 1
"""The most lines of a block; the most subjects of a day."""
LETTER = 5.8
"""How wide a letter of a block is at most, on average."""
DAY = (WIDTH - LEFT - RIGHT) / DAYS
MOODS = ("#8c2f39", "#d98c5f", "#d9dee4", "#9fcf9f", "#f2c14e")
"""Colours from the lowest mood to the highest."""
NEEDS = {
    "relatedness": "company",
    "autonomy": "freedom",
    "competence": "use",
    "novelty": "novelty",
    "safety": "safety",
}
BANDS = ("", "", "#f0c987", "#d9774f")
"""Colours of a need's bands; it is named from the third on."""
TOWARD = {
    "new to you": "#eceff2",
    "on ordinary terms": "#dde3e9",
    "reserved": "#c9cdd6",
    "friendly": "#cfe6cf",
    "fond": "#a5d3a0",
    "close, relying on them": "#7fc08a",
    "trusting, not close": "#b5d8d3",
    "a little tense": "#f2d4a8",
    "strained": "#e8a87c",
    "fond, with something unresolved": "#e6d59c",
    "something is broken between you": "#c46a5b",
    "distrustful": "#b58a8a",
    "cold": "#9fb0c3",
}
PEOPLE = ("#2a6fb0", "#d1653a", "#2f8f6b", "#8a5aa8", "#b8942e")
STYLE = (
    "text{font:11px system-ui,-apple-system,'Segoe UI',sans-serif;fill:#323f4b}.h{font-size:18px;font-weight:600}"
    ".t{font-weight:600}.s{fill:#7b8794}.w{font-size:10px}"
)


def mood_of(lived: Lived, evening: Evening) -> tuple[int, str]:
    """Return the mood of a day: the one furthest from rest after an event of that day, else that of the evening."""
    begin = (MONDAY.replace(hour=0) + timedelta(days=evening.day - 1)).timestamp()
    today = [move.numbers for move in lived.moves if begin <= move.at_s < begin + 86_400.0]
    furthest = max(today, key=lambda one: abs(one.valence - 0.1), default=None)
    if furthest is None or not furthest.bands:
        return 2, evening.mood
    return furthest.bands[0], mood_words(furthest.bands)


def spoke(life: Life, day: int) -> Counter[str]:
    """Return how often each person spoke on a day."""
    return Counter(line.who.capitalize() for line in life.said if line.day == day and not line.text.startswith("!"))


def table(lived: Lived) -> Iterator[str]:
    """Yield a row for each run of days that ended alike."""
    yield "| days | who spoke | mood | wants | toward | on its mind |"
    yield "|---|---|---|---|---|---|"

    def alike(one: Evening) -> tuple[str, str, tuple[tuple[str, str], ...], tuple[str, ...]]:
        return (mood_of(lived, one)[1], one.wants, tuple(one.toward.items()), one.subjects)

    for (mood, wants, toward, subjects), group in groupby(lived.evenings, alike):
        days = [one.day for one in group]
        span = f"{days[0]}" if len(days) == 1 else f"{days[0]}–{days[-1]}"
        who = sum((spoke(lived.life, day) for day in days), Counter())
        said = ", ".join(f"{name} {count}" for name, count in sorted(who.items())) or "nobody"
        first = [at for at, _, _ in lived.first_words if (at - MONDAY.astimezone(at.tzinfo)).days + 1 in days]
        said += "; it wrote first" * bool(first)
        people = "; ".join(f"{name}: {words}" for name, words in toward)
        about = ", ".join(subjects[:3]) + (f" and {len(subjects) - 3} more" if len(subjects) > 3 else "")
        wanted = "–" if wants == "nothing presses" else wants
        yield f"| {span} | {said} | {mood} | {wanted} | {people} | {about or '–'} |"


class Picture:
    """One life as rows of blocks over thirty days, each block with its words."""

    def __init__(self, lived: Lived) -> None:
        """Draw `lived`."""
        self.lived, self.y = lived, TOP
        self.parts: list[str] = []
        self.told: dict[tuple[str, str], bool] = {}
        """Whether the words of a colour stand in full in some block."""

    def row(self, title: str, cells: Iterable[tuple[int, str, str]]) -> None:
        """Draw one row of (day, words, colour); neighbours that are alike are one block."""
        self.parts.append(f'<text class="t" x="12" y="{self.y + ROW / 2 + 4}">{escape(title[:24])}</text>')
        self.parts.append(box(LEFT, self.y + 2, DAYS * DAY, ROW - 4, "#f7f9fb"))
        for (words, colour), group in groupby(cells, lambda cell: cell[1:]):
            days = [day for day, *_ in group]
            for run in runs(days):
                self.block(run, words, colour)
        self.y += ROW

    def block(self, days: Sequence[int], words: str, colour: str) -> None:
        """Draw one block with its words, if they fit on two lines; else the legend tells them."""
        if not colour:
            return
        x, wide = LEFT + (days[0] - 1) * DAY, len(days) * DAY
        lines = wrap(words, max(1, int((wide - 6) / LETTER)), break_long_words=False)
        fits = len(lines) <= LINES and all(len(line) * LETTER <= wide - 6 for line in lines)
        key = (words, colour)
        self.told[key] = self.told.get(key, False) or fits
        self.parts.append(box(x + 0.5, self.y + 2, wide - 1, ROW - 4, colour, f"day {days[0]}–{days[-1]}: {words}"))
        for n, line in enumerate(lines if fits else ()):
            y = self.y + ROW / 2 + 4 + 12 * (n - (len(lines) - 1) / 2)
            self.parts.append(f'<text class="w" x="{x + 4:.1f}" y="{y:.1f}">{escape(line)}</text>')

    def legend(self) -> None:
        """Name the colours of the blocks that are too short for their words."""
        x, y = 12.0, self.y + 22
        short = [key for key, is_told in self.told.items() if not is_told]
        if short:
            self.parts.append(f'<text class="s" x="{x}" y="{y}">short blocks:</text>')
            x += 80
        for words, colour in short:
            wide = 22 + LETTER * len(words) + 14
            if x + wide > WIDTH:
                x, y = 92.0, y + 20
            self.parts.append(box(x, y - 11, 16, 14, colour))
            self.parts.append(f'<text class="w" x="{x + 21:.1f}" y="{y}">{escape(words)}</text>')
            x += wide
        self.y = y

    def voices(self) -> None:
        """Draw who spoke on which day, and when the soul wrote first."""
        people = sorted({name for day in range(1, DAYS + 1) for name in spoke(self.lived.life, day)})
        for n, name in enumerate(people):
            colour = PEOPLE[n % len(PEOPLE)]
            label = f'<text class="t" x="12" y="{self.y + 15}" style="fill:{colour}">{escape(name)} spoke</text>'
            self.parts.append(label)
            for day in range(1, DAYS + 1):
                if count := spoke(self.lived.life, day)[name]:
                    tall = min(18.0, 4.0 + 2.0 * count)
                    x = LEFT + (day - 1) * DAY + DAY / 2 - 5
                    self.parts.append(box(x, self.y + 20 - tall, 10, tall, colour))
            self.y += 24
        for at, _, _ in self.lived.first_words:
            x = LEFT + (at - MONDAY.astimezone(at.tzinfo)).total_seconds() / 86_400 * DAY
            self.parts.append(f'<circle cx="{x:.1f}" cy="{self.y - 12}" r="6" fill="#1f2933"/>')
            self.parts.append(f'<text class="w" x="{x + 9:.1f}" y="{self.y - 8}">it wrote first</text>')

    def drawn(self) -> str:
        """Return the picture."""
        lived = self.lived
        events = [(day, words, "#dcebf7") for begin, end, words in lived.life.events for day in range(begin, end + 1)]
        self.row("what happens", events)
        self.voices()
        moods = [(one.day, *mood_of(lived, one)) for one in lived.evenings]
        self.row("its mood", [(day, words, MOODS[at]) for day, at, words in moods])
        for drive in DRIVES:
            cells = [(one.day, drive_words(drive, one.bands[drive]), BANDS[one.bands[drive]]) for one in lived.evenings]
            if any(colour for *_, colour in cells):
                self.row(f"it lacks {NEEDS[drive]}", cells)
        for name in sorted({name for one in lived.evenings for name in one.toward}):
            found = [(one.day, one.toward[name]) for one in lived.evenings if name in one.toward]
            self.row(f"toward {name}", [(day, words, TOWARD.get(words, "#e4e7eb")) for day, words in found])
        if any(one.subjects for one in lived.evenings):
            subjects = [(one.day, ", ".join(one.subjects[:SUBJECTS])) for one in lived.evenings]
            self.row("on its mind", [(day, words, "#d7c9e8" if words else "") for day, words in subjects])
        bottom = self.y
        self.legend()
        height = self.y + 40
        days = "".join(
            f'<text class="s" x="{LEFT + (day - 0.5) * DAY:.1f}" y="{TOP - 12}" text-anchor="middle">{day}</text>'
            f'<path d="M{LEFT + (day - 1) * DAY:.1f} {TOP - 4}V{bottom}" stroke="#e8ecf0"/>'
            for day in range(1, DAYS + 1)
        )
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}">'
            f'<style>{STYLE}</style><rect width="{WIDTH}" height="{height}" fill="#fff"/>'
            f'<text class="h" x="12" y="30">{escape(lived.life.title)}</text>'
            f'<text x="12" y="50">{escape(lived.life.tells)}</text><text class="s" x="12" y="{TOP - 12}">day</text>'
            f'{days}{"".join(self.parts)}<text class="s" x="12" y="{self.y + 24}">Mood: the strongest of the day. The '
            f"rest: as it stood at {lived.life.looked_at}:00; a need in its highest band is darker.</text></svg>\n"
        )


def box(x: float, y: float, wide: float, tall: float, colour: str, told: str = "") -> str:
    """Return a rectangle; `told` is shown to whoever points at it. Pure."""
    title = f"<title>{escape(told)}</title>" if told else ""
    size = f'x="{x:.1f}" y="{y:.1f}" width="{wide:.1f}" height="{tall:.1f}"'
    return f'<rect {size} rx="3" fill="{colour}">{title}</rect>'


def runs(days: Sequence[int]) -> Iterator[list[int]]:
    """Yield runs of days that follow each other."""
    found: list[int] = []
    for day in days:
        if found and day != found[-1] + 1:
            yield found
            found = []
        found.append(day)
    if found:
        yield found


def written(lived: Lived) -> str:
    """Return a life for the page."""
    silent = sum(1 for day in range(1, DAYS + 1) if not spoke(lived.life, day))
    top = ", ".join(drive for drive, band in lived.peaks.items() if band > 2)
    facts = (
        f"{len(lived.life.said)} messages, {silent} silent days; {len(lived.calls)} model calls, on such days at most "
        f"{most_on_silent_days(lived)}; it wrote first {len(lived.first_words)} times. "
        f"Needs that reached their highest band: {top or 'none'}."
    )
    picture = f"![{lived.life.title}](lives/{lived.life.name}.svg)"
    return "\n".join([f"### {lived.life.title}", "", lived.life.tells, "", facts, "", picture, "", *table(lived), ""])


def most_on_silent_days(lived: Lived) -> int:
    """Return the most model calls on a day on which nobody spoke, nor on the day before."""
    quiet = {day for day in range(2, DAYS + 1) if not spoke(lived.life, day) and not spoke(lived.life, day - 1)}
    counted = Counter((at - MONDAY.replace(hour=0)).days + 1 for at, _ in lived.calls)
    return max((counted[day] for day in quiet), default=0)


def main() -> None:
    """Live them, and write what came of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="only these lives")
    parser.add_argument("--show", action="store_true", help="print the tables, write nothing")
    given = parser.parse_args()
    logging.disable(logging.CRITICAL)
    found = []
    for make in LIVES:
        life = make()
        if not given.names or life.name in given.names:
            with TemporaryDirectory() as directory:
                found.append(live(life, Path(directory) / "home"))
            print(f"{life.name}: lived", file=sys.stderr)
    if given.show:
        print("\n".join(map(written, found)))
        return
    PICTURES.mkdir(exist_ok=True)
    for lived in found:
        (PICTURES / f"{lived.life.name}.svg").write_text(Picture(lived).drawn(), "utf-8")
    if not given.names:
        page = PAGE.read_text("utf-8")
        before, _, rest = page.partition(BEGIN)
        _, _, after = rest.partition(END)
        PAGE.write_text(f"{before}{BEGIN}\n\n{chr(10).join(map(written, found))}\n{END}{after}", "utf-8")


if __name__ == "__main__":
    main()
