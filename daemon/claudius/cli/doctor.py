"""`claudius doctor`: find problems with the setup, each with its fix."""

from __future__ import annotations

import os

import click

from claudius.cli.output import json_option, print_checks, print_json
from claudius.errors import EXIT_FAILED
from claudius.home import Home
from claudius.reports import doctor as reports


@click.command()
@click.option("--live", is_flag=True, help="Also ask the networks how they are set up, and the model for one word.")
@click.option("--security", is_flag=True, help="Only what concerns who may read and do what.")
@json_option
def doctor(*, live: bool, security: bool, as_json: bool) -> int:
    """Find what is not set up correctly, and how to fix it."""
    found = reports.checks(Home.of(os.environ), live=live, security=security)
    document = reports.doctor(found)
    if as_json:
        print_json(document)
    else:
        print_checks(found)
    return 0 if document["ok"] else EXIT_FAILED
