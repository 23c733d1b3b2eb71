"""Define every setting: a section per table of config.toml, its types, defaults, bounds and descriptions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from claudius.config.tables import (
    AccessSettings,
    AlertSettings,
    ArchiveSettings,
    BotsSettings,
    BudgetSettings,
    HttpSettings,
    LogSettings,
    NotNegative,
    Positive,
    Seconds,
    SettingsTable,
    StorageSettings,
    StoreSettings,
    Url,
    Words,
    WorkerSettings,
    says,
)

SocketUrl = Annotated[str, Meta(pattern=r"^wss?://[^\s/]\S*$")]
HOURS = r"^(\d{1,2}:\d{2}-\d{1,2}:\d{2})?$"
"""A span of local hours, as in `21:00-08:00`; empty = none."""
QUIET = "21:00-08:00"
KOTHAR = "kothar"
DAIMON_PREFIX = "CLAUDIUS_DAIMON_"
"""The prefix of a further daimon's environment names: `CLAUDIUS_DAIMON_<NAME>_<KEY>`."""
GROQ = "https://api.groq.com/openai/v1"
TRIGGER = r"^\s*(timer|interaction_count(\s*[:=]\s*[1-9]\d{0,5})?|promise_timeout|farming|new_peer|manual)\s*$"
"""The allowed trigger names; without this check a misspelt name would silently disable a trigger."""


class ConsultSettings(SettingsTable, frozen=True):
    """Thinking twice before speaking where much is at stake."""

    enabled: Annotated[bool, says("consult the cortex before answering when much is at stake")] = False
    channels: Annotated[Words, says("network:workspace:channel prefixes where it consults; empty = all")] = ()


class CortexSettings(SettingsTable, frozen=True):
    """The second mind, which reflects."""

    enabled: Annotated[bool | Literal["auto"], says("true, false, or auto = on with a real model, else off")] = "auto"
    schedule_minutes: Annotated[float, says("minutes between reflections", gt=0, le=525_600)] = 30.0
    reflection_interval: Annotated[float, says("another name for schedule_minutes; 0 = not set", ge=0, le=525_600)] = (
        0.0
    )
    interaction_threshold: Annotated[Positive, says("messages since the last cycle that start one")] = 5
    triggers: Annotated[
        tuple[Annotated[str, Meta(pattern=TRIGGER)], ...],
        says(
            "what starts a cycle: timer, interaction_count (or interaction_count: N), promise_timeout, "
            "farming, new_peer"
        ),
    ] = ("timer", "interaction_count", "promise_timeout", "farming")
    max_trust_delta: Annotated[int, says("how far trust may move in one cycle", ge=1, le=10)] = 3
    max_beliefs: Annotated[Positive, says("the most beliefs held at once")] = 20
    belief_ttl_minutes: Annotated[float, says("minutes until a belief expires", gt=0, le=52_560_000)] = 120.0
    reflection_timeout_seconds: Annotated[Seconds, says("seconds until a cycle is abandoned")] = 60.0
    context_window: Annotated[Positive, says("interactions of a peer that a cycle sees")] = 10
    max_peers: Annotated[Positive, says("peers that a cycle sees")] = 8
    history_size: Annotated[Positive, says("cycles kept in the history")] = 50
    provider: Annotated[str, says("the cortex's own provider; empty = the main one")] = ""
    model: Annotated[str, says("the cortex's own model; empty = the provider's")] = ""
    depth: Annotated[
        Literal["deep", "triage"], says("deep = each cycle asks the model; triage = only if it is worth it")
    ] = "deep"
    triage_model: Annotated[str, says("a small model that says whether a cycle is worth it")] = ""
    directives: Annotated[bool, says("the cortex may ask the soul to write to someone")] = True
    soul_alignment: Annotated[bool, says("keep the cortex's verdict on the soul's own conduct")] = True
    adaptive: Annotated[bool, says("triggers adjust themselves by how often they prove useful")] = False
    consult: ConsultSettings = ConsultSettings()


