"""Recipes for food and for things one can carry: each draws one object into the unit box of a pen."""

from __future__ import annotations

import math
import random

from benchmark_builder.scenes.objects_pen import BLACK, COLOURS, METAL, WHITE, Colour, Pen, shade

_FIVE = ((0.0, -1.0), (0.95, -0.31), (0.59, 0.81), (-0.59, 0.81), (-0.95, -0.31))  # corners of a regular pentagon


def _inside(x: float, y: float) -> tuple[float, float]:
    """The point, pulled back onto the disc that fills the box."""
    pull = min(1.0, 0.48 / max(1e-6, math.hypot(x - 0.5, y - 0.5)))
    return 0.5 + (x - 0.5) * pull, 0.5 + (y - 0.5) * pull


def ball(pen: Pen, c: Colour, rng: random.Random) -> None:
    """A football or a beach ball; ``c`` is the main colour."""
    pen.disc(0.5, 0.5, 0.49, c)
    if rng.random() < 0.5:  # a football: one five-sided patch in the middle, others cut off by the rim
        patch = shade(c, 0.2) if sum(c) > 400 else WHITE
        for cx, cy, s in ((0.5, 0.5, 0.15), *((0.5 + 0.4 * x, 0.5 + 0.4 * y, 0.15) for x, y in _FIVE)):
            pen.line([(0.5, 0.5), (cx, cy)], 0.02, patch)
            pen.poly([_inside(cx + s * x, cy + s * y) for x, y in _FIVE], patch)
    else:  # a beach ball: wedges that meet at a pole
        for i in range(3):
            pen.pie(0.5, 0.5, 0.49, 0.49, i * 120, i * 120 + 60, WHITE if sum(c) < 640 else (222, 70, 60))
        pen.disc(0.5, 0.5, 0.08, shade(c, 0.8))
        pen.oval(0.32, 0.3, 0.1, 0.07, shade(c, 1.7), -40)


def suitcase(pen: Pen, c: Colour, rng: random.Random) -> None:
    """A wheeled case with its handle out; ``c`` is the shell."""
    tall = rng.uniform(0.0, 0.12)
    pen.line([(0.3, 0.3), (0.3, tall + 0.02), (0.7, tall + 0.02), (0.7, 0.3)], 0.03, METAL)
    pen.line([(0.33, tall + 0.02), (0.67, tall + 0.02)], 0.05, BLACK)
    for x in (0.16, 0.84):
        pen.disc(x, 0.96, 0.04, BLACK)
    pen.rect(0.02, 0.24, 0.98, 0.95, c, 0.08)
    for i in range(5):
        x = 0.15 + i * 0.17
        pen.line([(x, 0.3), (x, 0.9)], 0.022, shade(c, 0.72))
        pen.line([(x + 0.03, 0.3), (x + 0.03, 0.9)], 0.012, shade(c, 1.35))
    pen.line([(0.38, 0.24), (0.4, 0.2), (0.6, 0.2), (0.62, 0.24)], 0.03, shade(c, 0.5))
    if rng.random() < 0.6:
        pen.rect(0.55, 0.62, 0.85, 0.76, (240, 226, 180), 0.02)
        pen.line([(0.6, 0.69), (0.8, 0.69)], 0.015, BLACK)


def laptop(pen: Pen, c: Colour, rng: random.Random) -> None:
    """An open laptop; ``c`` colours the casing."""
    pen.rect(0.13, 0.0, 0.87, 0.64, c, 0.04)
    page = rng.choice([(232, 240, 250), (36, 44, 62), (70, 130, 190)])
    ink = shade(page, 0.55) if sum(page) > 380 else shade(page, 1.6)
    pen.rect(0.165, 0.045, 0.835, 0.59, page)
    pen.rect(0.165, 0.045, 0.835, 0.1, shade(ink, 0.9))
    for i in range(5):
        pen.line([(0.21, 0.17 + i * 0.085), (rng.uniform(0.4, 0.6), 0.17 + i * 0.085)], 0.022, ink)
    pen.rect(0.65, 0.16, 0.79, 0.4, rng.choice([(240, 150, 60), (90, 190, 120), (220, 80, 110)]))
    pen.poly([(0.13, 0.64), (0.87, 0.64), (1.0, 0.94), (0.0, 0.94)], shade(c, 1.15))
    pen.rect(0.0, 0.935, 1.0, 1.0, shade(c, 0.7), 0.03)
    for row in range(4):  # keys, wider apart towards the viewer
        y, spread = 0.675 + row * 0.045, 0.33 + row * 0.02
        for k in range(10):
            x = 0.5 + (k - 4.5) / 4.5 * spread
            pen.rect(x - 0.028, y, x + 0.028, y + 0.032, BLACK if sum(c) > 200 else (120, 120, 124))
    pen.poly([(0.41, 0.86), (0.59, 0.86), (0.61, 0.92), (0.39, 0.92)], shade(c, 0.75))


