"""The silhouette is the textbook's, only faster; k-means finds the groups that are there, at any size."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import silhouette_samples as textbook_samples
from sklearn.metrics import silhouette_score as textbook_score
from sklearn.metrics.pairwise import cosine_distances

from symbal_hf.stats.clustering import choose_k, cosine_silhouette, silhouette_samples, spherical_kmeans, unit

LIGHT = settings(max_examples=60)


def same_partition(one, other) -> bool:
    """True when two labelings group alike, whatever the groups are called."""
    pairs = set(zip(np.asarray(one).tolist(), np.asarray(other).tolist(), strict=True))
    return len(pairs) == len(set(one)) == len(set(other))


def blobs(k: int, size: int, d: int, *, spread: float = 0.1, seed: int = 0):
    """`k` groups of `size` vectors around directions at right angles, shuffled, of any length; and their labels."""
    rng = np.random.default_rng(seed)
    centre = np.linalg.qr(rng.normal(size=(d, d)))[0][:k]
    truth = rng.permutation(np.arange(k * size) % k)
    x = centre[truth] + spread / np.sqrt(d) * rng.normal(size=(k * size, d))
    return x * rng.uniform(0.1, 10, size=(k * size, 1)), truth


@st.composite
def labelled(draw):
    """Vectors of any length, some repeated, with labels that leave gaps and make singletons."""
    seed = draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    n, d = draw(st.integers(3, 80)), draw(st.integers(2, 24))
    x = rng.normal(size=(n, d)) * 10 ** rng.uniform(-3, 3, size=(n, 1))
    if draw(st.booleans()):
        x = x[rng.integers(0, max(2, n // 2), size=n)]
    if draw(st.booleans()):
        x[rng.integers(0, n, size=2)] = 0
    labels = rng.integers(0, draw(st.integers(2, n)), size=n)
    labels[:2] = 0, 1  # at least two clusters,
    labels[-1] = labels[0]  # one of them no singleton
    return x, (labels - draw(st.integers(0, n))) * draw(st.sampled_from([1, 7, 1000]))


@given(labelled())
@LIGHT
def test_silhouette_is_the_textbook_s_on_any_data(case):
    x, labels = case
    distance = cosine_distances(x)
    distance[distance < 1e-12] = 0  # repeated vectors lie at no distance, whatever rounding says
    np.testing.assert_allclose(
        silhouette_samples(x, labels), textbook_samples(distance, labels, metric="precomputed"), atol=1e-6
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_silhouette_is_sklearn_s_cosine_silhouette(dtype):
    rng = np.random.default_rng(5)
    x = (rng.normal(size=(400, 48)) + 0.5 * rng.normal(size=(5, 48))[np.arange(400) % 5]).astype(dtype)
    x[10] = x[0]  # a repeated vector in the same cluster
    labels = np.arange(400) % 5 * 3 + 11
    labels[7] = -4  # a singleton
    ours, theirs = silhouette_samples(x, labels), textbook_samples(x, labels, metric="cosine")
    np.testing.assert_allclose(ours, theirs, atol=1e-6)
    assert ours[7] == 0
    assert cosine_silhouette(x, labels) == pytest.approx(textbook_score(x, labels, metric="cosine"), abs=1e-6)


@given(labelled(), st.integers(1, 100))
@LIGHT
def test_silhouette_does_not_depend_on_the_chunk(case, chunk):
    x, labels = case
    np.testing.assert_allclose(
        silhouette_samples(x, labels, chunk=chunk), silhouette_samples(x, labels), rtol=0, atol=1e-9
    )


@given(labelled(), st.randoms(use_true_random=False))
@LIGHT
def test_silhouette_depends_on_neither_order_nor_length_nor_cluster_names(case, random):
    x, labels = case
    order = np.array(random.sample(range(len(x)), len(x)))
    renamed = -13 * labels[order]
    np.testing.assert_allclose(
        silhouette_samples(x[order] * 3.7, renamed), silhouette_samples(x, labels)[order], atol=1e-6
    )


def test_equal_vectors_in_two_clusters_have_silhouette_zero():
    row = np.random.default_rng(0).normal(size=(1, 7))
    assert silhouette_samples(np.tile(row, (40, 1)), np.arange(40) % 3).tolist() == [0.0] * 40


@pytest.mark.parametrize(("labels", "named"), [([0] * 6, "got 1"), (range(6), "got 6")])
def test_silhouette_needs_two_clusters_and_a_pair(labels, named):
    with pytest.raises(ValueError, match=f"2 to N-1 = 5 clusters, {named}"):
        silhouette_samples(np.random.default_rng(0).normal(size=(6, 3)), np.array(labels))


def test_unit_keeps_direction_and_zero_rows():
    x = np.array([[3.0, 4.0], [0.0, 0.0], [-1e-3, 0.0]])
    np.testing.assert_allclose(unit(x), [[0.6, 0.8], [0, 0], [-1, 0]], rtol=1e-6)


@given(st.integers(2, 12), st.integers(0, 1000))
@settings(max_examples=25)
def test_kmeans_finds_separate_groups_from_any_seed(k, seed):
    x, truth = blobs(k, 30, 16, seed=seed)
    assert same_partition(spherical_kmeans(x, k, seed=seed), truth)


def test_kmeans_gives_the_same_labels_for_the_same_seed_only():
    x = np.random.default_rng(1).normal(size=(600, 16))
    first = spherical_kmeans(x, 9, seed=3)
    np.testing.assert_array_equal(first, spherical_kmeans(x.copy(), 9, seed=3))
    assert not same_partition(first, spherical_kmeans(x, 9, seed=4))


def test_kmeans_does_not_care_how_long_the_vectors_are():
    x = np.random.default_rng(2).normal(size=(300, 8))
    length = 2.0 ** np.random.default_rng(3).integers(-8, 8, size=(300, 1))  # powers of two scale without rounding
    np.testing.assert_array_equal(spherical_kmeans(x, 6), spherical_kmeans(x * length, 6))


def test_groups_larger_than_faiss_trains_on_are_found_exactly():
    x, truth = blobs(3, 2000, 16)  # faiss would train on 256 * 3 of these 6000
    assert same_partition(spherical_kmeans(x, 3), truth)


def test_kmeans_trains_on_every_vector():
    """A converged answer is its own Lloyd step over ALL vectors; one trained on 256 per cluster is not."""
    x = unit(np.random.default_rng(4).normal(size=(4000, 3)))
    labels = spherical_kmeans(x, 3, iterations=300)
    centre = unit(np.stack([x[labels == c].mean(0) for c in range(3)]))
    assert (np.argmax(x @ centre.T, axis=1) == labels).all()


@given(st.integers(1, 40), st.integers(0, 100))
@LIGHT
def test_kmeans_labels_count_up_from_zero_without_gaps(n, seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 3))[rng.integers(0, n, size=n)]
    k = int(rng.integers(1, n + 1))
    labels = spherical_kmeans(x, k, seed=seed)
    assert labels.dtype == np.int64 and labels.shape == (n,)
    assert set(labels) == set(range(labels.max() + 1)) and labels.max() < k


@pytest.mark.parametrize("k", [0, -1, 6])
def test_kmeans_refuses_a_k_that_cannot_be_and_names_the_range(k):
    with pytest.raises(ValueError, match=rf"k={k} .*\[1, 5\]"):
        spherical_kmeans(np.eye(5), k)


def test_as_many_clusters_as_vectors_leaves_each_alone():
    assert sorted(spherical_kmeans(np.eye(5), 5)) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("planted", [2, 3, 5, 8, 12])
@pytest.mark.parametrize("seed", [0, 1])
def test_choose_k_finds_the_planted_number_of_groups(planted, seed):
    x, truth = blobs(planted, 40, 24, seed=seed)
    found = choose_k(x, range(2, 17), seed=seed)
    assert found.k == planted
    assert same_partition(found.labels, truth)
    scores = dict(found.sweep)
    assert set(scores) == set(range(2, 17))
    assert found.silhouette == max(scores.values()) == scores[planted] == cosine_silhouette(x, found.labels)


def test_choose_k_asks_for_the_given_ks_only_and_reports_progress():
    x, _ = blobs(3, 20, 8)
    seen = []
    found = choose_k(x, [7, 1, 3, 3, 500], progress=lambda ks: seen.extend(ks) or ks)
    assert seen == [3, 7] == [k for k, _ in found.sweep]


@pytest.mark.parametrize(
    "x",
    [np.ones((30, 4)), np.zeros((30, 4)), np.ones((1, 4)), np.eye(4)[:2], np.zeros((0, 4))],
    ids=["all alike", "all zero", "one", "two", "none"],
)
def test_data_too_small_to_divide_is_one_cluster(x):
    found = choose_k(x, range(2, 10))
    assert found.k == 1 and found.silhouette is None and found.sweep == ()
    assert found.labels.tolist() == [0] * len(x)


def test_a_k_beyond_the_distinct_vectors_is_left_out():
    x = np.repeat(np.eye(3), 10, axis=0)
    found = choose_k(x, range(2, 20))
    assert found.k == 3 and found.silhouette == pytest.approx(1)
    assert [k for k, _ in found.sweep] == [2, 3]


def on_disk(folder, x, dtype):
    """`x` as a read-only memory map."""
    np.asarray(x, dtype).tofile(folder / "x")
    return np.memmap(folder / "x", dtype, "r", shape=x.shape)


def plainly(x, ks, seed):
    """The choice of k from its definition: each k trained on every vector."""
    groups = {k: spherical_kmeans(x, k, seed=seed) for k in ks}
    scores = {k: cosine_silhouette(x, labels) for k, labels in groups.items()}
    return groups[max(ks, key=lambda k: scores[k])], scores


@given(st.integers(0, 1000), st.integers(30, 300), st.sampled_from([np.float16, np.float32, np.float64]))
@settings(max_examples=20)
def test_few_vectors_are_all_trained_on(seed, n, dtype):
    x = np.random.default_rng(seed).normal(size=(n, 6)).astype(dtype)
    labels, scores = plainly(x, range(2, 8), seed)
    found = choose_k(x, range(2, 8), seed=seed)
    np.testing.assert_array_equal(found.labels, labels)
    assert dict(found.sweep) == scores


def test_fifty_thousand_vectors_are_few():
    x = np.random.default_rng(0).normal(size=(50_000, 4)).astype(np.float32)
    labels, scores = plainly(x, [2, 3], 0)
    found = choose_k(x, [2, 3])
    np.testing.assert_array_equal(found.labels, labels)
    assert dict(found.sweep) == scores


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
@pytest.mark.parametrize("sample", [50_000, 1])
def test_a_memory_map_is_clustered_as_the_array_in_it(tmp_path, dtype, sample):
    x, _ = blobs(5, 700, 12, spread=1.5)
    x = x.astype(dtype)
    one = choose_k(on_disk(tmp_path, x, dtype), range(2, 9), seed=2, sample=sample)
    other = choose_k(x, range(2, 9), seed=2, sample=sample)
    np.testing.assert_array_equal(one.labels, other.labels)
    assert one.labels.dtype == np.int64 and (one.k, one.silhouette, one.sweep) == (
        other.k, other.silhouette, other.sweep,
    )  # fmt: skip
    np.testing.assert_array_equal(
        silhouette_samples(on_disk(tmp_path, x, dtype), one.labels), silhouette_samples(x, one.labels)
    )


@given(st.integers(2, 7), st.integers(0, 1000))
@settings(max_examples=20)
def test_a_sample_finds_the_groups_that_all_vectors_find(planted, seed):
    x, truth = blobs(planted, 3000 // planted, 16, seed=seed)
    found, full = (choose_k(x, range(2, 9), seed=seed, sample=s) for s in (1, len(x)))  # 8 * 256 is the least sample
    assert found.k == full.k == planted
    assert same_partition(found.labels, truth)
    assert found.silhouette == pytest.approx(cosine_silhouette(x, found.labels), abs=1e-12)
    assert found.silhouette == dict(found.sweep)[planted] == max(dict(found.sweep).values())
    assert [k for k, _ in found.sweep] == list(range(2, 9))


def test_a_sampled_sweep_is_the_same_for_the_same_seed_only():
    x = np.random.default_rng(1).normal(size=(5000, 8))
    first = choose_k(x, range(2, 7), seed=3, sample=1)
    again = choose_k(x.copy(), range(2, 7), seed=3, sample=1)
    np.testing.assert_array_equal(first.labels, again.labels)
    assert first.sweep == again.sweep
    assert not np.array_equal(first.labels, choose_k(x, range(2, 7), seed=4, sample=1).labels)


def test_the_chosen_k_of_a_sample_is_trained_on_every_vector():
    """A converged answer is its own Lloyd step over ALL vectors; one trained on a sample is not."""
    x = unit(np.random.default_rng(4).normal(size=(6000, 3)))
    labels = choose_k(x, [3], iterations=300, sample=1).labels
    centre = unit(np.stack([x[labels == c].mean(0) for c in range(3)]))
    assert (np.argmax(x @ centre.T, axis=1) == labels).all()


def test_a_memory_map_is_never_copied_whole(tmp_path):
    x = np.random.default_rng(0).normal(size=(40_000, 128)).astype(np.float16)
    mapped = on_disk(tmp_path, x, np.float16)
    tracemalloc.start()
    choose_k(mapped, [2, 3], iterations=2, sample=1)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < x.nbytes


def test_a_sampled_sweep_leaves_out_what_a_full_one_leaves_out():
    x = np.repeat(np.eye(3), 2000, axis=0)
    found = choose_k(x, range(1, 8), sample=1)
    assert found.k == 3 and found.silhouette == pytest.approx(1)
    assert [k for k, _ in found.sweep] == [2, 3]
    assert choose_k(np.ones((5000, 4)), range(2, 6), sample=1).labels.tolist() == [0] * 5000


@given(st.integers(0, 1000), st.integers(3, 40))
@settings(max_examples=25)
def test_ks_go_as_far_as_there_are_distinct_directions(seed, n):
    rng = np.random.default_rng(seed)
    x = rng.integers(-1, 2, size=(n, 3)) * rng.choice([1.0, -0.0, 2.5], size=(n, 1))
    distinct = len(np.unique(unit(x).round(6), axis=0))
    sweep = choose_k(x, range(2, 45)).sweep
    assert [k for k, _ in sweep] == list(range(2, min(distinct, n - 1) + 1))


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_value_that_is_not_finite_is_named_by_its_row(value):
    x = np.random.default_rng(0).normal(size=(9000, 4))
    kept = np.random.default_rng(0).choice(9000, 512, replace=False, shuffle=False)
    row = int(np.setdiff1d(np.arange(5000, 9000), kept)[0])  # of no sample
    x[row, 2] = value
    with pytest.raises(ValueError, match=f"vector {row} holds a value that is not finite"):
        choose_k(x, [2], sample=1)


def test_faiss_is_asked_for_gpus_where_it_has_some(monkeypatch):
    import faiss

    x, truth = blobs(3, 800, 8)
    expected = choose_k(x, [2, 3, 4], sample=1)
    moved = []

    def to_gpus(index, **options):
        moved.append(options)
        return index

    monkeypatch.setattr(faiss, "get_num_gpus", lambda: 2)
    monkeypatch.setattr(faiss, "index_cpu_to_all_gpus", to_gpus)
    assert same_partition(spherical_kmeans(x, 3), truth)
    assert moved == [{"ngpu": 2}]
    np.testing.assert_array_equal(choose_k(x, [2, 3, 4], sample=1).labels, expected.labels)
    assert {} in moved  # vectors are assigned there too
