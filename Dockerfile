# Claudius in a container: Slack, Discord, the Anthropic API and any chat-completions server. docs/operate.md leads through it.
FROM python:3.13-slim-bookworm AS built
WORKDIR /opt/claudius
COPY . .
# libraries by hash, as on any machine; it says its first line here, with the offline voice, in a home that is thrown away
RUN CLAUDIUS_HOME=/tmp/first CLAUDIUS_PROVIDERS=rehearsal ./setup.sh --postgres \
    && .venv/bin/python -m compileall -q daemon \
    && rm -rf /tmp/first /root/.cache

FROM python:3.13-slim-bookworm
# git keeps the history of portraits, postgresql-client copies a database server; their versions are the distribution's
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends git openssh-client postgresql-client \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --uid 10001 --user-group --home-dir /var/lib/claudius --shell /usr/sbin/nologin claudius \
    && install -d -m 0700 -o claudius -g claudius /var/lib/claudius
COPY --from=built /opt/claudius /opt/claudius
ENV CLAUDIUS_HOME=/var/lib/claudius PATH=/opt/claudius/.venv/bin:$PATH
USER 10001:10001
WORKDIR /var/lib/claudius
VOLUME /var/lib/claudius
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=10s --start-period=60s \
    CMD ["python", "-c", "import httpx; httpx.Client(transport=httpx.HTTPTransport(uds='/var/lib/claudius/run/claudius.sock')).get('http://claudius/health').raise_for_status()"]
CMD ["claudius", "daemon", "run"]