def book(pen: Pen, c: Colour, rng: random.Random) -> None:
    """A book, open or closed; ``c`` colours the cover."""
    paper = (246, 240, 222)
    if rng.random() < 0.6:  # open, pages up
        pen.poly([(0.0, 0.22), (0.5, 0.34), (1.0, 0.22), (1.0, 0.9), (0.5, 1.0), (0.0, 0.9)], c)
        for side in (-1, 1):
            edge = 0.5 + side * 0.46
            pen.blob(
                [
                    (0.5, 0.28),
                    (0.5 + side * 0.2, 0.1),
                    (edge, 0.14),
                    (edge, 0.45),
                    (edge, 0.82),
                    (0.5 + side * 0.2, 0.8),
                    (0.5, 0.95),
                    (0.5, 0.6),
                ],
                shade(paper, 1.0 if side < 0 else 0.93),
            )
            for i in range(6):
                y = 0.26 + i * 0.09
                pen.line(
                    [(0.5 + side * 0.08, y + 0.04), (0.5 + side * 0.22, y - 0.03), (0.5 + side * 0.39, y - 0.02)],
                    0.018,
                    (120, 116, 108),
                )
        pen.line([(0.5, 0.28), (0.5, 0.95)], 0.02, shade(paper, 0.6))
        return
    pen.poly([(0.2, 0.12), (0.3, 0.02), (0.92, 0.02), (0.92, 0.88), (0.82, 0.98), (0.2, 0.98)], shade(c, 0.6))
    pen.poly([(0.24, 0.12), (0.32, 0.04), (0.9, 0.04), (0.9, 0.86), (0.82, 0.95), (0.8, 0.12)], paper)
    for t in (0.25, 0.5, 0.75):
        pen.line([(0.82 + 0.08 * t, 0.12 - 0.08 * t), (0.82 + 0.08 * t, 0.94 - 0.08 * t)], 0.008, shade(paper, 0.7))
    pen.rect(0.16, 0.12, 0.82, 1.0, c, 0.02)
    pen.rect(0.16, 0.12, 0.25, 1.0, shade(c, 0.7), 0.02)
    pen.rect(0.32, 0.24, 0.74, 0.44, shade(c, 1.65))
    for y in (0.31, 0.38):
        pen.line([(0.38, y), (0.68, y)], 0.025, shade(c, 0.5))
    pen.disc(0.53, 0.68, 0.1, shade(c, 1.5))


def cup(pen: Pen, c: Colour, rng: random.Random) -> None:
    """A mug of something hot, plain, striped or dotted; ``c`` is the glaze."""
    waist = rng.uniform(0.0, 0.1)
    pen.bow(0.74, 0.5, 0.21, 0.23, -90, 90, 0.1, shade(c, 0.8))
    pen.poly([(0.02, 0.13), (0.76, 0.13), (0.74 - waist, 0.9), (0.04 + waist, 0.9)], c)
    pen.oval(0.39, 0.9, 0.35 - waist, 0.09, c)
    pen.poly([(0.10, 0.2), (0.2, 0.22), (0.2, 0.92), (0.11 + waist, 0.9)], shade(c, 1.4))
    style = rng.randrange(3)
    if style == 0:
        for y in (0.42, 0.6):
            pen.rect(0.04 + waist * 0.7, y, 0.74 - waist * 0.7, y + 0.08, shade(c, 0.6))
    elif style == 1:
        for x, y in ((0.3, 0.4), (0.5, 0.55), (0.33, 0.68), (0.6, 0.38), (0.6, 0.74)):
            pen.disc(x, y, 0.05, WHITE if sum(c) < 600 else (210, 70, 70))
    pen.oval(0.39, 0.13, 0.37, 0.12, shade(c, 0.85))
    pen.oval(0.39, 0.14, 0.32, 0.09, rng.choice([(84, 52, 32), (146, 92, 50), (60, 38, 28)]))


