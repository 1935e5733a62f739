"""joj cache: what the cache holds, and how to empty it."""

from __future__ import annotations

from jojlab.command_line.group import command, option
from jojlab.command_line.options import json_option
from jojlab.foundation.cache import Cache
from jojlab.foundation.printable import json_text


@command()
@option("--empty", is_flag=True, help="Remove all but what a running command uses.")
@json_option()
def cache(empty: bool, as_json: bool) -> None:
    """Show the size of the cache by kind, or empty it.

    Everything in it can be rebuilt. It is $JOJ_CACHE, or jojlab in $XDG_CACHE_HOME or ~/.cache.

    \b
    Examples:
      joj cache
      joj cache --empty
    """
    store = Cache.default()
    left = [str(path) for path in store.empty()] if empty else []
    sizes = store.sizes()
    if as_json:
        found = {"folder": str(store.root), "bytes": sizes}
        print(json_text({**found, "left_in_use": left} if empty else found))
        return
    print(store.root)
    for kind, size_bytes in sizes.items():
        print(f"  {kind:<10} {size_bytes / 1e6:10.1f} MB")
    print(f"  {'all':<10} {sum(sizes.values()) / 1e6:10.1f} MB")
    if left:
        print(f"{len(left)} kept: a running command uses them")