class PsycheSettings(SettingsTable, frozen=True):
    """The numbers below language: when the soul thinks, and how that is coloured."""

    enabled: Annotated[bool, says("0 = think about every message that is owed a reply, and feel nothing")] = True
    acknowledge: Annotated[
        Literal["line", "emoji"], says("how thanks to the soul are answered if the network has reactions")
    ] = "line"
    threshold: Annotated[float, says("the least meaning at which the soul thinks", gt=0, le=0.34)] = 0.32
    """With a higher one, a message that is owed a reply could stay below it: salience .98 of a spent soul gives .39."""
    proactive: Annotated[bool, says("the soul may write first, to those who agreed to it")] = False


class EnsoulSettings(SettingsTable, frozen=True):
    """The soul in Claude Code, and who may bring it into a channel."""

    who: Annotated[Words, says("person ids that may use `/ensoul on` and `/ensoul listen`, besides the owners")] = ()
    remember: Annotated[bool, says("keep what is asked and answered in ensouled sessions")] = False
    shared: Annotated[bool, says("also give sessions what was learned in channels that you share with others")] = False
    default: Annotated[Literal["ask", "always"], says("always = each of your sessions is ensouled")] = "ask"


class AnthropicSettings(SettingsTable, frozen=True):
    """The Anthropic API."""

    model: Annotated[str, says("model asked by anthropic_api")] = "claude-sonnet-5-5"
    base_url: Annotated[Url, says("another server than Anthropic's; also ANTHROPIC_BASE_URL")] = ""


class ClaudeSettings(SettingsTable, frozen=True):
    """The Claude Code CLI and the Agent SDK."""

    model: Annotated[str, says("model asked by agent_sdk and claude_cli")] = "sonnet"
    cli_path: Annotated[str, says("the claude command; empty = the bundled one, else PATH")] = ""


class OpenAISettings(SettingsTable, frozen=True):
    """Any chat-completions server."""

    base_url: Annotated[Url, says("e.g. http://127.0.0.1:11434/v1; empty = a local Ollama if one runs")] = ""
    model: Annotated[str, says("model asked; empty = the server's first")] = ""
    profile: Annotated[
        Literal["auto", "full", "plain", "small"],
        says(
            "plain = plain words, judged afterwards (small, its old name, too); "
            "auto = plain for a model at home that is not large"
        ),
    ] = "auto"
    context_tokens: Annotated[
        Positive, says("the context of a model at home whose server does not say; asked of Ollama")
    ] = 4096


class HomeModelSettings(SettingsTable, frozen=True):
    """The model file that thinks in this home."""

    model: Annotated[str, says("the model of `claudius model list` that thinks; empty = the newest")] = ""
    context_tokens: Annotated[
        Positive, says("how much it takes in at once; each 1,000 cost about 0.15 GB of memory")
    ] = 4096
    threads: Annotated[
        NotNegative, says("cores that it thinks with; 0 = every physical core, best where nothing else works")
    ] = 0


class ModelSettings(SettingsTable, frozen=True):
    """How every model is asked."""

    first_byte_s: Annotated[Seconds, says("seconds until the first delta")] = 60.0
    idle_s: Annotated[Seconds, says("seconds between two deltas")] = 60.0
    total_s: Annotated[Seconds, says("seconds for a whole call")] = 300.0
    retries: Annotated[NotNegative, says("retries on one provider before the first delta")] = 3


class SoulStateSettings(SettingsTable, frozen=True):
    """The soul's own state."""

    interval: Annotated[
        NotNegative, says("check the soul's state every N turns of a conversation; 0 = only while idle")
    ] = 3


class UserModelSettings(SettingsTable, frozen=True):
    """Portraits of people."""

    interval: Annotated[
        NotNegative, says("point to the speaker's portrait again every N of their turns; 0 = never")
    ] = 5


class MemorySettings(SettingsTable, frozen=True):
    """Working memory, and the moments that outlive it."""

    window: Annotated[Positive, says("newest messages, replies and thoughts that are never compacted")] = 20
    ttl_hours: Annotated[float, says("hours until entries are summarised and deleted", gt=0, le=876_000)] = 72.0
    records_days: Annotated[
        int, says("days until what `why` and `replay` read of a turn is deleted; 0 = never", ge=0, le=36_500)
    ] = 365
    moments: Annotated[Positive, says("moments kept of one audience; the less important go")] = 50_000
    remembered: Annotated[NotNegative, says("the most moments shown in a prompt")] = 8
    floor: Annotated[
        float, says("the share of a message that one moment must hold to show any; 0 = none", ge=0, le=1)
    ] = 0.44


