"""Recipes for people, animals, vehicles and street things: each draws one object into the unit box of a pen."""

from __future__ import annotations

import random

from benchmark_builder.scenes.objects_pen import BLACK, COLOURS, GLASS, METAL, WHITE, Colour, Pen, shade

_SKINS: tuple[Colour, ...] = ((244, 204, 172), (222, 172, 132), (170, 116, 78), (108, 70, 48))
_HAIRS: tuple[Colour, ...] = ((40, 30, 26), (96, 62, 36), (196, 150, 84), (130, 128, 126))
_RUBBER: Colour = (38, 38, 42)


def person(pen: Pen, c: Colour, rng: random.Random) -> None:
    """A standing person seen from the front, one hand sometimes raised; ``c`` colours the top."""
    skin, hair = rng.choice(_SKINS), rng.choice(_HAIRS)
    trousers = shade(rng.choice([(52, 68, 112), (70, 66, 62), (104, 84, 62), (40, 42, 52)]), rng.uniform(0.8, 1.2))
    stride, lift = rng.uniform(0.02, 0.16), rng.choice([0.0, 0.0, 1.0])
    if rng.random() < 0.4:  # long hair falls behind the shoulders
        pen.rect(0.29, 0.06, 0.71, 0.27, hair, 0.08)
    for hip, foot in ((0.41, 0.40 - stride), (0.59, 0.60 + stride)):
        pen.line([(hip, 0.54), ((hip + foot) / 2, 0.74), (foot, 0.94)], 0.085, trousers)
        pen.rect(foot - 0.10, 0.94, foot + 0.13, 0.995, BLACK, 0.02)
    hand = (0.05, 0.10) if lift else (0.12, 0.54)
    for shoulder, elbow, end in (
        ((0.25, 0.27), (0.08, 0.27 if lift else 0.41), hand),
        ((0.75, 0.27), (0.90, 0.41), (0.86, 0.54)),
    ):
        pen.line([elbow, end], 0.045, skin)
        pen.line([shoulder, elbow], 0.07, shade(c, 0.85))
        pen.disc(*end, 0.03, skin)
    pen.rect(0.42, 0.16, 0.58, 0.25, shade(skin, 0.85))
    pen.blob(
        [(0.22, 0.24), (0.5, 0.21), (0.78, 0.24), (0.76, 0.40), (0.73, 0.57), (0.5, 0.58), (0.27, 0.57), (0.24, 0.40)],
        c,
    )
    pen.disc(0.5, 0.105, 0.082, skin)
    pen.pie(0.5, 0.095, 0.215, 0.092, 180, 360, hair)
    for x in (0.43, 0.59):
        pen.disc(x, 0.108, 0.011, BLACK)
    pen.bow(0.51, 0.13, 0.07, 0.022, 20, 160, 0.009, (150, 60, 60))


def dog(pen: Pen, c: Colour, rng: random.Random) -> None:
    """A dog from the side; ``c`` is its coat."""
    dark, wag = shade(c, 0.68), rng.uniform(-0.06, 0.12)
    pen.line([(0.17, 0.46), (0.08, 0.34), (0.05, 0.20 + wag)], 0.06, c)
    for x, colour in ((0.27, dark), (0.62, dark), (0.19, c), (0.55, c)):
        pen.rect(x, 0.52, x + 0.085, 0.97, colour, 0.04)
        pen.oval(x + 0.06, 0.965, 0.065, 0.035, shade(colour, 0.9))
    pen.blob([(0.14, 0.44), (0.34, 0.38), (0.58, 0.36), (0.72, 0.44), (0.68, 0.66), (0.44, 0.66), (0.2, 0.68)], c)
    pen.poly([(0.54, 0.44), (0.64, 0.2), (0.82, 0.34), (0.72, 0.6)], c)
    pen.blob(
        [(0.62, 0.2), (0.7, 0.1), (0.8, 0.13), (0.86, 0.23), (0.97, 0.27), (0.98, 0.36), (0.84, 0.4), (0.7, 0.38)], c
    )
    pen.blob([(0.64, 0.12), (0.71, 0.16), (0.71, 0.36), (0.65, 0.44), (0.59, 0.34)], dark)
    pen.oval(0.965, 0.275, 0.032, 0.036, BLACK)
    pen.line([(0.97, 0.345), (0.88, 0.35)], 0.014, BLACK)
    pen.disc(0.81, 0.21, 0.024, BLACK)
    pen.poly([(0.56, 0.42), (0.59, 0.36), (0.75, 0.47), (0.73, 0.54)], rng.choice([COLOURS["red"], COLOURS["blue"]]))
    if rng.random() < 0.5:
        pen.oval(0.36, 0.47, 0.11, 0.09, dark)


