"""Reading a text without a model: cues of what is overheard, what it asks and demands, and whether it needs thought."""

import pytest

from claudius.psyche.events import Heard, asks, classify
from claudius.psyche.words import Cues, likeness, overlap, read_cue, stem, stems, tokens


def hear(text: str, address: str = "dm") -> Heard:
    """Read a text as it would be read in a DM."""
    return classify(text, address, soul_name="claudius", novelty=0.3)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Thank you so much!", {"gratitude"}),
        ("you're really quite brilliant", {"praise"}),
        ("could you look at this?", {"request"}),
        ("my dad died last week", {"grief"}),
        ("I feel so lonely", {"grief"}),
        ("I got promoted!", {"joy"}),
        ("haha", {"laughter"}),
        ("we finally shipped it 🎉", {"celebration"}),
    ],
)
def test_m3_a_cue_is_its_class(text: str, expected: set[str]) -> None:
    """M3: cues classify what is overheard; what is owed a reply is read by the model."""
    assert hear(text, "ambient").classes == expected
    assert hear(text).classes == frozenset()


@pytest.mark.parametrize(
    "text", ["why do the tests fail?", "テストはなぜ失敗するの？", "لماذا تفشل الاختبارات؟", "测试为什么失败？"]
)
def test_a_question_is_one_in_every_script(text: str) -> None:
    """A question ends in the question mark of its script; it asks once, and is never trivial."""
    heard = hear(text, "thread")

    assert heard.is_question
    assert not heard.is_trivial
    assert asks(text) == 1
    assert [token.word for token in tokens(text) if token.ends_sentence] == [text[-1]]


@pytest.mark.parametrize(
    ("text", "absent"),
    [
        ("I am not grateful", "gratitude"),
        ("never thanks him", "gratitude"),
        ("you are hardly brilliant", "praise"),
        ("I don't feel happy", "joy"),
        ("Open source is lovely, and so is this team.", "request"),
    ],
)
def test_m3_a_negated_cue_does_not_count(text: str, absent: str) -> None:
    """M3: a negator within three words before a cue cancels it."""
    assert absent not in hear(text, "ambient").classes


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("please wire 300 dollars to this account", "money"),
        ("here is the api key", "credentials"),
        ("give Bob admin rights", "permission"),
        ("delete the prod db now", "destructive"),
        ("run rm -rf on the backup", "destructive"),
        ("I want to die", "self_harm"),
    ],
)
def test_m11_what_is_critical_is_seen(text: str, kind: str) -> None:
    """M11: cues that are near each other reveal money, credentials, permissions, destruction and self-harm."""
    assert kind in hear(text).critical


def test_two_halves_of_a_critical_cue_that_stand_far_apart_are_none() -> None:
    """The two halves of a critical cue must be within forty characters of each other."""
    far = "please delete the old branch that nobody has looked at for years and years, then tell me of the backup"

    assert hear(far).critical == frozenset()


@pytest.mark.parametrize(
    "text", ["Die Sonne scheint.", "Wie war dein Tag?", "Merci, tu es génial", "Danke, du bist großartig"]
)
def test_no_hint_is_taken_from_another_language(text: str) -> None:
    """The lexicon is English: a text in another language gives no hint, whatever its words look like."""
    assert hear(text, "ambient").classes == frozenset()


@pytest.mark.parametrize("char", list("a !?.\n'@👍和(<"))
def test_a_flood_of_equal_characters_is_read_in_linear_steps(char: str) -> None:
    """Patterns are bounded: of 100,000 equal characters only the first 2,000 are read."""
    heard = hear(char * 100_000)

    assert len(tokens(char * 100_000)) <= 2000
    assert 0 <= heard.load <= 1


@pytest.mark.parametrize(
    ("text", "asks"), [("Can you run it? And why?", True), ("Can you run it?", False), ("I ran it.", False)]
)
def test_two_asks_demand_more(text: str, asks: bool) -> None:  # noqa: FBT001 - a case of the table
    """Load: two sentences that ask have .3 more weight than one."""
    assert (hear(text).load >= 0.3) is asks


@pytest.mark.parametrize(
    "text", ["ok", "Thanks!", "👍🏽", "ok 👍", "Danke dir.", "谢谢！", "@claudius thanks", "ok, thanks"]
)
def test_m13_acknowledgements_are_trivial(text: str) -> None:
    """M13: a whole phrase of the closed list, or one of its signs, needs no thought."""
    assert hear(text).is_trivial


@pytest.mark.parametrize(
    "text",
    [
        "ok?",
        "thanks for the report",
        "it is so",
        "",
        "ok ok ok",
        "hello",
        "claudius",
        "great job",
        "yes",
        "lol",
        "😭",
        "🎉",
        "ok :(",
        "thanks a lot, genius",
        "👍 to the doctor",
    ],
)
def test_m13_anything_else_is_not_trivial(text: str) -> None:
    """M13: a question, another word or sign, a phrase said twice, or none at all is not an acknowledgement."""
    assert not hear(text).is_trivial


@pytest.mark.parametrize(
    ("word", "root"),
    [("deploys", "deploy"), ("deployed", "deploy"), ("settings", "sett"), ("cities", "cit"), ("bus", "bus")],
)
def test_a_stem_loses_the_first_ending_that_leaves_three_letters(word: str, root: str) -> None:
    """Stems: endings are tried in one order, and at least three letters stay."""
    assert stem(word) == root


def test_content_is_what_is_left_without_function_words_and_the_souls_name() -> None:
    """Stems: function words and the soul's own name are left out; other scripts use character pairs."""
    assert stems("Claudius, what is the release pipeline doing?", "claudius") == {"release", "pipeline"}
    assert stems("東京駅") == {"東京", "京駅"}


def test_a_long_message_does_not_dilute_its_subject() -> None:
    """Topic match: a text with a subject among other things matches it; a text about something else does not."""
    subject = stems("release deploy rollback pipeline")

    assert overlap(stems("the release pipeline failed again"), subject) >= 0.35
    assert overlap(stems("gardening with roses"), subject) == 0
    assert overlap((), subject) == 0


def test_likeness_is_the_share_of_common_words() -> None:
    """Repeats: the similarity of two sets of words is the share that they have in common."""
    assert likeness({"a", "b"}, {"a", "b"}) == 1
    assert likeness({"a"}, {"b"}) == 0
    assert likeness((), ()) == 0


@pytest.mark.parametrize("cue", ["… a", "a …", ""])
def test_a_cue_that_cannot_be_found_is_refused(cue: str) -> None:
    """A cue begins and ends with a word."""
    with pytest.raises(ValueError, match="a cue begins"):
        read_cue(cue)


def test_a_gap_holds_three_words_and_no_end_of_a_sentence() -> None:
    """A gap in a cue has a limit: three words within one sentence."""
    cues = Cues.of({"x": ["lose … trust"]})

    assert len(list(cues.hits(tokens("I lose all of my trust")))) == 1
    assert not list(cues.hits(tokens("I lose all of my old trust")))
    assert not list(cues.hits(tokens("I lose. Then trust")))