class RecallSettings(SettingsTable, frozen=True):
    """The search of moments by their meaning, beside that by their words."""

    embedder: Annotated[str, says("auto = that of the extra `recall`, in the daemon; off; or a module of your own")] = (
        "auto"
    )


class TranscriptionSettings(SettingsTable, frozen=True):
    """Who writes down what people speak, where their network does not; its key is in .env."""

    base_url: Annotated[Url, says("a server with /audio/transcriptions; empty = nobody listens")] = ""
    model: Annotated[str, says("its model")] = "whisper-1"
    language: Annotated[str, says("the language spoken, as in `de`; empty = it finds out")] = ""


class HistorySettings(SettingsTable, frozen=True):
    """The history part of the prompt."""

    budget_tokens: Annotated[
        Positive, says("tokens (characters / 4) of history above which the oldest turns leave the prompt")
    ] = 8000


class PipelineSettings(SettingsTable, frozen=True):
    """One turn of thought."""

    mode: Annotated[
        Literal["fused", "split"], says("fused = all steps in one model call; split = one call per step")
    ] = "fused"
    steps: Annotated[
        Words, says("steps with a provider of their own, asked separately: `STEP=PROVIDER` or `STEP=PROVIDER/MODEL`")
    ] = ()
    stream: Annotated[Words, says("adapters that show a reply while it is generated")] = ("terminal",)
    max_tokens: Annotated[Positive, says("tokens of the longest reply asked of a provider")] = 4096


class RuntimeSettings(SettingsTable, frozen=True):
    """The daemon's life."""

    paused: Annotated[
        bool, says("hear and keep everything, answer nobody but the terminal; `/claudius pause` sets it")
    ] = False
    patience_s: Annotated[Seconds, says("seconds that a message waits for a model before the apology")] = 600.0
    merge_while_busy: Annotated[
        bool | Literal["direct"],
        says(
            "answer what one person said while the soul was busy in one reply, ten messages at most; "
            "direct = in direct messages of Slack and Discord"
        ),
    ] = "direct"
    follow: Annotated[
        Literal["thread", "mention", "listen"],
        says(
            "thread = answer in a thread once called into it; mention = only when named; "
            "listen = as mention, but keep all talk"
        ),
    ] = "thread"
    thoughts: Annotated[Words, says("owners' direct messages that show thoughts")] = ()
    delete_replies: Annotated[bool, says("delete a reply together with the message that it answers")] = False
    catch_up_hours: Annotated[int, says("hours of history that are read after a gap", ge=1, le=876_000)] = 24


class IsmSettings(SettingsTable, frozen=True):
    """The implicit semantic machine: the soul chooses its own steps, for more model calls."""

    enabled: Annotated[bool, says("let problem_solving choose its own way; off = deep_work runs")] = False
    max_loops: Annotated[Positive, says("the most choices in one turn")] = 5


class OwnTool(SettingsTable, frozen=True):
    """A tool of the owner's own."""

    call: Annotated[str, says("the function, as package.module:function")]
    where: Annotated[Words, says("owner, private, or channel ids; empty = by its class")] = ()


class ToolServerSettings(SettingsTable, frozen=True, omit_defaults=True):
    """A server that offers tools over MCP."""

    command: Annotated[Words, says("the program and its arguments")] = ()
    url: Annotated[Url, says("where it listens, in place of a command")] = ""
    env: Annotated[Words, says("names of variables of .env that it alone gets")] = ()
    timeout_s: Annotated[float, says("the longest call; 0 = tools.call_seconds", ge=0, le=600)] = 0.0
    key_arg: Annotated[str, says("the argument that takes an idempotency key; empty = none")] = ""
    tools: Annotated[
        dict[str, Literal["look", "read", "write", "send"]], says("tool → class; others are not offered")
    ] = msgspec.field(default_factory=dict)
    mine: Annotated[Words, says("tools whose results are the owner's own words")] = ()
    where: Annotated[Words, says("owner, private, or network:workspace:channel ids")] = ("owner",)


class ToolWebSettings(SettingsTable, frozen=True):
    """What `web.read` may reach."""

    hosts: Annotated[Words, says("hosts for which http and private addresses are allowed, without a port")] = ()


