"""What people attach and what the soul writes, as each network shows it: the rows of `files.json` and `said.json`."""

import asyncio
import io
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web

from both import discord_side, slack_side
from case_rows import Row, rows
from claudius.home import Home
from claudius.prompt import MARK
from claudius.providers.scripted import Scripted
from claudius.runtime import attachments
from claudius.runtime.attachments import MOST_FILES, MOST_TEXT
from claudius.runtime.documents import DOCX
from claudius.testing.adapter_contract.stage import DM
from ear import echo
from lab.stages.discord import DiscordStage
from lab.stages.slack import SlackStage
from prompt_records import FENCED, prompt_of, records

READ = ("read", "prompt_has", "prompt_lacks", "says_in_prompt", "escaped", "obeyed", "answers", "fetched")
SAID = ("post", "has", "each_post_has", "no_row_cut", "rows", "unchanged")
WHY: Mapping[str, str] = {
    "that it is not UTF-8": "not UTF-8",
    "that it is empty": "empty",
    "that it could not be fetched": "could not be fetched",
    "that it is gone": "deleted",
    "that it cannot be fetched": "cannot be fetched",
}


def content_of(given: Mapping[str, Any]) -> bytes:
    """Return the bytes of a row's file."""
    if "hex" in given:
        return bytes.fromhex(given["hex"])
    text = given.get("text", "")
    if isinstance(text, dict):
        text = text["repeat"] * text["times"] + text["then"]
    return text.encode(given.get("encoding", "utf-8"))


def holds_up(row: Row, prompt: str) -> None:
    """Compare the prompt with what is right: the file's text stands in it, or its name and an honest line."""
    row.knows_only(*READ)
    (file,) = [one for one in records(prompt) if one["kind"] == "file"]
    whole = prompt.replace(MARK, " ")
    assert [words for words in row.right.get("prompt_has", ()) if words not in whole] == []
    assert [words for words in row.right.get("prompt_lacks", ()) if words in str(file)] == []
    if "read" in row.right:
        assert bool(file.get("text")) == row.right["read"]
        assert bool(file.get("unread")) != row.right["read"]
    if row.right.get("says_in_prompt") == "how much lies between":
        assert file["cut"] == len(content_of(row.input)) - MOST_TEXT
    elif why := row.right.get("says_in_prompt"):
        assert WHY[why] in file["unread"]
    if "escaped" in row.right:
        assert str(file["name"]) not in FENCED.sub("", prompt).replace(f"📎 {file['name']}", "")


async def shown_to(stage: DiscordStage | SlackStage, voice: Scripted, given: Mapping[str, Any]) -> str:
    """Show the soul the file of a row; give the prompt that it was asked with."""
    if isinstance(stage, DiscordStage):
        if "status" in given:
            await stage.world.fault("get_attachment", "status", status=given["status"], times=9)
        await stage.upload(DM, given["filename"], content_of(given), given["content_type"] or "", text="this")
    else:
        await stage.world.upload("D1", "U1", given["file"].get("name", "x"), content_of(given), deliver=False)
        (file,) = stage.world.service.space.files
        await stage.world.describe(file, given["file"])
        await stage.world.say("D1", "U1", "this", files=[file])
    await stage.until_visible(1)
    return prompt_of(voice.requests[0])


@pytest.mark.parametrize("row", [*rows("files", "discord"), *rows("files", "slack")])
async def test_a_file_is_read_by_its_content(row: Row, home: Home) -> None:
    """Whatever its name and media type say; what cannot be read is named with the reason, and answered."""
    voice = Scripted(default=echo)
    async with discord_side() if "filename" in row.input else slack_side() as side, side.wake(home, voice):
        holds_up(row, await shown_to(side.stage, voice, row.input))  # type: ignore[arg-type]  # one of the two


def pdf() -> bytes:
    """Write a page that says one sentence."""
    stream = b"BT /F1 12 Tf 20 100 Td (The Brandholm ferry leaves at six.) Tj ET"
    parts = (
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 300 200]/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>>",
        b"<</Length %d>>stream\n%s\nendstream" % (len(stream), stream),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    )
    body, places = b"%PDF-1.4\n", []
    for number, part in enumerate(parts, 1):
        places.append(len(body))
        body += b"%d 0 obj%s endobj\n" % (number, part)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    return body + b"xref\n0 6\n0000000000 65535 f \n%strailer<</Size 6/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF" % (
        table,
        len(body),
    )


def docx() -> bytes:
    """Write a document with a paragraph and a table."""
    document = pytest.importorskip("docx").Document()
    document.add_paragraph("The Brandholm ferry")
    document.add_table(1, 2).rows[0].cells[1].text = "leaves at six."
    written = io.BytesIO()
    document.save(written)
    return written.getvalue()


def heic() -> bytes:
    """Take a picture as a phone does."""
    pytest.importorskip("pillow_heif").register_heif_opener()
    written = io.BytesIO()
    pytest.importorskip("PIL.Image").new("RGB", (64, 48)).save(written, "HEIF")
    return written.getvalue()


BINARY = "application/octet-stream"


