"""Images that a source names by URL: fetched when one is needed, once, into the cache folder."""

from __future__ import annotations

import base64
import binascii
import hashlib
import io
import time

from symbal_hf.core.files import cache_folder, write_whole

MOST_BYTES = 32 << 20
CONNECT, SILENCE, WHOLE = 10.0, 20.0, 60.0  # seconds: until a host answers, between two parts, for one image
SCHEMES = ("http://", "https://")


def is_url(value: object) -> bool:
    """Whether an image is named by an address rather than a path."""
    return isinstance(value, str) and value[:8].lower().startswith(SCHEMES)


def fetched(url: str) -> bytes:
    """The image at `url`, from the cache folder where it has been fetched before.

    Raises:
        ValueError: an answer that is no image, or one of more than MOST_BYTES.
        OSError: no answer in time.
    """
    from PIL import Image, UnidentifiedImageError

    kept = cache_folder() / "images" / hashlib.sha256(url.encode()).hexdigest()
    if kept.is_file():
        return kept.read_bytes()
    content = _get(url)
    try:
        Image.open(io.BytesIO(content)).close()  # a page that says "not found" is not kept as an image
    except UnidentifiedImageError as error:
        raise ValueError(f"the file at {url} is no image") from error
    kept.parent.mkdir(parents=True, exist_ok=True)
    write_whole(kept, content)
    return content


def _get(url: str) -> bytes:
    import requests

    until = time.monotonic() + WHOLE
    try:
        with requests.get(url, stream=True, timeout=(CONNECT, SILENCE), headers={"User-Agent": "symbal-hf"}) as reply:
            if reply.status_code != 200:
                raise ValueError(f"no image at {url}: the server answers {reply.status_code}")
            content = bytearray()
            for part in reply.iter_content(1 << 16):
                content += part
                if len(content) > MOST_BYTES:
                    raise ValueError(f"the file at {url} has more than {MOST_BYTES >> 20} MiB")
                if time.monotonic() > until:
                    raise TimeoutError(f"the image at {url} did not come within {WHOLE:.0f} s")
    except requests.RequestException as error:  # an OSError of its own whose text is long and names objects
        raise ValueError(f"no image at {url}: {type(error).__name__}") from error
    return bytes(content)


def inline(value: str) -> bytes:
    """The bytes of a data URL ("data:image/png;base64,..."); raises ValueError for another or broken one."""
    head, _, body = value.partition(",")
    if not head.endswith(";base64"):
        raise ValueError(f"an image as {head[:40]!r}; expected 'data:image/...;base64,'")
    try:
        return base64.b64decode(body, validate=True)
    except binascii.Error as error:
        raise ValueError(f"an image in broken base64 ({error})") from error
