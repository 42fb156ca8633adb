"""Recipes for furniture and household machines: each draws one object into the unit box of a pen."""

from __future__ import annotations

import math
import random

from benchmark_builder.scenes.objects_pen import BLACK, COLOURS, METAL, WHITE, Colour, Pen, shade


def chair(pen: Pen, c: Colour, rng: random.Random) -> None:
    """A dining chair with a slatted back; ``c`` colours the frame."""
    dark, slats = shade(c, 0.7), rng.choice([2, 3, 4])
    pen.rect(0.16, 0.56, 0.24, 0.92, dark)
    pen.rect(0.70, 0.56, 0.78, 0.92, dark)
    pen.rect(0.12, 0.0, 0.21, 0.6, c, 0.03)
    pen.rect(0.74, 0.0, 0.83, 0.6, c, 0.03)
    pen.rect(0.12, 0.03, 0.83, 0.12, c, 0.03)
    if rng.random() < 0.5:
        for i in range(slats):
            x = 0.28 + i * 0.4 / max(1, slats - 1) - 0.025
            pen.rect(x, 0.1, x + 0.06, 0.52, shade(c, 0.88))
    else:
        for i in range(slats):
            pen.rect(0.18, 0.17 + i * 0.1, 0.78, 0.22 + i * 0.1, shade(c, 0.88))
    cushion = rng.choice([shade(c, 1.3), COLOURS["red"], (210, 190, 150)])
    pen.poly([(0.14, 0.5), (0.82, 0.5), (0.98, 0.63), (0.0, 0.63)], cushion)
    pen.rect(0.0, 0.625, 0.98, 0.69, c, 0.02)
    pen.rect(0.02, 0.67, 0.12, 1.0, c)
    pen.rect(0.86, 0.67, 0.96, 1.0, c)


def couch(pen: Pen, c: Colour, rng: random.Random) -> None:
    """A couch for two or three; ``c`` is the cover."""
    seats = rng.choice([2, 3])
    for x in (0.08, 0.87):
        pen.rect(x, 0.88, x + 0.05, 1.0, (80, 54, 36))
    pen.rect(0.06, 0.02, 0.94, 0.7, shade(c, 0.85), 0.14)
    width = 0.76 / seats
    for i in range(seats):
        x = 0.12 + i * width
        pen.rect(x + 0.005, 0.1, x + width - 0.005, 0.58, c, 0.09)
        pen.rect(x + 0.003, 0.54, x + width - 0.003, 0.74, shade(c, 1.2), 0.07)
    pen.rect(0.08, 0.72, 0.92, 0.91, shade(c, 0.75), 0.04)
    for x in (0.0, 0.86):
        pen.rect(x, 0.34, x + 0.14, 0.92, shade(c, 0.95), 0.12)
        pen.oval(x + 0.07, 0.43, 0.062, 0.08, shade(c, 1.25))
    if rng.random() < 0.6:
        pillow = rng.choice([(236, 214, 160), (222, 110, 90), (120, 170, 170)])
        pen.poly([(0.18, 0.32), (0.33, 0.24), (0.38, 0.54), (0.22, 0.6)], pillow)


def table(pen: Pen, c: Colour, rng: random.Random) -> None:
    """A long table on four legs or a round one on a foot; ``c`` is the top."""
    dark = shade(c, 0.66)
    if rng.random() < 0.35:  # round, on one foot
        pen.rect(0.46, 0.2, 0.54, 0.92, dark)
        pen.poly([(0.46, 0.78), (0.54, 0.78), (0.78, 0.98), (0.70, 1.0), (0.5, 0.88), (0.3, 1.0), (0.22, 0.98)], dark)
        pen.oval(0.5, 0.24, 0.5, 0.2, dark)
        pen.oval(0.5, 0.19, 0.5, 0.19, c)
        pen.oval(0.5, 0.17, 0.38, 0.12, shade(c, 1.12))
        return
    for x, end in ((0.2, 0.8), (0.76, 0.8)):
        pen.rect(x, 0.3, x + 0.045, end, shade(c, 0.5))
    pen.rect(0.05, 0.36, 0.95, 0.48, dark)
    for x in (0.05, 0.89):
        pen.rect(x, 0.36, x + 0.06, 1.0, shade(c, 0.82))
    pen.poly([(0.16, 0.04), (0.84, 0.04), (1.0, 0.33), (0.0, 0.33)], c)
    for t in (0.25, 0.5, 0.75):
        pen.line([(0.16 + 0.68 * t, 0.05), (t, 0.32)], 0.012, shade(c, 0.82))
    pen.rect(0.0, 0.325, 1.0, 0.385, shade(c, 0.78))


