"""S25: forged HTTP events. There is no HTTP receiver that could accept them, and nothing turns one on."""

import re
from pathlib import Path

import pytest

from claudius.config.load import SECRETS
from claudius.config.schema import SETTINGS
from slack_daemon import PATIENCE_S, slack_daemon

LISTENS = "0A"
"""TCP_LISTEN in /proc/net/tcp."""


def ports(pid: int) -> list[str]:
    """Return the local addresses on which a process listens for TCP."""
    inodes = {found[1] for path in Path(f"/proc/{pid}/fd").iterdir() if (found := _inode(path))}
    lines = [line.split() for name in ("tcp", "tcp6") for line in _table(pid, name)]
    return [fields[1] for fields in lines if fields[3] == LISTENS and fields[9] in inodes]


def _inode(path: Path) -> re.Match[str] | None:
    try:
        return re.fullmatch(r"socket:\[(\d+)\]", str(path.readlink()))
    except OSError:  # closed meanwhile
        return None


def _table(pid: int, name: str) -> list[str]:
    path = Path(f"/proc/{pid}/net/{name}")
    return path.read_text("ascii").splitlines()[1:] if path.exists() else []


@pytest.mark.skipif(not Path("/proc/self/net/tcp").exists(), reason="reads /proc/net/tcp, which only Linux has")
async def test_s25_the_daemon_listens_on_no_port(tmp_path: Path) -> None:
    """While it is awake and connected to Slack, the process listens only on its control socket, a private file."""
    async with slack_daemon(tmp_path) as daemon:
        await daemon.start()
        await daemon.slack.say("D1", "U1", "hello")
        await daemon.slack.until_visible(1, within_s=PATIENCE_S)
        assert daemon.process
        found = ports(daemon.process.pid)
        await daemon.stop()

    assert found == []


def test_s25_nothing_turns_a_receiver_on() -> None:
    """One setting opens a port, for the whisper endpoint of S26. No setting names a receiver of network events."""
    named = {name: set(re.split(r"[._]", name.lower())) for name in (*SETTINGS, *SECRETS)}

    assert {name for name, words in named.items() if words & {"listen", "bind"}} == {
        "http.listen",
        "store.listen_url",
    }  # the latter is where a process connects to
    assert not {name for name, words in named.items() if words & {"port", "host"}}
    # `alerts.webhook` is where the soul posts to, and no receiver
    assert {name for name, words in named.items() if words & {"webhook", "signing"}} == {"alerts.webhook"}
