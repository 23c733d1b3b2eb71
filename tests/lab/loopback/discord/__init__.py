"""A Discord on loopback: gateway, REST v10, interactions, people, and faults on order; driven by discord.py only.

    async with DiscordServer() as server:
        discord.http.Route.BASE = server.base_url
        discord.gateway.DiscordWebSocket.DEFAULT_GATEWAY = yarl.URL(server.gateway_url)
        ...                                                    # start your client with BOT_TOKEN, then be a person:
        await server.world.say(DM, ANA, "Hello")
        await server.world.fault("create_message", "status", status=502, is_applied=True)
        (shown,) = await server.world.until_visible(1)

Both must be set before the client is made; a client made with `guild_ready_timeout=0.05` is ready at once. Routes bear
the names of Discord's documentation (`routes.TABLE`), faults those of `faults.FAULTS`.
"""
