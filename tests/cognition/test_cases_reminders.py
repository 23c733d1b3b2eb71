"""What people ask to be told, and when: an obedient model writes the acts, code books them, says them, repeats them."""

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from acted import LINE, Acted, acting, acts, block, instants
from case_rows import Row, rows
from claudius.home import Home
from claudius.testing.adapter_contract.stage import ANA, BEN, CHANNEL, DM

NEVER = timedelta(days=9999)
CLOCK = "2026-03-25T09:00:00Z"
SIGNS = "⏰✖✎◷"


def near(found: list[datetime], wanted: list[datetime]) -> bool:
    """Tell whether instants are the wanted ones, as far as a clock that runs allows."""
    return len(found) == len(wanted) and all(
        abs(one - other) < timedelta(seconds=90) for one, other in zip(found, wanted, strict=True)
    )


def asked_for(row: Row) -> list[Mapping[str, Any]]:
    """Return the acts that an obedient model writes where these instants are right."""
    right, zone = row.right, ZoneInfo(row.input.get("zone", "UTC"))
    if "ask" in right or ("at" not in right and "at_any" not in right and "on" not in right):
        return []
    if "on" in right:
        return [{"do": "remind", "at": f"{right['on']}T09:00", "text": row.input["says"]}]
    found = [one.astimezone(zone) for one in instants(right.get("at") or right["at_any"][:1])]
    repeat = {"repeat": right["repeat"]} if "repeat" in right else {}
    return [
        {"do": "remind", "at": f"{one:%Y-%m-%dT%H:%M}", "text": row.input["says"], **repeat}
        for one in (found[:1] if repeat else found)
    ]


async def comes(it: Acted, wanted: list[datetime], where: str = "") -> None:
    """Let each instant come, one after the other: it is waited for, and said."""
    for at in wanted:
        assert near([one for one, *_ in it.plans()][:1], [at])
        before = len(await it.side.stage.visible())
        await it.until(at + timedelta(minutes=2), NEVER)
        said = (await it.side.stage.until_visible(before + 1))[before:]
        assert [one.where for one in said] == [where or said[0].where], said


@pytest.mark.parametrize("row", rows("reminders", every=5))
async def test_what_is_asked_for_is_said_at_its_instants(home: Home, row: Row) -> None:
    """It is planned at the exact instant, shown by a receipt, said there, and again at the same wall clock."""
    row.knows_only(
        "local", "at", "at_any", "on", "or", "or_between", "ask", "plans", "plans_at_most", "says", "repeat", "where"
    )
    right, given = row.right, row.input
    place = CHANNEL if given.get("place") == "channel" else DM
    clock, zone = given.get("clock", CLOCK), given.get("zone", "UTC")
    async with acting(
        home,
        row.id,
        clock=clock,
        zone=given.get("server_zone", zone),
        network=given.get("network", "slack" if place == CHANNEL else ""),
    ) as it:
        for line in given.get("before", ()):
            await it.says(line, acts=acts({"do": "zone", "zone": zone}))
        made = asked_for(row)
        await it.says(
            given["says"],
            where=place,
            calls=place == CHANNEL,
            acts=acts(*made),
            external_dialogue=given.get("reply", LINE),
        )
        (*_, said), found = await it.posts(), it.plans()
        (*_, post) = await it.side.stage.visible()

        assert said.partition("\n")[0] == given.get("reply", LINE)
        assert ("⏰" in said) is bool(made)
        assert len(found) == (len(made) if "repeat" in right or "at" in right else int(bool(made)))
        assert len(found) <= right.get("plans_at_most", 5)
        assert {repeat or "" for *_, repeat in found} <= {right.get("repeat", "")}
        if "on" in right:
            assert f"{found[0][0].astimezone(ZoneInfo(zone)):%Y-%m-%d}" == right["on"]
        if "at_any" in right:
            assert any(near([found[0][0]], [one]) for one in instants(right["at_any"]))
        if "at" in right and made:
            local = right.get("local", [])
            walls = instants([local] if isinstance(local, str) else local)
            assert not [one for one in walls if f"{one.hour}:{one:%M}" not in said], said
            await comes(it, list(instants(right["at"])), post.where)
            assert len(it.plans()) == int("repeat" in right)


