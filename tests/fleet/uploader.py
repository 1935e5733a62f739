"""Sends every file of a folder to a server again and again, as a collector's uploader does.

    python -m tests.fleet.uploader URL TOKEN FOLDER LOG SEED

What was acknowledged is written to LOG, and deleted, most of the time: what a kill between the two
leaves is sent again.
"""

from __future__ import annotations

import http.client
import random
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit


def main() -> None:
    """Send until the folder is empty."""
    url, token, folder, log, seed = sys.argv[1:]
    draw = random.Random(int(seed))
    with open(log, "a", encoding="ascii") as told:
        while files := sorted(Path(folder).glob("*.tar")):
            path = draw.choice(files)
            try:
                connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=60)
                headers = {"Authorization": f"Bearer {token}"}
                name = f"/v1/segments/{path.stem}"
                connection.request("PUT", name, body=path.read_bytes(), headers=headers)
                status = connection.getresponse().status
                connection.close()
            except (OSError, http.client.HTTPException):
                time.sleep(0.02)
                continue
            if status in (200, 201):
                print(path.stem, file=told, flush=True)
                if draw.random() < 0.8:
                    path.unlink()
            elif status == 429:
                time.sleep(0.1)
            else:
                sys.exit(f"answered {status}")


if __name__ == "__main__":
    main()
