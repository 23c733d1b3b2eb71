"""A Slack on loopback: Web API, Socket Mode, people, and faults on order; driven by Slack's own Python clients only.

    async with SlackServer() as server:
        client = AsyncWebClient(BOT_TOKEN, base_url=server.base_url)
        await server.world.say("D1", "U1", "Good morning")
        (reply,) = await server.world.until_visible(1)

Every rule that the server holds names its source; "our reading" marks those that were not asked of
the real service.
"""
