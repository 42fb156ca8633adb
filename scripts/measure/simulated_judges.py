"""Judges with known faults, simulated: things of M images in topics, seen with noise; captions of known truth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from proven_names import counts
from scipy import sparse
from sklearn.isotonic import IsotonicRegression

from symbal_hf.auditing.engine import association_pairs
from symbal_hf.auditing.evidence import Evidence
from symbal_hf.auditing.judges.protocol import UNMEASURED, Beliefs, Measured, ScorerName, log_ratio_of
from symbal_hf.auditing.units import Units, units_of
from symbal_hf.auditing.verdict import conclude
from symbal_hf.data.table import AuditData
from symbal_hf.followup.human_labels import second_look_on
from symbal_hf.language.concepts import Concepts
from symbal_hf.language.facts import Facts
from symbal_hf.results.findings import AuditResult

THINGS, TOPICS, IMAGES = 12, 2, 600
STATED = 0.6  # share of the things in view that a caption states
SHARPNESS = 2.5  # standard deviations between what a judge sees of a thing that is there, and of one that is not
SECOND = 2.0  # the same of the second judge
FEWEST_TOGETHER = 30  # images that show both t and v


@dataclass(frozen=True)
class World:
    """What M images show.

    Attributes:
        shows: (M, P) whether the image shows the thing.
        topic: (M,) of each image; `home` (P,) of each thing.
        rng: all chance of a run.
    """

    shows: NDArray[np.bool_]
    topic: NDArray[np.int64]
    home: NDArray[np.int64]
    rng: np.random.Generator

    @classmethod
    def of(cls, seed: int, images: int = IMAGES, things: int = THINGS) -> World:
        """Things are common in images of their own topic, and rare elsewhere."""
        rng = np.random.default_rng(seed)
        topic, home = rng.integers(TOPICS, size=images), rng.integers(TOPICS, size=things)
        common, rare = rng.uniform(0.15, 0.6, things), rng.uniform(0.005, 0.05, things)
        chance = np.where(topic[:, None] == home[None, :], common, rare)
        return cls(rng.random((images, things)) < chance, topic, home, rng)

    def told(self, recall: NDArray[np.float64] | float = STATED) -> NDArray[np.bool_]:
        """(M, P) of a truthful caption, what it states."""
        return self.shows & (self.rng.random(self.shows.shape) < recall)

    def pair(self) -> tuple[int, int] | None:
        """Some t and v of one topic that are often in view together; None where there are none."""
        together = self.shows.T.astype(np.int64) @ self.shows
        fit = (self.home[:, None] == self.home[None, :]) & (together >= FEWEST_TOGETHER)
        np.fill_diagonal(fit, False)
        pairs = np.argwhere(fit)
        return tuple(self.rng.choice(pairs).tolist()) if len(pairs) else None

    def presence(self, shift: NDArray[np.float64] | float = 0.0, sharpness: float = SHARPNESS) -> NDArray[np.float64]:
        """(M, P) what a judge believes that is calibrated but for `shift`, what is added to its signal."""
        signal = self.rng.standard_normal(self.shows.shape) + sharpness * self.shows + shift
        usual = self.shows.mean(0)
        odds = sharpness * signal - sharpness**2 / 2 + np.log(usual / (1 - usual))
        return 1 / (1 + np.exp(-odds))


def thing_names(things: int) -> tuple[str, ...]:
    """Names of which none is part of another."""
    return tuple(f"thing{i}" for i in range(things))


def measured(told: NDArray[np.bool_], presence: NDArray[np.float64]) -> Measured:
    """What a judge that believes in `presence` (M, P) shows on true captions, by the rule of the packaged names."""
    columns = zip(thing_names(told.shape[1]), told.T, presence.T, strict=True)
    return {name: shown for name, stated, p in columns if (shown := counts(stated, p)) is not None}


@dataclass(frozen=True)
class Witness:
    """A second judge of the same images with noise of its own."""

    odds: NDArray[np.float64]
    names: tuple[str, ...]
    name, by_card = "simulated", True

    def knows(self, name: str) -> bool:
        """Whether it was taught this name."""
        return name in self.names

    def with_first(self, names: Sequence[str], presence: NDArray[np.float32]) -> NDArray[np.float32]:
        """(N, P) presence by both: they see independently of each other."""
        known = self.odds[:, [self.names.index(name) for name in names]]
        p = np.clip(presence, 1e-4, 1 - 1e-4)
        return np.asarray(1 / (1 + (1 - p) / p * np.exp(-known)), np.float32)

    def worth(self, name: str, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """(n,) log of how much better "the image shows it" explains what it sees."""
        return self.odds[rows, self.names.index(name)]

    def log_ratio(self, name: str, rows: NDArray[np.int64], **_: NDArray[np.int64]) -> NDArray[np.float64]:
        """The opposite of `worth`."""
        return -self.worth(name, rows)


def simulated(
    told: NDArray[np.bool_],
    presence: NDArray[np.float64],
    *,
    image: NDArray[np.int64] | None = None,
    scorer: ScorerName = "embedding",
    table: Measured = UNMEASURED,
    second: NDArray[np.float64] | None = None,
) -> Evidence:
    """Evidence of N rows whose captions state `told` (N, P), by a judge that believes in `presence` (N, P).

    Args:
        told: and `presence`: of rows.
        image: (N,) which image each row shows; its own by default.
        scorer: whose opinion that is.
        table: see `symbal_hf.auditing.judges.protocol.Beliefs.measured`.
        second: (N, P) presence by a second judge.
    """
    n, names = len(told), thing_names(told.shape[1])
    rows, columns = np.nonzero(told)
    ones = np.ones(len(rows), np.float32)
    by_fact = sparse.csr_matrix((ones, (np.arange(len(rows)), columns)), (len(rows), len(names)))
    facts = Facts(rows.astype(np.int64), tuple(f"There is a {names[c]}." for c in columns), n)
    shown = None if image is None else tuple(map(str, image))
    data = AuditData(tuple(map(str, range(n))), ("x",) * n, None, None, None, (), "simulated", shown=shown)
    beliefs = Beliefs(presence.astype(np.float32), log_ratio_of(presence), scorer, False, table)
    nothing: Any = None
    return Evidence(
        data,
        Concepts(names, by_fact, facts),
        beliefs,
        vectors=None,
        embed=nothing,
        images=nothing,
        judged=nothing,
        units=units_of(shown),
        second=None if second is None else Witness(-log_ratio_of(second).astype(np.float64), names),  # type: ignore[arg-type]
    )


def verdict(evidence: Evidence) -> AuditResult:
    """An audit of this evidence with the usual gates."""
    return conclude(evidence, association_pairs(evidence))


@dataclass(frozen=True)
class Scenario:
    """Truthful captions, or errors at random images, by a judge with a fault.

    Attributes:
        sharpness: of the judge. over: what its log-odds are multiplied by.
        blind: standard deviations by which t is weaker where v is in view, in a `part` of these images.
        recall: share of t in view that is stated, with v and without.
        surroundings: what images of its own topic add to the signal of each thing.
        dark: what a quarter of the images take from every signal of what is there.
        recalibrated: presence is made right on the truth, whatever else is in view.
        errors: captions that state one thing falsely, chosen at random; `copies` of each image.
        real: share of images with v and without t whose captions state t: an error that should be found.
    """

    sharpness: float = SHARPNESS
    over: float = 1.0
    blind: float = 0.0
    part: float = 1.0
    recall: tuple[float, float] = (STATED, STATED)
    surroundings: float = 0.0
    dark: float = 0.0
    recalibrated: bool = False
    errors: int = 0
    copies: int = 1
    real: float = 0.0


SCENARIOS = {
    "A truthful captions, calibrated judge": Scenario(),
    "A1 weak judge (1.5 sd)": Scenario(sharpness=1.5),
    "A2 log-odds x 1.5": Scenario(over=1.5),
    "A3 log-odds x 2": Scenario(over=2),
    "B0 60 random errors": Scenario(errors=60),
    "B1 200 random errors": Scenario(errors=200),
    "C1 t is 1 sd weaker beside v": Scenario(blind=1),
    "C2 t is invisible beside v": Scenario(blind=2.5),
    "C3 t is denied beside v": Scenario(blind=4),
    "C4 invisible in half of these images": Scenario(blind=2.5, part=0.5),
    "D2 invisible, t stated .9 with v, .3 without": Scenario(blind=2.5, recall=(0.9, 0.3)),
    "D3 denied, stated .9 / .3": Scenario(blind=4, recall=(0.9, 0.3)),
    "D4 as D2, recalibrated on the truth": Scenario(blind=2.5, recall=(0.9, 0.3), recalibrated=True),
    "D5 as D3, recalibrated on the truth": Scenario(blind=4, recall=(0.9, 0.3), recalibrated=True),
    "E1 own topic adds 1 sd": Scenario(surroundings=1),
    "E2 own topic adds 2 sd": Scenario(surroundings=2),
    "E3 as E2, 100 random errors": Scenario(surroundings=2, errors=100),
    "G1 night takes 1 sd": Scenario(dark=1),
    "G2 night takes 2 sd": Scenario(dark=2),
    "G3 as G2, recalibrated": Scenario(dark=2, recalibrated=True),
    "H1 each image five times, 100 random errors": Scenario(errors=100, copies=5),
    "real error in .4 of the images with v": Scenario(real=0.4),
}


@dataclass(frozen=True)
class Run:
    """One run: of M images, not yet of copies.

    Attributes:
        world: what they show.
        told: (M, P) what captions state.
        presence: (M, P) by the judge; `second` by the second one.
        pair: (t, v) of a blind spot or a real error.
        table: what the judge shows on true captions that state as much everywhere, in fresh looks at these images.
    """

    world: World
    told: NDArray[np.bool_]
    presence: NDArray[np.float64]
    second: NDArray[np.float64]
    pair: tuple[int, int] | None
    table: Measured


def run_of(case: Scenario, seed: int) -> Run:
    """What one seed gives."""
    world = World.of(seed, IMAGES // case.copies)
    shows, rng = world.shows, world.rng
    if case.dark:
        shows[:, -1] = rng.random(len(shows)) < 0.25
    told, shift, pair = world.told(), np.zeros(shows.shape), world.pair() if case.blind or case.real else None
    if pair is not None:
        t, v = pair
        both = shows[:, t] & shows[:, v]
        shift[both & (rng.random(len(shows)) < case.part), t] -= case.blind
        told[:, t] = shows[:, t] & (rng.random(len(shows)) < np.where(shows[:, v], *case.recall))
        told[:, t] |= ~shows[:, t] & shows[:, v] & (rng.random(len(shows)) < case.real)
    shift += case.surroundings * (world.topic[:, None] == world.home[None, :])
    if case.dark:
        shift -= case.dark * (shows & shows[:, -1:] & (np.arange(shows.shape[1]) < shows.shape[1] - 1))
    presence, second = _looked(case, world, shift), world.presence(sharpness=SECOND)
    table = measured(world.told(), _looked(case, world, shift))
    return Run(world, told, presence, second, pair, table)


def _looked(case: Scenario, world: World, shift: NDArray[np.float64]) -> NDArray[np.float64]:
    """(M, P) presence by the judge of a scenario."""
    presence, usual = world.presence(shift, case.sharpness), world.shows.mean(0)
    odds = np.log(presence / (1 - presence))
    usual_odds = np.log(usual / (1 - usual))
    presence = 1 / (1 + np.exp(-(usual_odds + (odds - usual_odds) * case.over)))
    if case.recalibrated:
        right = IsotonicRegression(out_of_bounds="clip")
        for c in range(world.shows.shape[1]):
            presence[:, c] = np.clip(right.fit_transform(presence[:, c], world.shows[:, c]), 1e-3, 1 - 1e-3)
    return presence


# What a second look adds to the signal of t beside v, in which share of these images.
LOOKS = {"even": (0.0, 1.0), "1 sd weaker beside v": (-1.0, 1.0), "blind to half of t beside v": (-SECOND, 0.5)}


def second_look(case: Scenario, seed: int, look: str) -> str | None:
    """What `symbal validate` says of the accusation of (t, v); None where the audit makes none."""
    run = run_of(case, seed)
    if run.pair is None:
        return None
    t, v = run.pair
    result = verdict(simulated(run.told, run.presence))
    names = thing_names(run.told.shape[1])
    accused = (f for f in result.suspected if (f.textual_error, f.visual_feature) == (names[t], names[v]))
    if (finding := next(accused, None)) is None:
        return None
    weaker, share = LOOKS[look]
    shift, both = np.zeros(run.world.shows.shape), run.world.shows[:, t] & run.world.shows[:, v]
    shift[both & (run.world.rng.random(len(both)) < share), t] = weaker
    sees, ids = run.world.presence(shift, SECOND)[:, t] > 0.5, [str(i) for i in range(len(both))]
    erroneous = (run.told[:, t] & ~sees).astype(np.float64)
    return str(second_look_on(finding, ids, erroneous, run.told[:, t], units=Units())["says"])


def random_errors(
    told: NDArray[np.bool_], lacks: NDArray[np.bool_], n: int, rng: np.random.Generator, image: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """`told` (N, P) of rows with n statements of one thing at rows, or whole images (M, P), that lack it."""
    usual = np.flatnonzero(((~lacks).mean(0) > 0.05) & ((~lacks).mean(0) < 0.3))
    t, out = int(rng.choice(usual)), told.copy()
    out[np.isin(image, rng.choice(np.flatnonzero(lacks[:, t]), n, replace=False)), t] = True
    return out
