"""Thumbnails are small upright pictures of any mode, and carry nothing of what a file says of itself."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image

from symbal_hf.data.pixels import jpeg_thumbnail


@pytest.fixture
def noise() -> bytes:
    """A picture that compresses as badly as any."""
    out = io.BytesIO()
    pixels = np.random.default_rng(0).integers(0, 256, (256, 256, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(out, "PNG")
    return out.getvalue()


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "CMYK", "YCbCr", "I", "I;16", "F"])
def test_thumbnails_are_small_rgb_jpegs_of_any_mode(mode: str) -> None:
    ramp = Image.fromarray(np.tile(np.arange(256, dtype=np.uint8), (64, 1)))
    if mode in ("I", "I;16", "F"):
        kind = {"I": np.int32, "I;16": np.uint16, "F": np.float32}[mode]
        ramp = Image.fromarray((np.asarray(ramp).astype(np.float64) * 200 + 900).astype(kind))
    out = io.BytesIO()
    ramp.convert(mode).save(out, "TIFF")
    with Image.open(io.BytesIO(jpeg_thumbnail(out.getvalue(), size=128))) as small:
        assert (small.format, small.mode, small.size) == ("JPEG", "RGB", (128, 32))
        row = np.asarray(small.convert("L"), dtype=float)[16]
    assert row[:8].mean() < 40 and row[-8:].mean() > 215


def test_thumbnails_are_upright_on_white_and_carry_no_metadata() -> None:
    sideways = Image.new("RGB", (400, 200), "black")
    sideways.paste("red", (0, 0, 200, 200))
    exif = Image.Exif()
    exif[0x0112], exif[0x010E] = 6, "taken at home"
    out = io.BytesIO()
    sideways.save(out, "JPEG", exif=exif, comment=b"private")
    encoded = jpeg_thumbnail(out.getvalue(), size=100)
    with Image.open(io.BytesIO(encoded)) as small:
        assert small.size == (50, 100)
        top, bottom = small.getpixel((25, 10)), small.getpixel((25, 90))
    assert isinstance(top, tuple) and top[0] > 200 and isinstance(bottom, tuple) and bottom[0] < 50
    assert b"home" not in encoded and b"private" not in encoded

    out = io.BytesIO()
    Image.new("RGBA", (40, 20), (0, 0, 0, 0)).save(out, "PNG")
    with Image.open(io.BytesIO(jpeg_thumbnail(out.getvalue()))) as small:
        assert small.size == (40, 20) and small.getpixel((20, 10)) == (255, 255, 255)


def test_thumbnails_refuse_what_is_no_picture(noise: bytes) -> None:
    with pytest.raises(OSError):
        jpeg_thumbnail(b"not a picture")
    with pytest.raises(OSError):
        jpeg_thumbnail(noise[:5000])
    with pytest.raises(ValueError, match="size=0"):
        jpeg_thumbnail(noise, size=0)