def bed(pen: Pen, c: Colour, rng: random.Random) -> None:
    """A bed from the side, pillows at one end; ``c`` is the blanket."""
    wood = rng.choice([(124, 82, 50), (166, 124, 82), (74, 52, 42), (214, 206, 196)])
    fold = rng.uniform(0.36, 0.46)
    pen.rect(0.0, 0.0, 0.09, 1.0, wood, 0.03)
    pen.rect(0.015, 0.06, 0.075, 0.5, shade(wood, 1.2), 0.02)
    pen.rect(0.93, 0.4, 1.0, 1.0, wood, 0.03)
    pen.rect(0.06, 0.72, 0.96, 0.88, shade(wood, 0.8))
    pen.rect(0.08, 0.44, 0.94, 0.76, (236, 234, 228), 0.06)
    pen.rect(0.10, 0.22, 0.31, 0.48, WHITE, 0.1)
    pen.rect(0.14, 0.28, 0.33, 0.5, (226, 228, 234), 0.1)
    pen.blob(
        [
            (fold, 0.4),
            (0.6, 0.35),
            (0.92, 0.38),
            (0.96, 0.5),
            (0.95, 0.8),
            (0.7, 0.83),
            (fold - 0.01, 0.8),
            (fold - 0.04, 0.6),
        ],
        c,
    )
    pen.poly([(fold - 0.03, 0.4), (fold + 0.09, 0.38), (fold + 0.07, 0.81), (fold - 0.04, 0.8)], shade(c, 1.45))
    for x in (0.6, 0.74, 0.86):
        pen.line([(x, 0.38), (x - 0.015, 0.6), (x, 0.8)], 0.014, shade(c, 0.78))


def lamp(pen: Pen, c: Colour, rng: random.Random) -> None:
    """A lamp with a shade; ``c`` colours the shade."""
    foot, top = rng.choice([(70, 62, 56), (176, 142, 70), (206, 204, 200)]), rng.uniform(0.2, 0.32)
    pen.rect(0.47, 0.36, 0.53, 0.96, foot)
    if rng.random() < 0.5:  # a table lamp with a round body
        pen.oval(0.5, 0.76, 0.2, 0.15, shade(foot, 1.15))
        pen.oval(0.44, 0.72, 0.05, 0.05, shade(foot, 1.5))
    pen.rect(0.22, 0.94, 0.78, 1.0, foot, 0.03)
    pen.poly([(top, 0.0), (1 - top, 0.0), (1.0, 0.4), (0.0, 0.4)], c)
    pen.poly([(0.5 - (0.5 - top) * 0.4, 0.0), (0.5 + (0.5 - top) * 0.4, 0.0), (0.74, 0.4), (0.26, 0.4)], shade(c, 1.5))
    pen.rect(0.0, 0.375, 1.0, 0.41, shade(c, 0.72))
    pen.oval(0.5, 0.415, 0.1, 0.03, (255, 246, 190))


