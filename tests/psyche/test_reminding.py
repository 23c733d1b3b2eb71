"""Requests for a reminder, undertakings and refusals are told from other talk, in English and German."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claudius.psyche.reminding import asks_time, own_words, refuses, request_in, statements, undertaking_in


@pytest.mark.parametrize(
    "text",
    [
        "Claudius, remind me at 5.",
        "hey, remind me at 5",
        "Hi! Remind me at 5 please.",
        "Would you please remind me at 5?",
        "I need you to remind me at 5.",
        "I'd like you to remind me at 5",
        "I want to be reminded at 5.",
        "Tomorrow at 9, remind me to call.",
        "At 9 tomorrow remind me to call Bob",
        "Tomorrow remind me to call Bob at 9",
        "In 20 minutes remind me to check the oven",
        "Don't forget to remind me at 5.",
        "Can't you remind me at 5?",
        "Why don't you remind me at 5?",
        "It'd be great if you could remind me at 5.",
        "Set an alarm for 7 am.",
        "Set a timer for 10 minutes.",
        "Give me a nudge at 4.",
        "Could you set me a reminder for tomorrow at 9?",
        "Also remind me at 6.",
        "And remind me at 6 to leave.",
        "On Friday at 9 please remind us about the meeting",
        "when it's 5pm remind me to leave",
        "If you could, remind me at 5.",
        "Please, remind me at 5",
        "Please do remind me at 5.",
        "Will you remind me at 5?",
        "Remind me when it's 5pm.",
        "I forgot my bag; remind me at 5 to fetch it.",
        "I was late today. Remind me at 5.",
        "Thanks! Now remind me at 5.",
        "Erinner mich um 5.",
        "Erinnere uns morgen um 9.",
        "Erinnern Sie mich bitte um 9.",
        "Bitte weck mich um 7.",
        "Kannst du mir um 5 Bescheid sagen?",
        "Sag mir um 5 Bescheid.",
        "Du kannst mich um 5 erinnern.",
        "Ich möchte um 5 erinnert werden.",
        "Würdest du mich bitte morgen um 9 an den Zahnarzt erinnern?",
        "Erinnerst du mich um 5?",
        "Erinnerst du mich bitte morgen an den Müll?",
        "Magst du mich morgen erinnern?",
        "Morgen um 9 bitte erinnern!",
        "Denk bitte um 5 dran, mich zu erinnern.",
        "Vergiss nicht, mich um 5 zu erinnern.",
        "Bitte um 5 Uhr erinnern.",
    ],
)
def test_a_request_is_one_however_it_is_put(text: str) -> None:
    """Politeness, a name, a time in front and a noun ("set an alarm") make no difference."""
    assert request_in(text)


@pytest.mark.parametrize(
    "text",
    [
        "Remind me why we chose oak.",
        "You remind me of my mother, she was born in May.",
        "She reminded me at 9 yesterday.",
        "Don't remind me tomorrow at 9.",
        "Please don't remind me at 5.",
        "My phone will remind me at 5.",
        "Sam can remind me tomorrow.",
        "I don't need a reminder at 5.",
        "No need to remind me at 5 pm.",
        "You don't have to remind me at 5.",
        "Did you remind me at 5?",
        "That reminds me: the bill is due tomorrow.",
        "You said you would remind me at 5.",
        "I asked Sam to remind me at 9.",
        "He will ping me tomorrow at nine.",
        "Remind me what we agreed on Friday.",
        "Never remind me of Friday again.",
        "Stop reminding me at 9.",
        "I will remind you at 9.",
        "The songs remind me of last Friday.",
        "Ich erinnere mich an Freitag um 9.",
        "Erinnere mich nicht um 9.",
        "Du musst mich nicht um 9 erinnern.",
        "Kannst du dich an Freitag erinnern?",
        "Wir erinnern uns an den 3. Mai.",
        "Der Wecker hat mich um 7 geweckt.",
        "Ich brauche keine Erinnerung um 5.",
        "Das erinnert mich an morgen.",
        "Meine Frau erinnert mich um 9.",
        "Who reminded us tomorrow?",
        "They wake me at 7 every day.",
        "The dog will wake me at six.",
        "It would remind me at 5 if it worked.",
        "What would remind me of tomorrow?",
        "Set the table at 6.",
        "How do alarms work at 6?",
        "Do reminders work at 9?",
        "How do I set a reminder?",
        "Can you set reminders?",
        "Can you remind people?",
    ],
)
def test_other_talk_of_reminding_is_no_request(text: str) -> None:
    """Remembering, what others do, what was said or done before, and a request not to remind ask for nothing."""
    assert request_in(text) == ""


@pytest.mark.parametrize(
    "text",
    [
        "I cannot keep time here.",
        "I can't remind you.",
        "I won't be able to do that.",
        "I'm unable to set reminders.",
        "I am not able to remind you.",
        "I'm afraid I can't.",
        "No, I won't.",
        "I'm sorry, but I can't do that.",
        "I don't have a way to remind you.",
        "I don't do reminders.",
        "I have no way to remind you.",
        "I can't set alarms.",
        "I will not remind you of that.",
        "I'd rather not remind you of him.",
        "I don't think I can remind you.",
        "No.",
        "Nope.",
        "Sorry, I can't help with that.",
        "I cannot promise that.",
        "I can't promise to remind you.",
        "I have no clock, so I can't.",
        "Das kann ich nicht.",
        "Das kann ich leider nicht.",
        "Ich kann dich nicht erinnern.",
        "Ich kann dich leider nicht daran erinnern.",
        "Ich kann keine Erinnerungen setzen.",
        "Ich werde dich nicht erinnern.",
        "Nein.",
        "Ich bin nicht in der Lage, dich zu erinnern.",
        "Ich erinnere dich nicht.",
        "Tut mir leid, das kann ich nicht machen.",
        "I can not remind you.",
        "I cannot schedule things.",
        "Unfortunately I cannot set a reminder for you.",
        "As a language model I don't have the ability to set reminders.",
        "I'm not going to remind you.",
    ],
)
def test_a_negated_undertaking_is_a_refusal(text: str) -> None:
    """What is negated is the reminding, or, in short, the doing of it."""
    assert refuses(text)


@pytest.mark.parametrize(
    "text",
    [
        "I won't forget to remind you.",
        "I can't cook, but I will remind you.",
        "I will remind you; I can't call you.",
        "You can't say I did not warn you.",
        "I cannot promise to be gentle about it.",
        "I can't wait.",
        "I can't do it any sooner, but at noon it is.",
        "No problem.",
        "No worries, I can't forget.",
        "Not at all.",
        "I will not fail you.",
        "I won't forget.",
        "I can't imagine forgetting.",
        "Don't worry, I will not forget to remind you.",
        "Not a word more about it; done.",
        "Why not.",
        "I could not be happier to.",
        "I can't think of anything I'd rather do.",
        "I do not mind at all.",
        "I don't see why not.",
        "I don't mind doing that.",
        "You won't have to ask twice.",
        "It won't be a problem.",
        "That can't hurt.",
        "Nothing easier.",
        "I'm not busy.",
        "I am not a morning person, but sure.",
        "I will never let you down.",
        "I won't let it slip.",
        "I'd never say no to that.",
        "I can't say no to that.",
        "I have no objection.",
        "I have no other plans.",
        "Kein Problem.",
        "Das kann nicht schaden.",
        "Ich vergesse es nicht.",
        "Ich kann mir nichts Schöneres vorstellen.",
        "Ich werde es nicht vergessen.",
        "Nicht der Rede wert.",
        "Warum nicht.",
        "Natürlich, ich habe nichts anderes vor.",
        "Ich lasse dich nicht im Stich.",
        "Ich werde nicht schlafen.",
        "Keine Sorge.",
        "Ich werde dich nicht enttäuschen.",
    ],
)
def test_another_negation_is_no_refusal(text: str) -> None:
    """A pleasantry that holds a "not" refuses nothing, nor does a refusal beside an undertaking."""
    assert not refuses(text)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Yes. I'll remind you at 5. Anything else?", "I'll remind you at 5."),
        ("I can ping you then.", "I can ping you then."),
        ("Ich erinnere dich um 9.", "Ich erinnere dich um 9."),
        ("Gern. Ich werde dich morgen erinnern.", "Ich werde dich morgen erinnern."),
        ("I can not remind you.", ""),
        ("I don't think I can remind you.", ""),
        ("If I can remind you, say so.", ""),
        ("Sam will remind him.", ""),
    ],
)
def test_an_undertaking_is_the_souls_own(text: str, found: str) -> None:
    """It says that the soul will remind the person, without a negation or a condition."""
    assert undertaking_in(text) == found


def test_the_dot_of_an_ordinal_or_a_decimal_ends_no_sentence() -> None:
    """`am 3. Mai` and `in 1.5 hours` stay whole; a new sentence after a number begins."""
    assert statements("Am 3. Mai um 10. In 1.5 hours! Remind me at 5. You know.") == [
        "Am 3. Mai um 10.",
        "In 1.5 hours!",
        "Remind me at 5.",
        "You know.",
    ]


def test_what_a_reply_quotes_is_not_its_own_word() -> None:
    """A quoted request neither undertakes nor refuses anything; a reply that asks for the time is noticed."""
    assert own_words('Noted: “I cannot remind you”, and "no".') == "Noted: , and ."
    assert asks_time("Gladly. When?")
    assert asks_time("Gern, um wie viel Uhr?")
    assert not asks_time("What makes it matter?")


@given(st.text(max_size=300))
def test_any_text_is_read(text: str) -> None:
    """Reading any text succeeds."""
    request_in(text)
    refuses(text)
    undertaking_in(text)


@pytest.mark.parametrize(
    "text",
    ["kannst du mich ", "ich möchte erinnert ", "stell mir ", "lass mich ", "i can't ", "can you remind me ", "nicht "],
)
def test_a_long_text_is_read_as_far_as_a_request_may_stand(text: str) -> None:
    """Forty thousand characters that nearly ask cost no more than four thousand: the rest is not looked at."""
    long = text * (40_000 // len(text))

    assert request_in(long + "Remind me at 5.") == request_in(long[:4000])
    assert refuses(long) == refuses(long[:4000])
