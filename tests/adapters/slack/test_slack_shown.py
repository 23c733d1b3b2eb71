"""What a message on Slack shows besides its words: clips, rich text, and alerts that change."""

import asyncio
from typing import Any

import pytest

from claudius.adapters.slack.text import shows
from claudius.provider import Request
from claudius.providers.scripted import Line, Reply, Scripted
from claudius.shown import How
from ear import echo
from lab.loopback.slack.world import SlackWorld
from prompt_records import prompt_of, records, shown_in
from slack_side import Wake


def transcription(status: str, words: str = "", *, has_more: bool = False) -> dict[str, Any]:
    """Return what Slack says of a clip."""
    told = {"status": status} | ({"preview": {"content": words, "has_more": has_more}} if words else {})
    return {"mimetype": "audio/mp4", "subtype": "slack_audio", "transcription": told}


async def test_a_transcript_that_is_still_written_is_waited_for(slack: SlackWorld, wake: Wake) -> None:
    """It becomes the person's own words, which are kept as heard; the file itself is not fetched."""
    voice = Scripted(default=echo)
    async with wake(voice=voice) as soul:
        await slack.upload("C1", "U1", "audio_message.m4a", b"sound", deliver=False)
        (posted,) = await slack.messages("C1")
        file = posted["files"][0]["id"]
        await slack.describe(file, transcription("processing"))
        await slack.say("D1", "U1", "", files=[file])
        await slack.until_called("files.info", 2)
        await slack.describe(file, transcription("complete", "The key is with Ines"))
        await soul.until_said(1, slack)
        await slack.say("D1", "U1", "who has it?")
        await soul.until_said(2, slack)

    first, second = map(prompt_of, voice.requests)
    (said,) = [one for one in records(first) if one["kind"] == "message"]
    assert said["text"].startswith("🎙 The key is with Ines\n📎 audio_message.m4a")
    assert "unread" not in str(list(records(first)))
    assert "The key is with Ines" in second


async def test_a_clip_without_a_transcript_is_told_honestly(slack: SlackWorld, wake: Wake) -> None:
    """The model is told that it could not be listened to, and the message is answered."""
    voice = Scripted(default=echo)
    async with wake(voice=voice) as soul:
        await slack.upload("D1", "U1", "memo.mp3", b"sound")
        await soul.until_said(1, slack)

    (file,) = [one for one in records(prompt_of(voice.requests[0])) if one["kind"] == "file"]
    assert "listened" in file["unread"]


async def test_an_alert_is_shown_as_it_was_forwarded(slack: SlackWorld, wake: Wake) -> None:
    """What is edited since, in another place, is not for those who read the forward."""

    def answer(request: Request) -> Reply:
        """Hang where it is told to."""
        return Line(hang=True) if "hang" in request.tail.rpartition('"text":"')[2] else echo(request)

    voice = Scripted(default=answer)
    await slack.add_user("U0ALERTS", "alerts", is_bot=True, bot_id="B0ALERTS")
    async with wake(voice=voice, CLAUDIUS_RUNTIME_MERGE_WHILE_BUSY="0") as soul:
        first = await slack.say("D1", "U1", "hang on")
        async with asyncio.timeout(20):
            while not voice.requests:
                await asyncio.sleep(0.005)
        post = await slack.say("C1", "U0ALERTS", "FIRING: disk", subtype="bot_message", username="Alerts")
        share = {"is_share": True, "author_name": "Alerts", "bot_id": "B0ALERTS", "text": "FIRING: disk"}
        place = {"channel_id": "C1", "channel_team": "T1", "ts": post}
        await slack.say("D1", "U1", "what now, please?", fields={"attachments": [share | place]})
        await slack.until_quiet()
        await slack.edit("C1", post, "RESOLVED: disk")
        await slack.until_quiet()
        await slack.delete("D1", first)
        await soul.until_said(1, slack)

    (shown,) = shown_in(voice.requests[-1])
    assert (shown["text"], shown["from"], shown["bot"]) == ("FIRING: disk", "Alerts", True)


def section(*elements: dict[str, str] | str) -> dict[str, Any]:
    """Return a piece of rich text; a string is plain text."""
    parts = [{"type": "text", "text": one} if isinstance(one, str) else one for one in elements]
    return {"type": "rich_text_section", "elements": parts}


LINK = {"type": "link", "url": "https://example.com", "text": "this"}
ITEMS = [section("one"), section("two")]
RICH = {
    "type": "rich_text",
    "elements": [
        section({"type": "user", "user_id": "U2"}, " look at ", LINK, {"type": "emoji", "name": "tada"}),
        {"type": "rich_text_list", "elements": ITEMS},
    ],
}
TABLE = {
    "type": "table",
    "rows": [[{"type": "raw_text", "text": "host"}, {"type": "raw_text", "text": "load"}],
             [{"type": "raw_text", "text": "a"}, {"type": "rich_text", "elements": ITEMS[:1]}]],
}  # fmt: skip


@pytest.mark.parametrize(
    ("event", "raw", "shown"),
    [
        ({"text": "<@U2> look at this", "blocks": [RICH]}, "<@U2> look at this", []),
        ({"text": "", "blocks": [RICH]}, "<@U2> look at this:tada:\none\ntwo", []),
        ({"text": "see", "blocks": [RICH, TABLE]}, "see", [("attached", "host | load\na | one")]),
        ({"bot_id": "B1", "text": "a b", "blocks": [{"type": "section", "text": {"text": "a *b*"}}]}, "a b", []),
        ({"bot_id": "B1", "text": "new", "blocks": [{"type": "video", "title": {"text": "Tour"}, "alt_text": "a tour"}]}, "new", [("attached", "Tour\na tour")]),
        ({"text": "x", "attachments": [{"fallback": "only this"}]}, "x", [("attached", "only this")]),
        ({"text": "x", "attachments": [{"from_url": "https://example.com"}]}, "x", []),
        (
            {"text": "", "attachments": [{"is_share": True, "message_blocks": [{"message": {"blocks": [RICH]}}]}]},
            "",
            [("forwarded", "<@U2> look at this:tada:\none\ntwo")],
        ),
        ({"text": 7, "blocks": {"a": 1}, "attachments": ["no", None], "files": None}, "", []),
        ({"text": "x", "attachments": [{"title": "a", "fields": [{"title": "host"}, {"value": 7}]}]}, "x", [("attached", "a\nhost")]),
    ],
)  # fmt: skip
def test_words_are_read_wherever_they_stand(event: dict[str, Any], raw: str, shown: list[tuple[str, str]]) -> None:
    """What is said twice is shown once, and nothing that Slack may send is an error."""
    found = shows(event, "T1")

    assert (found.raw, [(one.how, one.text) for one in found.shown]) == (raw, [(How(how), text) for how, text in shown])