def cat(pen: Pen, c: Colour, rng: random.Random) -> None:
    """A sitting cat from the front; ``c`` is its coat."""
    dark, light = shade(c, 0.62), shade(c, 1.45)
    pen.line([(0.70, 0.93), (0.90, 0.88), (0.95, 0.70), (0.86, rng.uniform(0.5, 0.62))], 0.06, c)
    pen.blob([(0.5, 0.42), (0.68, 0.52), (0.80, 0.82), (0.72, 0.98), (0.28, 0.98), (0.20, 0.82), (0.32, 0.52)], c)
    pen.oval(0.5, 0.66, 0.12, 0.16, light)
    for x in (0.40, 0.60):
        pen.rect(x - 0.07, 0.68, x + 0.07, 0.97, shade(c, 0.9), 0.05)
        pen.oval(x, 0.955, 0.09, 0.04, light)
    for side in (-1, 1):
        pen.poly([(0.5 + side * 0.27, 0.01), (0.5 + side * 0.06, 0.13), (0.5 + side * 0.28, 0.27)], c)
        pen.poly([(0.5 + side * 0.24, 0.06), (0.5 + side * 0.12, 0.14), (0.5 + side * 0.24, 0.22)], (232, 160, 160))
    pen.oval(0.5, 0.29, 0.30, 0.2, c)
    if rng.random() < 0.6:  # a tabby
        for x, y in ((0.42, 0.11), (0.5, 0.10), (0.58, 0.11)):
            pen.line([(x, y), (x, y + 0.07)], 0.02, dark)
        for y in (0.55, 0.65, 0.75):
            pen.line([(0.26, y + 0.05), (0.36, y + 0.02)], 0.02, dark)
            pen.line([(0.74, y + 0.05), (0.64, y + 0.02)], 0.02, dark)
    for x in (0.38, 0.62):
        pen.oval(x, 0.27, 0.066, 0.045, rng.choice([(170, 200, 60), (230, 190, 60)]))
        pen.oval(x, 0.27, 0.02, 0.042, BLACK)
    pen.oval(0.5, 0.375, 0.12, 0.055, light)
    pen.poly([(0.46, 0.335), (0.54, 0.335), (0.5, 0.37)], (210, 110, 120))
    for y in (0.35, 0.39):
        pen.line([(0.40, 0.37), (0.10, y)], 0.008, shade(light, 0.8))
        pen.line([(0.60, 0.37), (0.90, y)], 0.008, shade(light, 0.8))


def bird(pen: Pen, c: Colour, rng: random.Random) -> None:
    """A perched bird from the side; ``c`` is its plumage."""
    for x in (0.47, 0.57):
        pen.line([(x, 0.72), (x, 0.97), (x + 0.07, 0.97)], 0.025, (200, 130, 50))
    pen.poly([(0.02, 0.62), (0.04, 0.48), (0.36, 0.46), (0.34, 0.68)], shade(c, 0.6))
    pen.blob(
        [
            (0.24, 0.54),
            (0.44, 0.36),
            (0.58, 0.2),
            (0.72, 0.08),
            (0.86, 0.14),
            (0.88, 0.32),
            (0.78, 0.6),
            (0.54, 0.78),
            (0.34, 0.72),
        ],
        c,
    )
    pen.blob([(0.56, 0.56), (0.74, 0.42), (0.82, 0.46), (0.74, 0.64), (0.56, 0.76), (0.46, 0.72)], shade(c, 1.55))
    lift = rng.choice([0.0, 0.34])  # a folded or a raised wing
    pen.blob(
        [(0.60, 0.44), (0.54, 0.60), (0.38, 0.66 - lift), (0.12, 0.62 - lift * 1.5), (0.30, 0.48 - lift / 2)],
        shade(c, 0.72),
    )
    pen.poly([(0.85, 0.18), (0.85, 0.30), (0.995, 0.25)], (240, 176, 40))
    pen.disc(0.775, 0.205, 0.042, WHITE)
    pen.disc(0.782, 0.205, 0.026, BLACK)


