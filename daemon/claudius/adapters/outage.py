"""Why a network cannot be reached, where the way to it is at fault: a proxy, or a certificate that is not trusted."""

from __future__ import annotations

from typing import Any

import aiohttp

from claudius.foreign import status_words
from claudius.proxies import named
from claudius.runtime.adapter import Link

REFUSED = 407
"""The status with which a proxy refuses us; no server behind it does."""


class Outage:
    """Follows the requests of an adapter, and reports why the latest did not arrive."""

    def __init__(self, name: str, link: Link) -> None:
        self._name, self._link, self._why = name, link, ""
        link.reason = self.line

    def line(self) -> str:
        """Return the reason in words for `claudius status`; empty if the way is open, as far as is known."""
        return f"{self._name.title()} cannot be reached ({self._why}); it is tried again" if self._why else ""

    def follow(self, trace: aiohttp.TraceConfig) -> aiohttp.TraceConfig:
        """Follow the requests of the session that is made with this configuration."""
        trace.on_request_exception.append(self._failed)
        trace.on_request_end.append(self._ended)
        return trace

    async def _failed(self, _: object, __: object, failed: aiohttp.TraceRequestExceptionParams) -> None:
        self._note(_why(failed.exception, str(failed.url)))

    async def _ended(self, _: object, __: object, ended: aiohttp.TraceRequestEndParams) -> None:
        is_refused = ended.response.status == REFUSED
        self._note(f"{named(str(ended.url))} refuses us: {status_words(REFUSED)}" if is_refused else "")

    def _note(self, why: str) -> None:
        self._why = why
        if why and not self._link.connected:
            self._link.down(why)


def _why(error: BaseException, url: str) -> str:
    match error:
        case aiohttp.ClientProxyConnectionError():
            return f"{named(url)} does not answer"
        case aiohttp.ClientHttpProxyError():
            return f"{named(url)} refuses us: {status_words(error.status)}"
        case aiohttp.ClientConnectorCertificateError():
            return "its certificate is not trusted: SSL_CERT_FILE names an authority of your own"
    return ""


def is_refused_by_proxy(error: BaseException) -> bool:
    """Return whether a proxy refused a request, so that nothing arrived. Pure."""
    response: Any = getattr(error, "response", None)
    return isinstance(error, aiohttp.ClientHttpProxyError) or REFUSED in (
        getattr(error, "status", 0),
        getattr(response, "status_code", 0),
    )
