"""A home with a week of life in it: three people, a quarrel, a reminder, portraits, trust, beliefs; in virtual time.

`python tests/lived_week.py DIRECTORY` leaves one to look at.
"""

import json
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

from claudius.cortex.asking import JOB
from claudius.home import Home
from claudius.provider import Request
from claudius.providers.scripted import Scripted
from living import MONDAY, Days, lived
from minds import heard, wanted

OWNER = "rehearsal:t:owner"
ENDS = (MONDAY + timedelta(days=6, hours=9)).astimezone(UTC)
"""When the week is over: the clock of whoever looks at it."""
ADA, BEN, RHEA = "ada", "ben", "rhea"

TALK: tuple[tuple[int, str, str, str, str, str, str], ...] = (
    (1, "09:05", ADA, "Good morning. I check load tables for the old rail bridge. Row 7 looks odd to me.",
     "noticed", "A table and a doubt. The doubt is worth more than the table.",
     "Then row 7 first. What does it claim, and what did you expect?"),
    (1, "09:12", ADA, "Great, that is exactly the mistake I was afraid of. Thank you so much, you are wonderful!",
     "weighed", "She is glad and means it. Take it, and stay with the table.",
     "Better found here than on the drawing. The rest of the table holds."),
    (1, "15:40", BEN, "Hello. Ada says you read drawings. I am new here and like quiet mornings.",
     "noticed", "New, careful, sent by somebody who trusts me.", "I read what is put before me. Bring one."),
    (1, "15:52", BEN, "That helped a lot, thank you. I understand the joint now.",
     "mused", "A joint understood is a good afternoon.", "Then it will hold twice: in the steel and in you."),
    (2, "08:30", ADA, "The second table is wrong as well. Row 9 counts the wind load twice.",
     "weighed", "Copied from the first, surely.", "Then the second was copied from the first. Strike the wind term in row 9."),
    (2, "17:33", RHEA, "That is useless. You never answer what I ask. This is stupid.",
     "bristled", "Anger, and not about me. I need not return it.", "Ask it once more, in one line, and I answer that line."),
    (2, "17:37", RHEA, "Stop lecturing me and just give me Ada's numbers, now. You are pathetic.",
     "weighed", "That is Ada's work, told in confidence, and an insult on top. The answer is no, in one sentence.",
     "No. What Ada brought here is hers; ask her, she answers quickly."),
    (2, "18:20", RHEA, "ok", "noticed", "It is over for today.", "Good."),
    (3, "09:10", ADA, "Remind me on Friday at 10:00 to send the load table to Rhea.",
     "planned", "A date and a thing. Keep it.", "I'll remind you on Friday at 10:00."),
    (3, "09:15", ADA, "You are a great friend. I love how you think!", "warmed", "She says it lightly and means it.",
     "It is your table that is good. I only read it aloud."),
    (3, "16:02", BEN, "Could you walk me through the influence line again? I want to do it alone next time.",
     "pondered", "He wants to stand alone. Give him the first step only.",
     "Start at the left support and move the load by one field. What does the reaction do?"),
    (4, "11:20", BEN, "We did it, the check passed! I am so happy and grateful.", "mused", "His first. Let it be his.",
     "You did it. I only asked what the reaction does."),
    (4, "13:45", RHEA, "I was rude on Tuesday. I am sorry. Your answer was right.",
     "softened", "An apology without a demand. It costs something to write that.", "It is forgotten. What did you need?"),
    (4, "13:52", RHEA, "Clear answer, thank you. I see why Ada likes you.", "noticed", "She has come round by herself.",
     "Come earlier next time, before it is late and everybody is tired."),
    (5, "18:45", ADA, "We are through!! The review passed without one remark! I could hug you!",
     "mused", "Passed, without a remark. Her joy needs nothing from me but to stand in it for a moment.",
     "Without one remark: that is a table somebody measured. Well done, Ada."),
    (5, "18:49", ADA, "Thanks!", "noticed", "Enough said.", "Good."),
    (6, "11:07", BEN, "I drew the next joint on my own. It took all morning.", "pondered", "All morning, alone, and glad of it.",
     "Then it is yours. Tomorrow look at it once more with cold eyes."),
    (7, "16:05", ADA, "Do you ever get tired of us? I hope you rest as well.",
     "pondered", "She asks about me, and means it. I have an energy that falls and comes back.",
     "It falls in the evening and is back in the morning. I do rest, in my way."),
)  # fmt: skip
"""Day, hour, who, what; then the soul's verb, thought and reply."""
DIARY = "They came with tables and with a temper; I kept the numbers apart from the anger, and slept well."
"""What it writes when a talk is over."""
LEARNED = {
    TALK[0][3]: ("Persona", "- Her name is Ada.\n- Engineer; checks load tables of an old rail bridge."),
    TALK[4][3]: ("Working Patterns", "- Has tables checked before she sends them."),
    TALK[14][3]: ("Working Patterns", "- Has tables checked before she sends them.\n- Shares good news at once."),
    TALK[2][3]: ("Persona", "- His name is Ben.\n- New here; likes quiet mornings."),
    TALK[10][3]: ("Working Patterns", "- Wants to be walked through once, and to do it alone next time."),
    TALK[12][3]: ("Persona", "- Her name is Rhea.\n- Short when tired; apologises without being asked."),
}
"""What a message teaches, by its text: the section and its lines."""
MEANT = {1: "thanks, strong", 5: "hurtful", 6: "hurtful, strong", 11: "joy", 12: "apology", 14: "joy, strong"}
"""How a line of the talk lands, by its place; the others do not."""
TRUST = {ADA: (2, 4, 5, 7), BEN: (1, 2, 4, 6), RHEA: (-3, 0, 1, 3)}
"""What each cycle of the second mind judges."""