def car(pen: Pen, c: Colour, rng: random.Random) -> None:
    """A saloon, hatchback or estate from the side; ``c`` is the paint."""
    front, back = rng.uniform(0.24, 0.32), rng.choice([0.76, 0.84, 0.93])  # saloon, hatchback or estate
    roof = [(front - 0.1, 0.46), (front + 0.08, 0.06), (back - 0.12, 0.06), (back, 0.46)]
    pen.poly(roof, shade(c, 0.9))
    pen.rect(front + 0.05, 0.03, back - 0.1, 0.12, shade(c, 0.9), 0.06)
    middle = (front + back) / 2
    pen.poly([(front - 0.04, 0.44), (front + 0.1, 0.14), (middle - 0.02, 0.14), (middle - 0.02, 0.44)], GLASS)
    pen.poly([(middle + 0.02, 0.14), (back - 0.13, 0.14), (back - 0.05, 0.44), (middle + 0.02, 0.44)], GLASS)
    pen.poly(
        [(front + 0.02, 0.44), (front + 0.13, 0.14), (front + 0.17, 0.14), (front + 0.06, 0.44)], shade(GLASS, 1.5)
    )
    pen.blob(
        [
            (0.01, 0.66),
            (0.06, 0.46),
            (0.22, 0.41),
            (0.5, 0.41),
            (0.8, 0.41),
            (0.96, 0.44),
            (0.99, 0.62),
            (0.98, 0.8),
            (0.5, 0.82),
            (0.02, 0.8),
        ],
        c,
    )
    pen.rect(0.02, 0.72, 0.98, 0.82, shade(c, 0.6), 0.03)
    pen.oval(0.055, 0.57, 0.035, 0.06, (252, 240, 180))
    pen.rect(0.95, 0.5, 0.985, 0.62, (190, 30, 30), 0.02)
    pen.line([(middle, 0.44), (middle, 0.74)], 0.014, shade(c, 0.6))
    pen.line([(middle + 0.04, 0.53), (middle + 0.1, 0.53)], 0.03, shade(c, 0.5))
    for x in (0.22, 0.77):
        pen.disc(x, 0.78, 0.215, _RUBBER)
        pen.disc(x, 0.78, 0.12, (196, 198, 202))
        pen.disc(x, 0.78, 0.05, shade(METAL, 0.6))


def bus(pen: Pen, c: Colour, rng: random.Random) -> None:
    """A single-decker bus from the side; ``c`` is the paint."""
    pen.rect(0.0, 0.04, 1.0, 0.88, c, 0.07)
    pen.rect(0.03, 0.0, 0.9, 0.08, shade(c, 0.75), 0.04)
    pen.rect(0.0, 0.60, 1.0, 0.68, rng.choice([WHITE, shade(c, 0.5), shade(c, 1.6)]))
    windows, first = rng.choice([4, 5, 6]), 0.17
    step = (0.97 - first) / windows
    for i in range(windows):
        pen.rect(first + i * step, 0.16, first + (i + 0.86) * step, 0.5, GLASS, 0.03)
        pen.poly(
            [
                (first + (i + 0.3) * step, 0.48),
                (first + (i + 0.6) * step, 0.18),
                (first + (i + 0.75) * step, 0.18),
                (first + (i + 0.45) * step, 0.48),
            ],
            shade(GLASS, 1.45),
        )
    pen.rect(0.04, 0.16, 0.14, 0.84, shade(c, 0.5), 0.02)
    pen.rect(0.05, 0.19, 0.085, 0.81, GLASS)
    pen.rect(0.095, 0.19, 0.13, 0.81, GLASS)
    pen.rect(0.0, 0.7, 0.025, 0.8, (252, 236, 160))
    pen.rect(0.975, 0.7, 1.0, 0.8, (190, 30, 30))
    for x in (0.26, 0.78):
        pen.disc(x, 0.85, 0.145, _RUBBER)
        pen.disc(x, 0.85, 0.075, (190, 192, 196))