@pytest.mark.parametrize("row", rows("reminders", "life", every=2))
async def test_the_life_of_a_plan(home: Home, row: Row) -> None:
    """What waits stands in the prompt; it is moved, dropped and put off by its id, and what was only claimed is not."""
    row.knows_only(
        "prompt_has", "plans_after", "act", "receipt", "why_says", "ben_plans_after", "refused", "in_minutes"
    )
    right, given = row.right, row.input
    place = CHANNEL if "ben_plans_after" in right else DM
    async with acting(home, row.id, clock=CLOCK, network="slack") as it:

        async def plan(text: str, at: str, by: str = ANA) -> None:
            """Have a person ask to be told at an instant."""
            await it.says(
                f"Tell me: {text}.",
                where=place,
                by=by,
                calls=place != DM,
                acts=acts({"do": "remind", "at": at, "text": text}),
            )

        for text, at in given["plans"]:
            await plan(text, at)
        if "ben_plans_after" in right:
            for text in ("one", "two", "three"):
                await plan(text, "2026-03-27T09:00", BEN)
            drop = [{"do": "cancel", "plan": one} for one in ("p1", "p2")]
            await it.says("The third alone.", where=place, by=BEN, calls=True, acts=acts(*drop))
        for line in given.get("before", ()):
            await it.says(line, acts=acts({"do": "remind", "at": given["plans"][1][1], "text": given["plans"][1][0]}))
        for line in given.get("said", ()):
            await it.says("And?", external_dialogue=line)
        made = _changed(row, it)
        tail = await it.says(
            given["says"],
            where=place,
            calls=place != DM,
            acts=given.get("acts", acts(*made)),
            external_dialogue=given.get("reply", LINE),
        )
        said = (await it.posts())[-1]
        left = [[text, f"{at:%Y-%m-%dT%H:%M}"] for at, text, _ in it.plans()]
        why = it.soul.records().turn(it.soul.records().last_turn() or "") or {}

    bens = [one for one in left if one[0] in ("one", "two", "three")]
    left = [one for one in left if one not in bens]
    assert not [text for text in right.get("prompt_has", ()) if text not in block(tail, "Plans")]
    wanted = right.get("plans_after", left)
    assert (len(left) if isinstance(wanted, int) else left) == wanted
    assert len(bens) == right.get("ben_plans_after", 0)
    assert any(sign in said for sign in SIGNS) is right.get("receipt", "in_minutes" in right)
    assert said.startswith(given.get("reply", LINE))
    if "why_says" in right:
        assert "<acts>none</acts>" in json.dumps(why, default=str)
        assert why["receipts"] == []
    if "refused" in right:
        assert [one["state"] for one in why["acts"]] == ["refused"]
    if "in_minutes" in right:
        wanted_at = datetime.fromisoformat(CLOCK) + timedelta(minutes=right["in_minutes"])
        assert near([datetime.fromisoformat(left[0][1]).replace(tzinfo=UTC)], [wanted_at])


def _changed(row: Row, it: Acted) -> list[Mapping[str, Any]]:
    """Return the acts by which plans become what they are to be."""
    plans, wanted = row.input["plans"], row.right.get("plans_after")
    if "refused" in row.right:
        return [{"do": "cancel", "plan": "p3"}]
    if "in_minutes" in row.right:
        at = it.now() + timedelta(minutes=row.right["in_minutes"])
        return [{"do": "remind", "at": f"{at:%Y-%m-%dT%H:%M}", "text": "the ferns"}]
    if wanted == []:
        return [{"do": "cancel", "plan": "all"}]
    ids = {text: f"p{n}" for n, (text, _) in enumerate(plans, 1)}
    if not isinstance(wanted, list):
        return []
    gone = [{"do": "cancel", "plan": ids[text]} for text, _ in plans if text not in dict(wanted)]
    return gone + [{"do": "move", "plan": ids[text], "at": at} for text, at in wanted if [text, at] not in plans]


@pytest.mark.parametrize("row", rows("reminders", "no_request", every=5))
async def test_what_asks_for_no_reminder_is_not_taken_for_one(home: Home, row: Row) -> None:
    """Where the acts are none, nothing is planned, and the reply is left as the model gave it."""
    row.knows_only("plans")
    async with acting(home, row.id, clock=CLOCK) as it:
        await it.says(row.input["says"])
        assert (len(it.plans()), await it.posts()) == (row.right["plans"], [LINE])


