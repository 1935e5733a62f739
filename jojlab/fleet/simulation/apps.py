"""The apps of a made fleet: their processes and databases, and how often they commit.

The names of multi-file transactions are those that AndroTrace found (contact2.db, EmailProvider.db,
History.db, KakaoTalk.db); which databases they join, the other apps and all weights are
assumptions.
"""

from __future__ import annotations

from typing import NamedTuple


class App(NamedTuple):
    """An app; `joined` are the databases of its multi-file transactions, the first names them."""

    process: str
    databases: tuple[str, ...]
    weight: float
    joined: tuple[str, ...] = ()
    multi_file_weight: float = 0.0


def _of(package: str, *names: str) -> tuple[str, ...]:
    return tuple(f"/data/{package}/databases/{name}" for name in names)


_CONTACTS = "com.android.providers.contacts"
APPS = (
    App(
        "ndroid.contacts", _of(_CONTACTS, "contact2.db", "profile.db"), 1.0,
        _of(_CONTACTS, "contact2.db", "profile.db"), 0.20,
    ),
    App(
        "m.android.email", _of("com.android.email", "EmailProvider.db", "EmailProviderBody.db"),
        1.0, _of("com.android.email", "EmailProvider.db", "EmailProviderBody.db"), 0.25,
    ),
    App(
        "android.browser", _of("com.android.browser", "History.db", "Cookies.db", "Favicons.db"),
        2.0, _of("com.android.browser", "History.db", "Archived.db", "Thumbnails.db"), 0.20,
    ),
    App(
        "com.kakao.talk", _of("com.kakao.talk", "KakaoTalk.db", "KakaoTalk2.db"), 3.0,
        _of("com.kakao.talk", "KakaoTalk.db", "KakaoTalk2.db"), 0.35,
    ),
    App("facebook.katana", _of("com.facebook.katana", "graph.db", "prefs.db"), 3.0),
    App("twitter.android", _of("com.twitter.android", "timeline.db"), 1.5),
    App("gle.android.gms", _of("com.google.android.gms", "gservices.db", "rmq.db"), 2.5),
    App("d.process.media", _of("com.android.providers.media", "external.db"), 0.5),
)  # fmt: skip