def bicycle(pen: Pen, c: Colour, rng: random.Random) -> None:
    """A bicycle from the side; ``c`` colours the frame."""
    left, right, hub = (0.21, 0.68), (0.79, 0.68), (0.46, 0.70)
    for x, y in (left, right):
        for ends in (
            ((x - 0.17, y), (x + 0.17, y)),
            ((x, y - 0.27), (x, y + 0.27)),
            ((x - 0.12, y - 0.19), (x + 0.12, y + 0.19)),
            ((x - 0.12, y + 0.19), (x + 0.12, y - 0.19)),
        ):
            pen.line(ends, 0.012, METAL)
        pen.ring(x, y, 0.285, 0.048, _RUBBER)
        pen.disc(x, y, 0.035, shade(METAL, 0.7))
    saddle, head = (0.38, 0.26), (0.69, rng.uniform(0.22, 0.27))
    for tube in (
        (left, hub),
        (hub, saddle),
        (left, (0.4, 0.34)),
        ((0.4, 0.33), (0.70, 0.32)),
        (hub, (0.715, 0.38)),
        (head, right),
    ):
        pen.line(tube, 0.05, c)
    pen.rect(0.30, 0.20, 0.46, 0.265, BLACK, 0.03)
    drop = rng.random() < 0.4
    pen.line([head, (0.66, 0.12), (0.78 if drop else 0.56, 0.11), *([(0.82, 0.22)] if drop else [])], 0.04, BLACK)
    pen.disc(*hub, 0.065, shade(METAL, 0.6))
    pen.line([(0.42, 0.58), hub, (0.50, 0.83)], 0.03, shade(METAL, 0.5))
    pen.line([(0.47, 0.83), (0.54, 0.83)], 0.035, BLACK)


def boat(pen: Pen, c: Colour, rng: random.Random) -> None:
    """A sailing boat; ``c`` colours the hull."""
    mast, sail = rng.uniform(0.46, 0.54), rng.choice([WHITE, shade(c, 1.6), (250, 240, 214), (236, 120, 90)])
    pen.line([(mast, 0.01), (mast, 0.76)], 0.022, (112, 78, 50))
    pen.poly([(mast + 0.03, 0.04), (mast + 0.03, 0.68), (0.96, 0.68)], sail)
    for y in (0.3, 0.5):
        pen.line([(mast + 0.03, y), (mast + 0.03 + (y - 0.04) * 0.68, y)], 0.008, shade(sail, 0.8))
    if rng.random() < 0.75:
        pen.poly([(mast - 0.03, 0.1), (mast - 0.03, 0.68), (0.08, 0.68)], shade(sail, 0.86))
    pen.poly([(mast, 0.0), (mast, 0.06), (mast - 0.13, 0.03)], c)
    pen.poly([(0.0, 0.74), (1.0, 0.74), (0.86, 0.98), (0.14, 0.98)], c)
    pen.poly([(0.0, 0.74), (1.0, 0.74), (0.97, 0.79), (0.03, 0.79)], shade(c, 1.5))
    pen.poly([(0.09, 0.9), (0.91, 0.9), (0.86, 0.98), (0.14, 0.98)], shade(c, 0.6))
    for x in (0.3, 0.5, 0.7):
        pen.disc(x, 0.845, 0.022, WHITE)