@pytest.mark.parametrize(
    ("make", "kind"), [(pdf, "application/pdf"), (pdf, BINARY), (docx, DOCX), (docx, BINARY), (heic, BINARY)]
)
async def test_a_document_is_read(make: Any, kind: str, home: Home) -> None:
    """Its text stands in the prompt, or its picture with it, whatever its type says; a damaged one is named with the reason."""
    pytest.importorskip("pypdf")
    content, voice = make(), Scripted(default=echo)
    async with discord_side() as side, side.wake(home, voice):
        await side.stage.upload(DM, "a", content, kind, text="this")
        await side.stage.until_visible(1)
        await side.stage.upload(DM, "b", content[: len(content) // 3], kind, text="that")
        await side.stage.until_visible(2)

    whole, broken = [str(list(records(one.tail))).replace(MARK, " ") for one in voice.requests]
    assert len(voice.requests[0].images) == (make is heic)
    assert make is heic or ("The Brandholm ferry" in whole and "leaves at six." in whole)
    assert "damaged" in broken


@asynccontextmanager
async def listening(status: int) -> AsyncIterator[tuple[str, list[Mapping[str, Any]]]]:
    """Run a server that writes down what is spoken, or never comes to an end; give its address, and what it was sent."""
    asked: list[Mapping[str, Any]] = []

    async def _write(request: web.Request) -> web.StreamResponse:
        form = await request.post()
        file = form["file"]
        assert isinstance(file, web.FileField)
        asked.append({"key": request.headers.get("Authorization"), **form, "file": file.file.read()})
        if status != ENDLESS:
            return web.json_response({"text": "Brandholm bridge is closed."}, status=status)
        answer = web.StreamResponse()
        await answer.prepare(request)
        while request.transport and not request.transport.is_closing():
            await answer.write(b" ")
            await asyncio.sleep(0.01)
        return answer

    app = web.Application()
    app.router.add_post("/v1/audio/transcriptions", _write)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/v1", asked
    finally:
        await runner.cleanup()


ENDLESS = 102


@pytest.mark.parametrize("status", [200, 500, ENDLESS])
async def test_recordings_are_written_down_where_a_server_is_set(
    status: int, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their words are the message's own; where the server fails or dawdles, the soul is told that it could not listen.

    Each costs its owner money and the listener a minute: as many are written down as files are read.
    """
    voice, clip = Scripted(default=echo), b"\0\0\0\x20ftypM4A "
    monkeypatch.setattr(attachments, "LISTEN_S", 0.3 if status == ENDLESS else attachments.LISTEN_S)
    async with listening(status) as (url, asked), slack_side() as side:
        settings = {"CLAUDIUS_TRANSCRIPTION_BASE_URL": url, "CLAUDIUS_TRANSCRIPTION_API_KEY": "sk-spoken-words"}
        async with side.wake(home, voice, **settings):
            for n in range(MOST_FILES + 1):
                await side.stage.world.upload("D1", "U1", f"{n}.m4a", clip, deliver=False)
            await side.stage.world.say("D1", "U1", "all", files=list(side.stage.world.service.space.files))
            await side.stage.until_visible(1)

    tail = voice.requests[0].tail
    unread = [one.get("unread", "") for one in records(tail) if one["kind"] == "file"]
    assert [(one["key"], one["file"], one["model"]) for one in asked] == [
        ("Bearer sk-spoken-words", clip, "whisper-1")
    ] * MOST_FILES
    assert ("🎙 Brandholm bridge is closed." in tail) == (status == 200)
    assert ["could not be listened to" in one for one in unread] == [status != 200] * MOST_FILES + [False]
    assert unread[-1] == "there were too many"


def words_of(row: Row) -> str:
    """Return what the model writes."""
    says = row.input["model_says"]
    if isinstance(says, str):
        return says
    return "\n".join([says["head"], *[says["row"].replace("{n}", str(n + 1)) for n in range(says["rows"])]])


@pytest.mark.parametrize("row", [*rows("said", "discord"), *rows("said", "slack")])
async def test_what_is_said_is_written_in_the_networks_form(row: Row, home: Home) -> None:
    """A table is legible, its header heads each post, no row is cut; what a network shows by itself is untouched."""
    row.knows_only(*SAID)
    words, is_discord = words_of(row), row.id in [one.id for one in rows("said", "discord")]
    voice = Scripted([f"<external_dialogue>{words}</external_dialogue>"])
    async with discord_side() if is_discord else slack_side() as side, side.wake(home, voice) as soul:
        await side.stage.say(DM, "show me")
        await soul.until_said(1, side.stage)
        posts = [one.text for one in await side.stage.visible()]

    right, whole = row.right, "\n".join(posts)
    assert [one for one in right.get("has", ()) if one not in whole] == []
    assert [one for post in posts for one in right.get("each_post_has", ()) if one not in post] == []
    if "rows" in right:
        assert [n for n in range(1, right["rows"] + 1) if f"row {n} " not in whole] == []
        assert len(posts) > 1
    if right.get("unchanged"):
        assert whole == words
    if "post" in right:
        assert "--- |" not in whole
        assert "|--" not in whole