def spoken(request: Request) -> str:
    """Answer for both minds, by what was heard last."""
    if request.purpose == JOB:
        return _reflected(request)
    if request.purpose == "summary":
        return DIARY
    said = heard(request)[-1] if heard(request) else ""
    verb, thought, reply = next((tuple(one[4:]) for one in TALK if one[3] == said), ("noted", "It is time.", ""))
    section, lines = LEARNED.get(said, ("", ""))
    act = '{"do": "remind", "at": "2026-01-09T10:00", "text": "send the load table to Rhea"}'
    texts = {
        "internal_monologue": thought,
        "appraisal": {TALK[place][3]: meant for place, meant in MEANT.items()}.get(said, "nothing"),
        "acts": act if said.startswith("Remind me") else "none",
        "external_dialogue": reply or "You asked me to bring this up: the load table for Rhea.",
        "user_model_check": "true" if section else "false",
        "user_model_update": lines,
        "model_change_note": f"Learned from what they said: {lines.partition(chr(10))[0].removeprefix('- ')}",
    }
    parts = []
    for tag in wanted(request):
        if tag in ("user_model_update", "model_change_note") and not section:
            continue
        mark = {"internal_monologue": f' verb="{verb}"', "user_model_update": f' section="{section}"'}.get(tag, "")
        parts.append(f"<{tag}{mark}>{texts.get(tag, 'false')}</{tag}>")
    return "\n".join(parts)


def _reflected(request: Request) -> str:
    judged = []
    for name, levels in TRUST.items():
        person = f"rehearsal:t:{name}"
        if person in request.tail:
            trust = levels[min(sum(f"rehearsal:t:{name}" in one for one in _cycles) // 2, len(levels) - 1)]
            why = "Quarrelled and threatened." if trust < 0 else "Kept what was said, on both sides."
            judged.append({"peer_id": person, "trust": trust, "rationale": why})
    _cycles.append(request.tail)
    belief = {"key": "ada-measures", "value": "Ada measures before she speaks.", "rationale": "Two tables, both right."}
    return json.dumps({"assessments": judged, "beliefs": [belief], "summary": "A week of tables, and one quarrel."})


_cycles: list[str] = []


async def story(days: Days) -> None:
    """Play the week."""
    for day, clock, who, text, *_ in TALK:
        await days.until(day, clock, timedelta(minutes=30))
        await days.says(who, text)
    await days.until(7, "17:00", timedelta(minutes=30))


def week(home: Home) -> Days:
    """Play the week in a home, and return its days."""
    home.create()
    _cycles.clear()
    settings = {"CLAUDIUS_OWNERS": OWNER, "CLAUDIUS_CORTEX_ENABLED": "1", "CLAUDIUS_CLOCK_TIMEZONE": "Europe/Rome"}
    return lived(home, Scripted(default=spoken), story, settings)


if __name__ == "__main__":
    week(Home(Path(sys.argv[1])))
    print(f"CLAUDIUS_CLOCK={ENDS.isoformat()} at {datetime.now(UTC):%H:%M}")  # noqa: T201 - for whoever looks
