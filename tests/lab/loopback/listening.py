"""Serves an application on a port of this machine."""

from aiohttp import web


async def listen(app: web.Application, host: str, port: int, runners: list[web.AppRunner]) -> int:
    """Serve an application, whose runner joins `runners`; give the port, any free one for 0."""
    runner = web.AppRunner(app, shutdown_timeout=0.1, access_log=None)
    await runner.setup()
    runners.append(runner)
    await web.TCPSite(runner, host, port).start()
    return int(runner.addresses[0][1])