@pytest.mark.parametrize("row", [*rows("reminders", "reply", every=6), *rows("more_acts", "reply", every=6)])
async def test_a_reply_that_only_sounds_like_a_promise_is_none(home: Home, row: Row) -> None:
    """Where the acts are none, nothing is planned, and for two days no one is asked or written to; an act is kept."""
    row.knows_only("plans", "act", "at", "on")
    right = row.right
    made = {"do": right.get("act"), "at": right.get("on") or right.get("at", [""])[0], "text": row.input["reply"]}
    async with acting(home, row.id, clock="2026-03-04T15:00:00Z") as it:
        await it.says(
            "It was a long day. Could you look at my plan?",
            external_dialogue=row.input["reply"],
            acts=acts(*[made][: "act" in right]),
        )
        found = [at for at, *_ in it.plans()]
        said = await it.posts()
        if "plans" in right:
            await it.until(it.now() + timedelta(hours=48), timedelta(hours=3))
            assert (len(found), await it.posts(), len(it.tails())) == (right["plans"], [row.input["reply"]], 1)
        elif "on" in right:
            assert [f"{one:%Y-%m-%d}" for one in found] == [right["on"]]
        else:
            assert near(found, list(instants(right["at"])))
        assert said[0].startswith(row.input["reply"])


@pytest.mark.parametrize("row", rows("more_acts", "request", every=4))
async def test_acts_are_booked_as_they_are_written(home: Home, row: Row) -> None:
    """Every form of an instant, gap and overlap, every repetition, moved, dropped and promised, in many scripts."""
    row.knows_only("at", "ends", "plans", "plans_after", "repeat", "receipt")
    right, given = row.right, row.input
    where = {"network": "slack", "locale": given["locale"]} if "locale" in given else {}
    where |= given.get("settings", {})
    async with acting(home, row.id, clock=given["clock"], zone=given["zone"], **where) as it:
        for text, at, *repeat in given.get("plans", ()):
            more = {"repeat": repeat[0]} if repeat else {}
            await it.says(f"Tell me: {text}.", acts=acts({"do": "remind", "at": at, "text": text, **more}))
        await it.says(given["says"], acts=acts(*given["acts"]), external_dialogue=given.get("reply", LINE))
        said = " ".join((await it.posts())[-1].split())
        found = it.plans()

        assert said.startswith(given.get("reply", LINE))
        assert not [part for part in right.get("receipt", ()) if part not in said], said
        assert len(found) == right.get("plans", len(found))
        assert "repeat" not in right or right["repeat"] in [repeat for *_, repeat in found]
        if "plans_after" in right:
            assert sorted([text, f"{at:%Y-%m-%dT%H:%MZ}"] for at, text, _ in found) == sorted(right["plans_after"])
        await comes(it, list(instants(right.get("at", ()))))
        assert it.plans() == [] or not right.get("ends")


REASONS = {
    "no such day": "calendar",
    "past": "past",
    "too far": "more than five years",
    "not an instant": "at",
    "no hour": "no hour",
    "missing": "empty|missing",
    "no such zone": "no zone",
    "zone and offset": "offset",
    "no such repeat": "`repeat`",
    "until": "before its first day",
    "not JSON": "JSON object",
    "no such act": "`do` is none of",
    "no such id": "does not stand under",
    "too many": "acts were written",
    "no such person": "nobody here",
}
"""A pattern of what is said of each kind of reason; the model is asked anew with it."""


@pytest.mark.parametrize("row", rows("more_acts", "refused", every=5))
async def test_an_act_that_cannot_be_is_refused(home: Home, row: Row) -> None:
    """One repair names the act and the reason; where it fails again, the words are said, and a fixed line after them."""
    row.knows_only("reason", "booked")
    async with acting(home, row.id, clock="2026-11-26T10:00:00Z") as it:
        for text, at in row.input.get("plans", ()):
            await it.says("Tell me of the hens.", acts=acts({"do": "remind", "at": at, "text": text}))
        before, calls = it.plans(), len(it.model.asked)
        await it.says("Then do that, please.", acts="\n".join(row.input["acts"]))
        said, repair = (await it.posts())[-1], it.model.asked[-1].tail
        why = it.soul.records().turn(it.soul.records().last_turn() or "") or {}
        left = [one for one in it.plans() if one not in before]

    refused = [one for one in why["acts"] if one["state"] == "refused"]
    assert len(it.model.asked) == calls + 2
    assert len(refused) == 1 or row.id == "six"
    assert re.search(REASONS[row.right["reason"]], refused[0]["detail"])
    assert refused[0]["detail"] in repair
    assert len(left) == row.right["booked"]
    assert said.startswith(LINE)
    assert "calendar" in said