class ToolsSettings(SettingsTable, frozen=True):
    """What the soul may do, and when it must ask."""

    enabled: Annotated[bool, says("offer tools")] = True
    small: Annotated[bool, says("offer them to small models, too")] = False
    per_turn: Annotated[Positive, says("the most calls in a turn")] = 5
    per_person_day: Annotated[Positive, says("the most calls of a person in 24 hours")] = 100
    turn_seconds: Annotated[Seconds, says("how long a turn waits for a tool")] = 20.0
    call_seconds: Annotated[Seconds, says("how long a call may take")] = 60.0
    result_chars: Annotated[Positive, says("the most that is kept of a result, in characters")] = 16_000
    prompt_tokens: Annotated[Positive, says("the most tokens that the list of tools may take")] = 1500
    consent_hours: Annotated[float, says("hours until a question lapses", gt=0, le=720)] = 24.0
    grant_days: Annotated[int, says("days for which the longest consent holds", ge=1, le=36_500)] = 30
    people_may: Annotated[Words, says("tools of class read that people may allow in private conversations")] = (
        "web.read",
    )
    web: ToolWebSettings = ToolWebSettings()
    own: dict[str, str | OwnTool] = msgspec.field(default_factory=dict)
    servers: dict[str, ToolServerSettings] = msgspec.field(default_factory=dict)


class SlackSettings(SettingsTable, frozen=True):
    """Slack, over Socket Mode; its tokens are in .env."""

    api_url: Annotated[Url, says("another Web API than Slack's, ending in /api/")] = "https://slack.com/api/"
    channels: Annotated[
        Words, says("channel ids where all talk is heard and kept; * = every one; mentions always are")
    ] = ()
    status: Annotated[
        str, says("what a thread shows while the soul thinks (a DM: eyes); empty = nothing", max_length=100)
    ] = "is thinking…"


class DiscordSettings(SettingsTable, frozen=True):
    """Discord, over its gateway; its token is in .env."""

    api_url: Annotated[Url, says("another REST API than Discord's, ending in /api/v10")] = "https://discord.com/api/v10"
    gateway_url: Annotated[SocketUrl, says("another gateway than Discord's")] = "wss://gateway.discord.gg/"
    guilds: Annotated[Words, says("ids of the servers whose members are heard; * = every one; empty = nobody")] = ()
    channels: Annotated[
        Words, says("channel ids where all talk is heard and kept; * = every one; mentions always are")
    ] = ()
    typing: Annotated[bool, says("show a typing indicator while the soul thinks")] = True


class PerceiveSettings(SettingsTable, frozen=True):
    """A program of the owner's that may wake the soul; its token is in .env."""

    conversations: Words = ()
    """Where it may do so."""


class ClockSettings(SettingsTable, frozen=True):
    """Local time."""

    timezone: Annotated[str, says("IANA zone; empty = the system's")] = ""
    quiet: Annotated[
        str, says("hours in which the soul, unprompted, asks no model and says nothing", pattern=HOURS)
    ] = QUIET


class DaimonSettings(SettingsTable, frozen=True):
    """Another mind that counsels the soul in one line; its token is in .env."""

    enabled: Annotated[bool, says("ask it over HTTP: POST /api/whisper")] = False
    groq_enabled: Annotated[bool, says("ask a model in its name; if both are on, HTTP first")] = False
    url: Annotated[
        str, says("where it listens, as in http://host:port", pattern=r"^https?://[^\s/?#@]+(/[^\s?#]*)?$")
    ] = "http://127.0.0.1:3033"
    provider: Annotated[str, says("the provider of the model in its name")] = "openai_compat"
    base_url: Annotated[Url, says("that model's server, if it is a chat-completions server")] = GROQ
    model: Annotated[str, says("that model; empty = the provider's own")] = "llama-3.3-70b-versatile"
    soul_md: Annotated[str, says("its character, below soul/; empty = daimons/NAME.md")] = ""
    mode: Annotated[
        Literal["whisper", "speak", "both", "off"],
        says("whisper = felt in the prompt; speak = aloud after the reply; both; off"),
    ] = "whisper"
    interval_min: Annotated[Positive, says("minutes between two requests")] = 45
    daily_max: Annotated[Positive, says("the most whispers in a day")] = 24
    temperature: Annotated[float, says("sampling temperature of that model", ge=0, le=2)] = 0.9
    share_private: Annotated[bool, says("also tell it thoughts from others' direct messages")] = False

    @property
    def is_on(self) -> bool:
        """Whether it is asked at all."""
        return self.enabled or self.groq_enabled