def bottle(pen: Pen, c: Colour, rng: random.Random) -> None:
    """A labelled bottle; ``c`` colours the glass."""
    neck, shoulder = rng.uniform(0.15, 0.2), rng.uniform(0.28, 0.38)
    left = [
        (0.5 - neck, 0.04),
        (0.5 - neck, 0.22),
        (0.22, shoulder - 0.02),
        (0.04, shoulder + 0.1),
        (0.04, 0.9),
        (0.1, 0.99),
    ]
    pen.poly([*left, *[(1 - x, y) for x, y in reversed(left)]], c)
    pen.rect(0.12, shoulder + 0.1, 0.22, 0.94, shade(c, 1.5), 0.02)
    pen.rect(0.5 - neck + 0.05, 0.1, 0.5 - neck + 0.12, 0.24, shade(c, 1.5))
    pen.rect(0.8, shoulder + 0.12, 0.92, 0.94, shade(c, 0.7), 0.02)
    paper = rng.choice([(246, 238, 216), WHITE, (240, 214, 120)])
    pen.rect(0.04, 0.56, 0.96, 0.8, paper)
    pen.rect(0.04, 0.58, 0.96, 0.605, shade(c, 0.6))
    pen.oval(0.5, 0.69, 0.22, 0.05, shade(c, 0.7))
    pen.rect(0.46 - neck, 0.0, 0.54 + neck, 0.085, rng.choice([COLOURS["red"], (70, 60, 54), (196, 168, 90)]), 0.02)


def vase(pen: Pen, c: Colour, rng: random.Random) -> None:
    """A vase of flowers; ``c`` colours the vase."""
    petals = rng.choice([(232, 70, 90), (250, 206, 60), (242, 150, 190), (160, 100, 200), WHITE])
    heads = [(0.5, 0.1), (0.22, 0.16), (0.78, 0.17), (0.36, 0.28), (0.66, 0.3)][: rng.choice([3, 4, 5])]
    for x, y in heads:
        pen.line([(0.5 + (x - 0.5) * 0.2, 0.56), (x, y)], 0.018, (60, 120, 56))
    for side in (-1, 1):
        pen.oval(0.5 + side * 0.24, 0.42, 0.16, 0.04, (76, 142, 66), side * -35)
    for x, y in heads:
        for i in range(6):
            angle = i * math.pi / 3
            pen.disc(x + 0.105 * math.cos(angle), y + 0.06 * math.sin(angle), 0.045, petals)
        pen.disc(x, y, 0.036, (240, 190, 50) if petals != (250, 206, 60) else (130, 80, 40))
    belly = rng.uniform(0.32, 0.42)
    half = [(0.16, 0.51), (0.12, 0.58), (belly, 0.76), (belly * 0.8, 0.9), (0.2, 0.985)]
    pen.blob([*[(0.5 - x, y) for x, y in half], *[(0.5 + x, y) for x, y in reversed(half)]], c)
    pen.oval(0.5, 0.515, 0.17, 0.025, shade(c, 0.55))
    pen.oval(0.5 - belly * 0.5, 0.74, 0.06, 0.08, shade(c, 1.5))
    if rng.random() < 0.5:
        pen.rect(0.5 - belly * 0.97, 0.735, 0.5 + belly * 0.97, 0.79, shade(c, 0.65))


def banana(pen: Pen, c: Colour, rng: random.Random) -> None:
    """One to three bananas; ``c`` is the skin."""
    count = rng.choice([1, 2, 3])
    for i in reversed(range(count)):  # each one of the bunch opens a little wider than the one before
        lean, colour = i * 0.13, shade(c, 1.0 - 0.1 * i)
        outer = [
            (0.08, 0.10),
            (0.06, 0.36),
            (0.18, 0.66 + lean * 0.3),
            (0.44, 0.90),
            (0.76, 0.93 - lean),
            (0.97, 0.74 - lean),
        ]
        inner = [(0.93, 0.68 - lean), (0.72, 0.68 - lean), (0.48, 0.58 - lean), (0.30, 0.40 - lean * 0.5), (0.18, 0.10)]
        pen.blob([*outer, *inner], colour)
        pen.line(
            [(0.1, 0.3), (0.24, 0.6), (0.48, 0.77 - lean * 0.6), (0.76, 0.82 - lean), (0.92, 0.73 - lean)],
            0.02,
            shade(colour, 0.78),
        )
        pen.disc(0.955, 0.715 - lean, 0.042, (86, 64, 36))
    pen.poly([(0.07, 0.0), (0.17, 0.0), (0.19, 0.16), (0.07, 0.16)], (116, 96, 48))


