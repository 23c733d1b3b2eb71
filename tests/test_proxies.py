"""Which proxy an address is reached through, by the variables of the environment."""

import httpx
import pytest

from claudius.proxies import named, proxy_of, unify

P, Q = "http://127.0.0.1:1", "http://ada:zq-pass@proxy.example:2"
ROWS = [
    ({"HTTPS_PROXY": P}, "https://a.example/x", P),
    ({"HTTPS_PROXY": P}, "wss://a.example/x", P),
    ({"HTTPS_PROXY": P}, "http://a.example/x", None),
    ({"http_proxy": P}, "ws://a.example/x", P),
    ({"ALL_PROXY": P}, "https://a.example", P),
    ({"ALL_PROXY": Q, "HTTPS_PROXY": P}, "https://a.example", P),
    ({"https_proxy": P, "HTTPS_PROXY": Q}, "https://a.example", P),
    ({"HTTPS_PROXY": "proxy.example:3128"}, "https://a.example", "http://proxy.example:3128"),
    ({"HTTPS_PROXY": P, "NO_PROXY": "b.example,a.example"}, "https://a.example", None),
    ({"HTTPS_PROXY": P, "no_proxy": ".example"}, "https://a.example", None),
    ({"HTTPS_PROXY": P, "NO_PROXY": "a.example:8443"}, "https://a.example:8443", None),
    ({"HTTPS_PROXY": P, "NO_PROXY": "a.example:8443"}, "https://a.example:443", P),
    ({"HTTPS_PROXY": P, "NO_PROXY": "*"}, "https://a.example", None),
    ({"HTTPS_PROXY": P, "NO_PROXY": "b.example, *"}, "https://a.example", None),
    ({"HTTPS_PROXY": P, "NO_PROXY": ""}, "https://localhost:1", None),
    ({"HTTPS_PROXY": P, "NO_PROXY": "b.example"}, "https://[::1]:1", None),
    ({"HTTPS_PROXY": P}, "https://127.0.0.1", None),
    ({"ALL_PROXY": "socks5h://127.0.0.1:9"}, "https://a.example", None),
    ({"ALL_PROXY": "socks5h://127.0.0.1:9", "HTTPS_PROXY": P}, "https://a.example", P),
    ({"ALL_PROXY": "SOCKS5://127.0.0.1:9", "HTTPS_PROXY": P}, "https://a.example", P),
    ({"HTTPS_PROXY": P, "NO_PROXY": "[::1],[fe80::2]"}, "https://[fe80::2]:1", None),
    ({}, "https://a.example", None),
]


@pytest.mark.parametrize(("env", "url", "right"), ROWS)
@pytest.mark.parametrize("source", ["environment", ".env"])
def test_the_variables_name_one_proxy(
    env: dict[str, str], url: str, right: str | None, source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In either spelling and from either place; loopback is reached directly; httpx can be built, and agrees."""
    unified = dict(env) if source == "environment" else {}
    unify(unified, env)
    for name, value in unified.items():
        monkeypatch.setenv(name, value)
    with httpx.Client(verify=False) as client:  # noqa: S501 - nothing is asked
        transport = client._transport_for_url(httpx.URL(url.replace("ws", "http", 1)))

    assert proxy_of(url) == right
    if ":8443" not in env.get("NO_PROXY", ""):  # httpx knows no ports there
        assert ("Proxy" in type(transport._pool).__name__) is (right is not None)


def test_the_environment_wins_and_no_password_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """A variable of the environment is not replaced by one of `.env`, an empty one included."""
    environ = {"HTTP_PROXY": ""}
    unify(environ, {"HTTP_PROXY": P, "https_proxy": Q})
    for name, value in environ.items():
        monkeypatch.setenv(name, value)

    assert proxy_of("http://a.example") is None
    assert proxy_of("https://a.example") == Q
    assert named("https://a.example") == "the proxy proxy.example:2"
    assert named("http://a.example") == ""


@pytest.mark.parametrize("host", ["127.0.0.2", "0.0.0.0", "localhost.", "LOCALHOST", "[::]"])  # noqa: S104 - no bind
def test_this_machine_is_reached_directly(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """However it is written."""
    monkeypatch.setenv("HTTP_PROXY", P)

    assert proxy_of(f"http://{host}:8080/x") is None


@pytest.mark.parametrize("password", ["zq/pass", "zq#pass", "zq?pass", "zq@pass"])
def test_no_password_is_named_whatever_is_in_it(password: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """All before the last `@` is left out."""
    monkeypatch.setenv("HTTP_PROXY", f"http://ada:{password}@proxy.example:2/")

    assert named("http://a.example") == "the proxy proxy.example:2"