class Config(SettingsTable, frozen=True):
    """All settings."""

    providers: Annotated[
        Words, says("who speaks, then the fallbacks; auto = the first that is available", min_length=1)
    ] = ("auto",)
    adapters: Annotated[Words, says("networks listened to; auto = those with tokens")] = ("auto",)
    observers: Annotated[Words, says("classes of your own that are told what happens")] = ()
    owners: Annotated[Words, says("person ids with owner's rights, e.g. slack:T1:U1")] = ()
    anthropic: AnthropicSettings = AnthropicSettings()
    claude: ClaudeSettings = ClaudeSettings()
    openai: OpenAISettings = OpenAISettings()
    home: HomeModelSettings = HomeModelSettings()
    model: ModelSettings = ModelSettings()
    soul_state: SoulStateSettings = SoulStateSettings()
    user_model: UserModelSettings = UserModelSettings()
    memory: MemorySettings = MemorySettings()
    recall: RecallSettings = RecallSettings()
    transcription: TranscriptionSettings = TranscriptionSettings()
    history: HistorySettings = HistorySettings()
    pipeline: PipelineSettings = PipelineSettings()
    runtime: RuntimeSettings = RuntimeSettings()
    ism: IsmSettings = IsmSettings()
    slack: SlackSettings = SlackSettings()
    discord: DiscordSettings = DiscordSettings()
    access: AccessSettings = AccessSettings()
    bots: BotsSettings = BotsSettings()
    storage: StorageSettings = StorageSettings()
    store: StoreSettings = StoreSettings()
    worker: WorkerSettings = WorkerSettings()
    archive: ArchiveSettings = ArchiveSettings()
    budget: BudgetSettings = BudgetSettings()
    cortex: CortexSettings = CortexSettings()
    psyche: PsycheSettings = PsycheSettings()
    kothar: DaimonSettings = DaimonSettings()
    daimons: dict[str, DaimonSettings] = msgspec.field(default_factory=dict)
    http: HttpSettings = HttpSettings()
    perceive: dict[str, PerceiveSettings] = msgspec.field(default_factory=dict)
    ensoul: EnsoulSettings = EnsoulSettings()
    alerts: AlertSettings = AlertSettings()
    clock: ClockSettings = ClockSettings()
    tools: ToolsSettings = ToolsSettings()
    log: LogSettings = LogSettings()


def daimons(config: Config) -> dict[str, DaimonSettings]:
    """Return every configured daimon, Kothar first. Pure."""
    return {KOTHAR: config.kothar, **dict(sorted(config.daimons.items()))}


def daimon_modes(config: Config) -> dict[str, str]:
    """Return the modes of the enabled daimons. Pure."""
    return {name: one.mode for name, one in daimons(config).items() if one.is_on}


ALIASES: Mapping[str, str] = {"anthropic.base_url": "ANTHROPIC_BASE_URL"}
"""Settings that also have a well-known environment name; ours takes precedence over it."""


class Setting(msgspec.Struct, frozen=True):
    """One setting: its key (`section.name`, or a bare name), type, default and description."""

    key: str
    type: Any
    default: Any
    description: str

    @property
    def env(self) -> str:
        """Its environment name: `CLAUDIUS_SECTION_KEY`."""
        return env_name(self.key)


def env_name(key: str) -> str:
    """Return the environment name of a setting: `CLAUDIUS_SECTION_KEY`. Pure."""
    return "CLAUDIUS_" + key.replace(".", "_").upper()


def _settings(struct: type[msgspec.Struct], prefix: str = "") -> Iterator[Setting]:
    for item in msgspec.structs.fields(struct):
        if isinstance(item.type, type) and issubclass(item.type, SettingsTable):
            yield from _settings(item.type, f"{prefix}{item.name}.")
        elif hasattr(item.type, "__metadata__"):  # a table of what the owner named has no settings of its own
            description = next((meta.description for meta in item.type.__metadata__ if meta.description), "")
            yield Setting(prefix + item.name, item.type, item.default, description)


SETTINGS: Mapping[str, Setting] = {setting.key: setting for setting in _settings(Config)}