def airplane(pen: Pen, c: Colour, rng: random.Random) -> None:
    """An airliner from the side; ``c`` colours the tail and the stripe."""
    body = shade(rng.choice([WHITE, (214, 218, 224)]), 0.97)
    pen.poly([(0.50, 0.44), (0.66, 0.44), (0.50, 0.12), (0.42, 0.12)], shade(body, 0.72))  # far wing
    pen.poly([(0.02, 0.02), (0.13, 0.02), (0.27, 0.44), (0.10, 0.48)], c)
    pen.blob(
        [
            (0.03, 0.46),
            (0.14, 0.38),
            (0.5, 0.36),
            (0.84, 0.38),
            (0.95, 0.46),
            (0.99, 0.55),
            (0.92, 0.62),
            (0.6, 0.66),
            (0.25, 0.60),
        ],
        body,
    )
    pen.poly([(0.10, 0.52), (0.62, 0.53), (0.97, 0.55), (0.97, 0.575), (0.5, 0.59), (0.16, 0.56)], c)
    for i in range(9):
        pen.disc(0.27 + i * 0.065, 0.46, 0.026, (70, 96, 128))
    pen.poly([(0.88, 0.43), (0.94, 0.46), (0.965, 0.5), (0.89, 0.49)], (60, 80, 110))
    pen.poly([(0.42, 0.58), (0.62, 0.58), (0.36, 0.99), (0.25, 0.99)], shade(body, 0.82))  # near wing
    pen.rect(0.42, 0.68, 0.56, 0.81, shade(c, 0.8), 0.06)
    pen.poly([(0.07, 0.47), (0.19, 0.47), (0.08, 0.68), (0.0, 0.68)], shade(c, 0.75))


def kite(pen: Pen, c: Colour, rng: random.Random) -> None:
    """A diamond kite with a tail of bows; ``c`` is the first of its two colours."""
    other = rng.choice([word for word in COLOURS.values() if word != c])
    top, left, bottom, right, middle = (0.55, 0.0), (0.08, 0.26), (0.52, 0.68), (0.98, 0.22), (0.54, 0.25)
    tail = [(0.52, 0.68), (0.60, 0.76), (0.44, 0.86), (0.56, 0.94), (0.46, 0.99)]
    pen.line(tail, 0.016, shade(c, 0.6))
    for x, y in tail[1:]:
        pen.poly([(x - 0.09, y - 0.03), (x + 0.09, y + 0.03), (x + 0.09, y - 0.03), (x - 0.09, y + 0.03)], other)
    for a, b, colour in (
        (top, left, c),
        (left, bottom, other),
        (bottom, right, shade(c, 0.85)),
        (right, top, shade(other, 0.9)),
    ):
        pen.poly([a, b, middle], colour)
    pen.line([top, bottom], 0.016, (90, 66, 44))
    pen.line([left, right], 0.016, (90, 66, 44))


def umbrella(pen: Pen, c: Colour, rng: random.Random) -> None:
    """An open umbrella; ``c`` colours the cloth."""
    other = rng.choice([c, shade(c, 0.75), shade(c, 1.6), WHITE])
    pen.line([(0.5, 0.0), (0.5, 0.9)], 0.03, (96, 74, 56))
    pen.bow(0.58, 0.9, 0.08, 0.075, 180, 10, 0.035, (96, 74, 56))
    pen.pie(0.5, 0.5, 0.5, 0.45, 180, 360, c)
    pen.poly([(0.5, 0.05), (0.29, 0.20), (0.25, 0.5), (0.46, 0.5)], other)
    pen.poly([(0.5, 0.05), (0.71, 0.20), (0.75, 0.5), (0.54, 0.5)], other)
    for i in range(4):  # the cloth hangs in bays between the ribs
        pen.oval(0.125 + 0.25 * i, 0.49, 0.125, 0.055, shade(c, 0.62))
    for x in (0.0, 0.25, 0.5, 0.75, 1.0):
        pen.line([(0.5, 0.05), ((x + 0.5) / 2 + (x - 0.5) * 0.2, 0.2), (x, 0.49)], 0.01, shade(c, 0.5))


