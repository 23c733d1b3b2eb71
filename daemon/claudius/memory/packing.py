"""Compress JSON text with a preset dictionary of phrases that occur often in our documents. Pure.

It imports as little as possible, because the search after an erasure runs it in a separate process.
"""

from __future__ import annotations

import zlib
from typing import Any

PACKED = b"\x01"
"""The first byte of what `pack` writes: the format and the dictionary used."""


def pack(document: Any) -> bytes:
    """Write a value as compressed JSON. Pure."""
    import msgspec  # noqa: PLC0415 - the search packs nothing

    compressor = zlib.compressobj(9, zlib.DEFLATED, -15, 9, zdict=_DICTIONARY)
    return PACKED + compressor.compress(msgspec.json.encode(document, enc_hook=dict)) + compressor.flush()


def unpacked(content: bytes) -> bytes:
    """Return the JSON text that was packed. Pure. Raises: ValueError if it is damaged or of a later version."""
    if content[:1] != PACKED:
        raise ValueError(f"not a packed document: it begins with {content[:1]!r}")
    decompressor = zlib.decompressobj(-15, zdict=_DICTIONARY)
    try:
        text = decompressor.decompress(content[1:]) + decompressor.flush()
    except zlib.error as error:
        raise ValueError("a packed document is damaged") from error
    if not decompressor.eof:
        raise ValueError("a packed document is cut short")
    return text


