"""Print the table of settings for docs/configuration.md: `python tests/settings_table.py`."""

import sys
from collections.abc import Iterator

import msgspec

from claudius.config.schema import ALIASES, SETTINGS, Setting


def row(setting: Setting) -> str:
    """Return one setting's line of the table."""
    default = msgspec.json.encode(setting.default).decode()
    names = [setting.env, *([ALIASES[setting.key]] if setting.key in ALIASES else [])]
    return f"| `{setting.key}` | `{default}` | {', '.join(f'`{name}`' for name in names)} | {setting.description} |"


def table() -> Iterator[str]:
    """Yield the table line by line."""
    yield "| setting | default | environment | what it is |"
    yield "|---|---|---|---|"
    yield from (row(setting) for setting in SETTINGS.values())


if __name__ == "__main__":
    sys.stdout.writelines(line + "\n" for line in table())