def television(pen: Pen, c: Colour, rng: random.Random) -> None:
    """A flat screen on a stand; ``c`` colours the casing."""
    pen.poly([(0.44, 0.82), (0.56, 0.82), (0.6, 0.96), (0.4, 0.96)], shade(c, 0.7))
    pen.rect(0.24, 0.945, 0.76, 1.0, shade(c, 0.8), 0.02)
    pen.rect(0.0, 0.0, 1.0, 0.86, c, 0.03)
    sky, land = rng.choice(
        [((96, 150, 220), (70, 130, 70)), ((240, 150, 90), (90, 60, 90)), ((26, 40, 70), (40, 90, 130))]
    )
    pen.rect(0.03, 0.045, 0.97, 0.79, sky)
    pen.poly([(0.03, 0.79), (0.03, 0.55), (0.3, 0.4), (0.52, 0.6), (0.75, 0.46), (0.97, 0.62), (0.97, 0.79)], land)
    pen.disc(rng.uniform(0.2, 0.8), 0.2, 0.07, (252, 236, 170))
    pen.poly([(0.1, 0.045), (0.3, 0.045), (0.12, 0.79), (0.03, 0.79), (0.03, 0.4)], shade(sky, 1.25))
    pen.disc(0.95, 0.825, 0.012, (220, 40, 40))


def clock(pen: Pen, c: Colour, rng: random.Random) -> None:
    """A round wall clock at any time; ``c`` colours the rim."""
    pen.disc(0.5, 0.5, 0.49, c)
    pen.disc(0.5, 0.5, 0.405, shade(c, 0.7))
    face = rng.choice([WHITE, (250, 244, 224)])
    pen.disc(0.5, 0.5, 0.385, face)
    for i in range(12):
        sin, cos = math.sin(i * math.pi / 6), math.cos(i * math.pi / 6)
        inner = 0.28 if i % 3 == 0 else 0.32
        pen.line(
            [(0.5 + inner * sin, 0.5 - inner * cos), (0.5 + 0.35 * sin, 0.5 - 0.35 * cos)],
            0.03 if i % 3 == 0 else 0.018,
            BLACK,
        )
    hour, minute = rng.uniform(0, 12), rng.uniform(0, 12)
    for turn, reach, thick in ((hour, 0.2, 0.045), (minute, 0.29, 0.03)):
        pen.line(
            [(0.5, 0.5), (0.5 + reach * math.sin(turn * math.pi / 6), 0.5 - reach * math.cos(turn * math.pi / 6))],
            thick,
            BLACK,
        )
    pen.disc(0.5, 0.5, 0.035, (190, 40, 40))


def refrigerator(pen: Pen, c: Colour, rng: random.Random) -> None:
    """A two-door refrigerator; ``c`` colours the doors."""
    split = rng.choice([0.3, 0.36, 0.62])
    for x in (0.08, 0.8):
        pen.rect(x, 0.96, x + 0.12, 1.0, BLACK)
    pen.rect(0.0, 0.0, 1.0, 0.975, shade(c, 0.72), 0.03)
    for y0, y1 in ((0.0, split - 0.006), (split + 0.006, 0.965)):
        pen.rect(0.0, y0, 0.94, y1, c, 0.03)
        pen.rect(0.05, y0 + 0.02, 0.16, y1 - 0.02, shade(c, 1.35), 0.03)
    pen.rect(0.78, split - 0.17, 0.84, split - 0.04, shade(METAL, 0.6), 0.02)
    pen.rect(0.78, split + 0.04, 0.84, split + 0.2, shade(METAL, 0.6), 0.02)
    if rng.random() < 0.5:  # notes held by magnets
        pen.rect(0.3, 0.12, 0.5, 0.22, (250, 236, 140))
        pen.rect(0.52, 0.09, 0.66, 0.17, (236, 130, 130))


