"""What the tests of all explorers share."""

import html
import re
from typing import Any


def text(markup: str) -> str:
    """The words of markup."""
    return " ".join(html.unescape(re.sub("<[^>]+>", " ", markup)).split())


def offered(app: Any) -> bool:
    """Whether an explorer offers to train what is missing."""
    return app.offer.train.layout.display is None