_DICTIONARY = (
    b'{"person":"slack:T0","audience":"shared:slack:T0","audience":"private:slack:T0","shared:discord:","private:d'
    b'iscord:","private:terminal:local:","version":1,"markdown":"","suspect":false}],"turns_here":0,"is_bot":false'
    b"}"
    b'"because the and that with have this from they what about there would which when your people time just know '
    b"like think want will could should been more some other than then them into only over after again where "
    b"before doing really good yes no not are you was for but can had her his him our out one all were how who its it'"
    b"s I'm don't can't I'll that's let me tell you I have been thank you what do you think of the in the of "
    b"the to the on the for the and the to be with the at the is the it was"
    b'"on_mind":"will not let go; ","toward":"on ordinary terms","wants":"ready for something new","tilt":"slow to'
    b' push, keeps things to itself","energy":"fresh","mood":"in good spirits","means_to":"'
    b'"emotional_state":"","asks":["intention_updates"]}},"remembered":[],"recalled":[],"when":"20","from":"'
    b'{"id":0,"peer_id":"","name":"","messages":0,"info_score":0,"first_at":"20","last_at":"20","is_bot":false,"as'
    b'sessments":[]}],"beliefs":[],"second_thought":"","intuitions":[]},"trust":0.0,"rationale":"'
    b'"process":{"process":"main_process","previous_process":"greeting","params":{},"process_memory":{},"invocatio'
    b'n_count":1,"entered_at":"2026-01-05T09:00:00Z"},"previous_process":null,'
    b'"state":[{"key":"emotionalState","value":"engaged","audience":"self","updated_at":"20"currentTopic"currentTa'
    b'sk"currentProject"conversationSummary"neutral"focused"frustrated"sardonic"'
    b'{"arc":"","at_s":17,"intensity":0.9,"bias":0.1},{"person":"","warmth":0.1,"trust":0.0,"tension":0.00,"comfor'
    b't":0.50,"familiarity":0.8},"bands":[3,1,3,0,1,0,2,1],"mood":"engaged","hinted_s":0.0,"high":['
    b'{"at_s":17,"energy":0.7,"valence":0.2,"arousal":0.3,"drives":[0.,0.35,0.,0.,0.],"edges":[{"arcs":[{"after":{'
    b'"inputs":{"at_s":17,"kind":"message","address":"dm","stimulus":{"axes":[0.,0.,0.,0.,0.0],"tone":0.,"novelty"'
    b':0.0,"load":0.1,"drive_effects":[]},"importance":0.3,"matches":[],"born":0,"outcome":"think","m":0.7,"theta"'
    b':0.32,"shifts":[],"intentions":[],"hint":"","mood":"engaged"},"matches":[["",0.40824829046386296],["",0.3535'
    b"5339059327373]"
    b'"changes":{"user_model":{"person":"","audience":"","version":2,"note":"","suspect":false,"result":"stored"}}'
    b',"soul_state":{"refused":["'
    b'"attention":{"outcome":"think","reason":"owed","attention":"think","speak":true,"form":"words","kind":"messa'
    b'ge","address":"dm","owed":true,"triviality":"moderate","m":0.7,"theta":0.32,"parts":{"person":1.0,"topic":0.'
    b'0,"object":0.0,"inner":0.1,"drive":0.5,"arc":0.0,"stakes":0.1,"energy":0.7},"failed":[],"choices":["respond"'
    b',"engage"],"axes":{"supportive":0.0,"safe":0.0,"affectionate":0.0,"cooperative":0.0,"bounds":0.0},"features"'
    b':{"classes":[],"critical":[],"valence":0.0,"novelty":0.0,"load":0.1,"importance":0.3},"words":{"mood":"in go'
    b'od spirits","energy":"fresh","wants":"ready for something new","toward":"on ordinary terms"}},"outcome":"hea'
    b'r","reason":"owed nothing","speak":false,"form":"silent","address":"ambient","owed":false,"triviality":"sign'
    b'ificant"trivial"room"channel"group"thread"overheard"'
    b'"thoughts":[{"step":"internal_monologue","content":"","verb":"pondered","section":null},{"step":"external_di'
    b'alogue","content":"","verb":"said","section":null},{"step":"user_model_check","content":"false","verb":null,'
    b'"section":null}],{"step":"user_model_update","content":"","verb":null,"section":"Persona"},{"step":"model_ch'
    b'ange_note","content":"","verb":null,"section":null},{"step":"soul_state_check","content":"false","verb":null'
    b',"section":null}]'
    b'"responses":{"0":"<internal_monologue verb=\\"pondered\\">\\n\\n</internal_monologue>\\n<external_dialogue v'
    b'erb=\\"said\\">\\n\\n</external_dialogue>\\n<user_model_check>false</user_model_check>\\n<soul_state_check>f'
    b'alse</soul_state_check>\\n<user_model_check>true</user_model_check>\\n<user_model_update section=\\"Persona'
    b'\\">\\n- </user_model_update>\\n<model_change_note></model_change_note>"}}'
    b'{"entries":[{"entry_type":"userMessage","content":"","at":"2026-01-05T09:00:00Z","verb":null,"person":"","na'
    b'me":"","metadata":{},"position":""},{"entry_type":"internalMonologue","content":"","at":"20","verb":"pondere'
    b'd","person":null,"name":null,"metadata":{},"position":""},{"entry_type":"externalDialog","content":"","at":"'
    b'20","verb":"said","person":null,"name":null,"metadata":{},"position":""},{"entry_type":"mentalQuery","conten'
    b't":"Claudius judged whether the user model of  needs a change: false","at":"20","verb":null,"person":null,"n'
    b'ame":null,"metadata":{"query":"user_model_check","person":"","result":false,"shown":1,"update":"none"},"posi'
    b'tion":""}],"Claudius judged whether its soul state needs a change: false","metadata":{"query":"soul_state_ch'
    b'eck","result":false,"update":"none"}'
    b'"snapshot":{"recollection":{"turn":"","nonce":"","now":"2026-01-05T09:00:00Z","conversation":"slack:T0:C0:17'
    b'discord:terminal:local:","audience":"private:shared:","members":{},"perceptions":[{"key":"slack:T0:C0:17disc'
    b'ord:terminal:","conversation":"","audience":"","person":"","name":"","text":"","at":"20","position":"","kind'
    b'":"message","origin":"external","owes":true,"following":null,"to_other":false,"standing":"member","is_bot":f'
    b'alse,"is_owner":false,"extra":{}}],"kind":"mention","owes":false,"speaker":{"person":"","name":"","models":['
    b'{"person":"","audience":"","version":0,"markdown":"","suspect":false}],"turns_here":1,"is_bot":false},"other'
    b's":[],"turns":1,"version":1,"past":[],"expired":[],"summary":null,"left_out":null,"summary":{"text":"","sour'
    b'ces":[""],"upto":0,"nonce":""},"last_at":"20","participation":"","psyche":null,"peers":['
    b'"plan":{"process":"main_process","asked":["internal_monologue","external_dialogue","user_model_check","user_'
    b'model_update","model_change_note","soul_state_check","soul_state_update","intention_updates"],"conditional":'
    b'{"user_model_update":"user_model_check","model_change_note":"user_model_check","soul_state_update":"soul_sta'
    b'te_check"},"shown":[],"reasons":{"user_model":"still in the history"},"seen":true,"owes":true,"history_from"'
    b':1,"verbs":{},"overrides":{},"felt":{"record":{"shown":[{"person":"","audience":"","version":1,"writable":tr'
    b'ue,"pointer":false,"text":""}],"reasons":{"user_model":"first turn"it changed"it left the history"interval"t'
    b'he soul noticed something"'
    b'"settings":{"soul_state_interval":3,"user_model_interval":5,"model_bytes":8192,"shrink_floor":0.6,"window":2'
    b'0,"budget_tokens":8000,"summary_chars":1500,"dossier_tokens":1000,"max_tokens":4096,"repairs":1,"post_chars"'
    b':null,"autonomous":false,"assesses":true,"psyche":true},"past":[1,2,3],"soul":"","drawn":null,"summary":"","'
    b'recalled":[]}}'
)
"""Phrases that occur often in such documents. Never change it: what was packed with it would become unreadable."""