def oven(pen: Pen, c: Colour, rng: random.Random) -> None:
    """A cooker with a glass door and pan rings; ``c`` is the enamel."""
    pen.rect(0.04, 0.95, 0.96, 1.0, BLACK)
    pen.rect(0.0, 0.1, 1.0, 0.97, c, 0.03)
    pen.rect(0.0, 0.08, 1.0, 0.13, shade(c, 0.6))
    for x in (0.24, 0.72):  # pan rings seen from the side
        pen.oval(x, 0.07, 0.17, 0.05, BLACK)
        pen.oval(x, 0.06, 0.11, 0.028, (200, 70, 50) if rng.random() < 0.4 else (90, 90, 94))
    pen.rect(0.03, 0.15, 0.97, 0.29, shade(c, 0.82), 0.02)
    for i in range(4):
        x = 0.14 + i * 0.11 + (0.18 if i > 1 else 0)
        pen.disc(x + 0.05, 0.22, 0.045, BLACK)
        pen.line([(x + 0.05, 0.22), (x + 0.05, 0.185)], 0.014, WHITE)
    pen.rect(0.42, 0.185, 0.56, 0.255, (40, 90, 70))
    pen.rect(0.06, 0.33, 0.94, 0.92, shade(c, 0.88), 0.03)
    pen.rect(0.15, 0.47, 0.85, 0.83, (52, 44, 42), 0.04)
    pen.rect(0.2, 0.52, 0.8, 0.78, (112, 76, 48) if rng.random() < 0.5 else (84, 72, 66), 0.02)
    for y in (0.6, 0.69):
        pen.line([(0.2, y), (0.8, y)], 0.012, METAL)
    pen.rect(0.12, 0.37, 0.88, 0.415, (206, 208, 212), 0.02)


def toilet(pen: Pen, c: Colour, rng: random.Random) -> None:
    """A toilet from the front, lid up or down; ``c`` is the glaze."""
    dark, up = shade(c, 0.78), rng.random() < 0.6  # the lid is up or down
    pen.rect(0.14, 0.04, 0.86, 0.42, c, 0.05)
    pen.rect(0.10, 0.0, 0.90, 0.075, shade(c, 0.92), 0.03)
    pen.rect(0.2, 0.11, 0.3, 0.14, METAL, 0.01)
    pen.poly([(0.3, 0.6), (0.7, 0.6), (0.66, 0.86), (0.8, 1.0), (0.2, 1.0), (0.34, 0.86)], dark)
    pen.blob(
        [(0.1, 0.56), (0.5, 0.5), (0.9, 0.56), (0.78, 0.76), (0.6, 0.86), (0.4, 0.86), (0.22, 0.76)], shade(c, 0.9)
    )
    if up:
        pen.oval(0.5, 0.36, 0.34, 0.2, shade(c, 0.86))
        pen.oval(0.5, 0.36, 0.29, 0.165, shade(c, 0.97))
    pen.oval(0.5, 0.56, 0.42, 0.13, c)
    if up:
        pen.oval(0.5, 0.57, 0.29, 0.08, shade(c, 0.5))
        pen.oval(0.5, 0.59, 0.2, 0.05, (150, 196, 214))
    else:
        pen.oval(0.5, 0.55, 0.36, 0.1, shade(c, 0.93))
    pen.rect(0.26, 0.42, 0.36, 0.47, dark, 0.01)
    pen.rect(0.64, 0.42, 0.74, 0.47, dark, 0.01)


def sink(pen: Pen, c: Colour, rng: random.Random) -> None:
    """A basin on a pedestal with a tap; ``c`` is the glaze."""
    dark = shade(c, 0.74)
    pen.poly([(0.4, 0.55), (0.6, 0.55), (0.57, 0.9), (0.66, 1.0), (0.34, 1.0), (0.43, 0.9)], dark)
    pen.line([(0.5, 0.3), (0.5, 0.06), (0.56, 0.03), (0.64, 0.06), (0.64, 0.15)], 0.05, METAL)
    for x, colour in ((0.36, (206, 60, 60)), (0.64, (60, 100, 206))):
        pen.rect(x - 0.025, 0.2, x + 0.025, 0.3, METAL)
        pen.line([(x - 0.05, 0.2), (x + 0.05, 0.2)], 0.04, METAL)
        pen.disc(x, 0.19, 0.02, colour)
    pen.pie(0.5, 0.36, 0.47, 0.32, 0, 180, shade(c, 0.88))
    pen.oval(0.5, 0.35, 0.5, 0.1, c)
    pen.oval(0.5, 0.36, 0.41, 0.072, shade(c, 0.62))
    pen.oval(0.5, 0.375, 0.3, 0.045, (164, 206, 222) if rng.random() < 0.5 else shade(c, 0.75))
    pen.oval(0.3, 0.5, 0.1, 0.035, shade(c, 1.3))