def pizza(pen: Pen, c: Colour, rng: random.Random) -> None:
    """A sliced pizza, sometimes with slices missing; ``c`` colours the crust."""
    start = rng.uniform(0, 360)
    end = start + rng.choice([360, 360, 315, 315, 270])  # some slices may be gone
    pen.pie(0.5, 0.53, 0.5, 0.46, start, end, shade(c, 0.62))
    pen.pie(0.5, 0.48, 0.5, 0.46, start, end, c)
    pen.pie(0.5, 0.48, 0.43, 0.39, start, end, (196, 66, 40))
    pen.pie(0.5, 0.48, 0.41, 0.37, start, end, (248, 208, 96))
    for i in range(11):
        angle, reach = start + (i + 0.5) / 11 * (end - start), (0.72, 0.36, 0.62)[i % 3]
        x, y = 0.5 + 0.43 * reach * math.cos(math.radians(angle)), 0.48 + 0.39 * reach * math.sin(math.radians(angle))
        if i % 3 != 1 or i == 4:
            pen.oval(x, y, 0.062, 0.056, (150, 40, 34))
            pen.oval(x, y, 0.048, 0.043, (204, 66, 50))
        else:
            pen.oval(x, y, 0.04, 0.02, (70, 130, 50), angle)
    for cut in range(0, round(end - start) + 1, 45):
        angle = math.radians(start + cut)
        pen.line([(0.5, 0.48), (0.5 + 0.49 * math.cos(angle), 0.48 + 0.45 * math.sin(angle))], 0.014, (150, 92, 44))


def cake(pen: Pen, c: Colour, rng: random.Random) -> None:
    """A layer cake with candles; ``c`` is the icing."""
    sponge, candles = rng.choice([(226, 180, 110), (120, 74, 46), (240, 214, 150)]), rng.choice([3, 4, 5])
    pen.oval(0.5, 0.93, 0.5, 0.07, (216, 220, 226))
    pen.rect(0.1, 0.42, 0.9, 0.88, sponge)
    pen.oval(0.5, 0.88, 0.4, 0.08, sponge)
    pen.rect(0.1, 0.62, 0.9, 0.69, WHITE)
    pen.oval(0.5, 0.69, 0.4, 0.06, WHITE)
    pen.oval(0.5, 0.62, 0.4, 0.06, sponge)
    for i in range(7):
        x, drip = 0.155 + i * 0.115, rng.uniform(0.06, 0.16)
        pen.rect(x - 0.06, 0.4, x + 0.06, 0.5 + drip * (1 - abs(i - 3) * 0.1), c, 0.06)
    pen.oval(0.5, 0.41, 0.4, 0.11, shade(c, 1.3))
    for i in range(candles):
        x = 0.5 + (i - (candles - 1) / 2) * 0.15
        pen.rect(x - 0.018, 0.15, x + 0.018, 0.4, rng.choice([COLOURS["blue"], COLOURS["red"], (250, 250, 240)]))
        pen.oval(x, 0.08, 0.024, 0.062, (252, 170, 40))
        pen.oval(x, 0.095, 0.011, 0.03, (255, 240, 150))


def teddy_bear(pen: Pen, c: Colour, rng: random.Random) -> None:
    """A sitting teddy bear; ``c`` is the fur."""
    dark, pad = shade(c, 0.72), shade(c, 1.45)
    for side in (-1, 1):
        pen.oval(0.5 + side * 0.25, 0.10, 0.13, 0.10, c)
        pen.oval(0.5 + side * 0.25, 0.10, 0.075, 0.06, pad)
        pen.oval(0.5 + side * 0.36, 0.56, 0.12, 0.17, dark, side * rng.choice([-35, 25]))
        pen.oval(0.5 + side * 0.29, 0.87, 0.18, 0.13, dark)
        pen.oval(0.5 + side * 0.31, 0.88, 0.105, 0.085, pad)
    pen.oval(0.5, 0.66, 0.31, 0.27, c)
    pen.oval(0.5, 0.69, 0.19, 0.18, pad)
    pen.oval(0.5, 0.26, 0.32, 0.235, c)
    pen.oval(0.5, 0.33, 0.15, 0.105, pad)
    pen.oval(0.5, 0.285, 0.055, 0.035, BLACK)
    pen.line([(0.5, 0.3), (0.5, 0.36)], 0.012, BLACK)
    pen.bow(0.5, 0.345, 0.06, 0.035, 10, 170, 0.012, BLACK)
    for x in (0.37, 0.63):
        pen.disc(x, 0.215, 0.027, BLACK)
    if rng.random() < 0.5:
        ribbon = rng.choice([COLOURS["red"], COLOURS["blue"]])
        pen.poly([(0.34, 0.43), (0.5, 0.48), (0.34, 0.54)], ribbon)
        pen.poly([(0.66, 0.43), (0.5, 0.48), (0.66, 0.54)], ribbon)
        pen.disc(0.5, 0.485, 0.03, shade(ribbon, 0.7))
