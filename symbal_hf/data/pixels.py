"""Pixels of an encoded picture: upright, RGB, whatever its mode; and small JPEGs for pages."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from PIL import Image

ORIENTATION = 0x0112  # the tag of EXIF


def decode(encoded: bytes) -> Image.Image:
    """The picture as RGB with its EXIF orientation applied.

    Raises:
        OSError, SyntaxError, ValueError: bytes that are no whole picture, or a picture of absurd size.
    """
    from PIL import Image, ImageOps

    try:
        with Image.open(io.BytesIO(encoded)) as image:
            image.load()
            return rgb(ImageOps.exif_transpose(image))
    except Image.DecompressionBombError as error:  # of no common kind: without this one picture would end a run
        raise ValueError(f"more pixels than Pillow takes ({error}).") from error


def upright(encoded: bytes) -> bytes:
    """A picture that all readers see alike: as it is, or a PNG of `decode` where it is turned or no plain RGB or grey.

    Servers drop transparency and orientation each in their own way. Raises what `decode` raises.
    """
    from PIL import Image

    picture = decode(encoded)
    with Image.open(io.BytesIO(encoded)) as image:
        turned = image.getexif().get(ORIENTATION, 1) != 1
        if image.mode in ("RGB", "L") and not image.has_transparency_data and not turned:
            return encoded
    return png(picture)


def png(image: Image.Image) -> bytes:
    """The picture as a PNG file."""
    out = io.BytesIO()
    image.save(out, "PNG")
    return out.getvalue()


def jpeg_thumbnail(encoded: bytes, *, size: int = 224) -> bytes:
    """A small JPEG of a picture, longest side `size` pixels: upright, RGB, without its metadata, never enlarged.

    Raises:
        ValueError: `size` is below 1.
        OSError: `encoded` is no readable picture.
    """
    from PIL import Image, ImageOps

    if size < 1:
        raise ValueError(f"size={size} pixels leaves no picture; give at least 1.")
    with Image.open(io.BytesIO(encoded)) as image:
        image.draft(None, (2 * size, 2 * size))  # lets a large JPEG be decoded at a fraction of its size
        small = rgb(ImageOps.exif_transpose(image))
    small.thumbnail((size, size))
    out = io.BytesIO()
    small.save(out, "JPEG", quality=80, optimize=True, comment=b"")  # else the comment of the source is copied
    return out.getvalue()


def rgb(image: Image.Image) -> Image.Image:
    """8-bit RGB of any mode: transparent parts become white, greys deeper than 8 bits are stretched to their range."""
    import numpy as np
    from PIL import Image

    if image.mode.startswith(("I", "F")):
        values = np.nan_to_num(np.asarray(image, dtype=np.float64), posinf=0.0, neginf=0.0)
        low, high = values.min(), values.max()
        grey = (values - low) * (255 / (high - low)) if high > low else np.zeros_like(values)
        return Image.fromarray(grey.round().astype(np.uint8)).convert("RGB")
    if not image.has_transparency_data:
        return image.convert("RGB")
    rgba = image.convert("RGBA")
    return Image.alpha_composite(Image.new("RGBA", rgba.size, "white"), rgba).convert("RGB")