def bench(pen: Pen, c: Colour, rng: random.Random) -> None:
    """A slatted bench on iron legs; ``c`` colours the slats."""
    iron = shade(BLACK, 1.15)
    for x in (0.13, 0.83):
        pen.line([(x + 0.02, 0.05), (x + 0.02, 0.6), (x - 0.05, 0.98)], 0.05, iron)
        pen.line([(x + 0.02, 0.6), (x + 0.08, 0.98)], 0.05, iron)
    for i in range(rng.choice([3, 4])):
        pen.rect(0.02, 0.04 + i * 0.125, 0.98, 0.13 + i * 0.125, shade(c, 1.05 - i * 0.06), 0.02)
    for i in range(3):
        pen.rect(0.02 - i * 0.01, 0.56 + i * 0.065, 0.98 + i * 0.01, 0.61 + i * 0.065, shade(c, 1.2 - i * 0.08), 0.02)
    for x in (0.1, 0.9):
        pen.line([(x, 0.4), (x + 0.01, 0.38), (x + 0.03, 0.58)], 0.05, iron)


def traffic_light(pen: Pen, c: Colour, rng: random.Random) -> None:
    """Three lights on a pole, one lit; ``c`` colours the housing."""
    pen.rect(0.42, 0.6, 0.58, 1.0, (86, 90, 94))
    pen.rect(0.28, 0.96, 0.72, 1.0, (70, 72, 76))
    pen.rect(0.1, 0.0, 0.9, 0.66, c, 0.05)
    pen.rect(0.17, 0.02, 0.83, 0.64, shade(c, 0.75), 0.04)
    lit = rng.randrange(3)
    for i, colour in enumerate(((236, 40, 36), (250, 190, 40), (50, 210, 90))):
        y = 0.125 + i * 0.205
        pen.disc(0.5, y, 0.092, BLACK)
        pen.disc(0.5, y, 0.08, colour if i == lit else shade(colour, 0.42))
        if i == lit:
            pen.disc(0.46, y - 0.015, 0.03, shade(colour, 1.6))
        pen.poly(
            [
                (0.06, y - 0.06),
                (0.2, y - 0.085),
                (0.8, y - 0.085),
                (0.94, y - 0.06),
                (0.8, y - 0.065),
                (0.2, y - 0.065),
            ],
            BLACK,
        )


def stop_sign(pen: Pen, c: Colour, rng: random.Random) -> None:
    """An octagonal sign on a pole; ``c`` is the face."""
    k = 0.2929  # an octagon's cut corner, as a share of its side box
    pen.rect(0.46, 0.5, 0.54, 1.0, METAL)
    for grow, colour in ((0.0, WHITE), (0.03, c)):
        x0, x1, y0, y1 = grow, 1 - grow, grow * 0.55, 0.55 - grow * 0.55
        dx, dy = (x1 - x0) * k, (y1 - y0) * k
        pen.poly(
            [
                (x0 + dx, y0),
                (x1 - dx, y0),
                (x1, y0 + dy),
                (x1, y1 - dy),
                (x1 - dx, y1),
                (x0 + dx, y1),
                (x0, y1 - dy),
                (x0, y0 + dy),
            ],
            colour,
        )
    letters = (
        [(0.9, 0.1), (0.5, 0.0), (0.1, 0.15), (0.15, 0.4), (0.85, 0.6), (0.9, 0.85), (0.5, 1.0), (0.1, 0.9)],
        [(0.0, 0.0), (1.0, 0.0), (0.5, 0.0), (0.5, 1.0)],
        [(0.5, 0.0), (0.95, 0.2), (0.95, 0.8), (0.5, 1.0), (0.05, 0.8), (0.05, 0.2), (0.5, 0.0)],
        [(0.1, 1.0), (0.1, 0.0), (0.7, 0.0), (0.95, 0.15), (0.95, 0.4), (0.7, 0.55), (0.1, 0.55)],
    )
    for i, stroke in enumerate(letters):
        pen.line([(0.12 + i * 0.2 + x * 0.15, 0.19 + y * 0.17) for x, y in stroke], 0.024, WHITE)
