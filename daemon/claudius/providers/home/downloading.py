"""Download a model file from a hub: with progress, gone on with where it broke off, and compared with its checksum.

Source: huggingface_hub, `file_download`. Its own `hf_hub_download` deletes what it has when it is interrupted.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import logging
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from claudius.errors import ClaudiusError, TryAgain
from claudius.home import FILE_MODE, Home
from claudius.providers.home.models import INSTALL, check_model, check_room, gigabytes, place

_SHA256 = re.compile(r"[0-9a-f]{64}")
_PIECE = 2**20


def download(home: Home, repo: str, file: str, name: str, *, is_shown: bool) -> Path:
    """Download `file` of `repo` as the model `name`. Raises: ClaudiusError; OSError if it cannot be written.

    `is_shown`: show on stderr how far it is. What came before an interruption is kept, and the next call goes on.
    """
    os.environ |= {"HF_HUB_DISABLE_TELEMETRY": "1", "HF_HUB_DISABLE_PROGRESS_BARS": "0" if is_shown else "1"}
    try:
        from huggingface_hub import hf_hub_url  # noqa: PLC0415 - heavy, here alone
        from huggingface_hub.file_download import get_hf_file_metadata, http_get  # noqa: PLC0415 - as above
    except ImportError as error:
        raise ClaudiusError(f"downloads need the package huggingface_hub: {INSTALL}") from error
    logging.getLogger("huggingface_hub").setLevel(logging.ERROR)
    target, what = place(home, name), f"{file} of {repo}"
    with _faults(what):
        told = get_hf_file_metadata(hf_hub_url(repo, file), token=False)
    size, checksum = told.size or 0, told.etag or ""
    if not _SHA256.fullmatch(checksum):
        raise ClaudiusError(f"the hub names no checksum for {what}: it is not downloaded")
    part = home.models / f".{target.name}.{checksum[:12]}.part"
    with part.open("ab") as into:
        part.chmod(FILE_MODE)
        try:
            fcntl.flock(into, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise TryAgain(f"{name} is being downloaded already") from error
        kept = into.tell()
        check_room(home, name, size, kept)
        with _faults(what, part):
            http_get(told.location, into, resume_size=kept, expected_size=size, displayed_filename=name)
    if _sum_of(part) != checksum:
        part.unlink()
        raise ClaudiusError(f"what came is not {what}, by its checksum: it was deleted; the same command tries again")
    check_model(part)
    part.replace(target)
    return target


@contextmanager
def _faults(what: str, part: Path | None = None) -> Iterator[None]:
    """Say in one line what kept a file from coming. Raises: ClaudiusError."""
    import httpx2  # noqa: PLC0415 - what huggingface_hub asks with
    from huggingface_hub.errors import HfHubHTTPError  # noqa: PLC0415 - as above

    def kept() -> str:
        here = part.stat().st_size if part else 0
        return f"; {gigabytes(here)} are here, and the same command goes on from there" if here else ""

    try:
        yield
    except HfHubHTTPError as error:
        status = error.response.status_code
        absent = f"the hub has no {what}, or does not show it to everybody"
        why = absent if status in (401, 403, 404) else f"the hub does not give {what} now (HTTP {status})"
        raise ClaudiusError(why + kept()) from error
    except httpx2.HTTPError as error:
        raise ClaudiusError(
            f"the hub cannot be reached ({type(error).__name__}): is there a network?{kept()}"
        ) from error
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise ClaudiusError(f"the disk is full{kept()}") from error
        if error.errno is not None:
            raise
        raise ClaudiusError(f"{what} did not come whole{kept()}") from error


def _sum_of(path: Path) -> str:
    total = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(_PIECE):
            total.update(piece)
    return total.hexdigest()
