"""A Slack on loopback: Web API, Socket Mode, people, and faults on order; driven by Slack's own Python clients only.

In a test's own process:

    async with SlackServer() as server:
        client = AsyncWebClient(BOT_TOKEN, base_url=server.base_url)
        await server.world.say("D1", "U1", "Good morning")
        (reply,) = await server.world.until_visible(1)

As a process of its own, `PYTHONPATH=tests python -m lab.loopback.slack` prints its URLs, and `SlackWorld.at(control_url)`
has the same names. Every rule that the server holds names its source; "our reading" marks those that were not asked of
the real service.
"""
