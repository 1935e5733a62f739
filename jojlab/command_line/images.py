"""The images of a command's cases: making one takes a while, so it is said at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from jojlab.campaign.images import Images
    from jojlab.experiment.plan import Plan
    from jojlab.foundation.cache import Cache


def told_images(planned: Plan, cache: Cache) -> Images:
    """Return the images that the cases need; say on stderr which has to be made.

    Raises what jojlab.campaign.images.images_of raises.
    """
    from jojlab.campaign.images import images_of

    def tell(name: str) -> None:
        click.echo(
            f"making the image of the guests, once (it may download packages): {name}", err=True
        )

    return images_of(planned, cache, tell)
