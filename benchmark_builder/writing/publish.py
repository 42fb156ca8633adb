"""Publish a built benchmark on the Hub: its own files, and nothing that its sources forbid to share."""

from __future__ import annotations

import glob
from pathlib import Path
from typing import Any

from symbal_hf.core.errors import BadData
from symbal_hf.huggingface.publish import check_repo, make_repo, reason, sending

CARDS = ("README.md", "eval.yaml")
TABLES = ("settings", "data", "objects", "images", "injections")
PLOTS = "statistics"
SHARED = ("coco", "scenes", "custom")  # what everybody may see; "openi" only in private, "mimic_cxr" never


def publish(
    folder: Path,
    repo: str,
    *,
    create_pr: bool = False,
    private: bool = False,
    revision: str | None = None,
    token: str | None = None,
    message: str | None = None,
) -> str:
    """Make a dataset repo hold what a built benchmark holds; an interrupted upload is finished by the same call.

    Files of an earlier build that this one lacks are removed, so that no config loads rows of both. A pull request
    that was interrupted goes on with `revision="refs/pr/N"` instead of `create_pr`.

    Args:
        folder: as `symbal bench build` made it: README.md, eval.yaml, settings/, data/, objects/, images/, ...
        repo: namespace/name of the dataset repo; made where there is none.
        create_pr: propose the files as a pull request, which needs no right to write.
        private: make a new repo private, and take no existing one that is public.
        revision: branch to write to, made where there is none; main by default.
        token: of a Hub account; the signed-in one by default.
        message: title of the commit or pull request.

    Returns:
        The address of the pull request, or of the commit.

    Raises:
        BadData: the folder is no built benchmark, holds what may not be shared, or the Hub does not take it.
    """
    folder = Path(folder)
    check_repo(repo)
    if create_pr and revision not in (None, "main"):
        raise BadData(f"a pull request goes to main, not to {revision!r}; give create_pr or revision, not both.")
    files = _own_files(folder)
    _check_tables(folder, files, private=private)
    card = _card(folder / "README.md")

    from huggingface_hub import HfApi

    api = HfApi(token=token)
    with sending(f"{repo} was not published", again="then run it again: what has arrived is not sent twice."):
        try:
            card.validate()
        except ValueError as error:
            raise BadData(f"the Hub does not take README.md: {reason(error)}; mend its metadata.") from error
        make_repo(api, repo, "dataset", private=private)
        if revision and not revision.startswith("refs/"):
            api.create_branch(repo, branch=revision, repo_type="dataset", exist_ok=True)
        done = api.upload_folder(
            folder_path=folder,
            repo_id=repo,
            repo_type="dataset",
            revision=revision,
            create_pr=create_pr,
            commit_message=message or f"Publish {folder.resolve().name}",
            allow_patterns=[glob.escape(name) for name in files],
            delete_patterns=[f"{part}/*" for part in (*TABLES, PLOTS)],
        )
    return str(done.pr_url or done.commit_url)


def _own_files(folder: Path) -> list[str]:
    """The files of a built benchmark, relative to it; what else lies there is nobody's business."""
    found = [name for name in CARDS if (folder / name).is_file()]
    for part, suffixes in (*((table, (".parquet",)) for table in TABLES), (PLOTS, (".png", ".csv"))):
        found += [
            f"{part}/{path.name}"
            for path in sorted((folder / part).glob("*"))
            if path.is_file() and path.suffix in suffixes and not path.name.startswith(".")
        ]
    if "README.md" not in found or not any(name.startswith("settings/") for name in found):
        raise BadData(
            f"{folder} is no built benchmark (README.md and settings/*.parquet); build it first with "
            "`symbal bench build`."
        )
    for path in sorted(folder.glob(".building-*")):  # a build leaves it while it runs, and where it was stopped
        base = path.name.removeprefix(".building-")
        raise BadData(f"the build of {base} in {folder} has not ended; run `symbal bench build` again.")
    return found


def _check_tables(folder: Path, files: list[str], *, private: bool) -> None:
    """Refuse what may not be shared, by what the settings tables themselves say."""
    tables = {name: _origins(folder / name, name) for name in files if name.endswith(".parquet")}
    origins = {name: found for name, found in tables.items() if found}
    for name, found in origins.items():
        if any("mimic" in str(origin).lower() for origin in found):
            raise BadData(
                f"{name} comes from MIMIC-CXR, whose data use agreement forbids sharing; build without it and share "
                "the builder, which makes that part from each user's own copy."
            )
        for origin in found:
            if origin not in (*SHARED, "openi"):
                raise BadData(f"{name} gives base {origin!r}, not {', '.join(SHARED)} or openi; build it again.")
    _check_accounted(files, [Path(name).stem for name in origins])
    for name, found in origins.items():
        if "openi" in found and not private:
            raise BadData(
                f"{name} comes from the Open-i chest x-rays, whose licence (CC BY-NC-ND) allows no public "
                "derivatives; publish it with private, or build without it."
            )


def _check_accounted(files: list[str], bases: list[str]) -> None:
    """Refuse tables whose base no settings file tells: nobody knows what may be done with them."""
    for name in files:
        stem = Path(name).stem
        if not name.startswith(TABLES) or any(stem == base or stem.startswith(f"{base}-") for base in bases):
            continue
        if stem.lower().startswith("medical"):
            raise BadData(
                f"{name} has no settings file that tells its base, and may come from MIMIC-CXR, whose data use "
                "agreement forbids sharing; remove it or build the benchmark again."
            )
        raise BadData(f"{name} belongs to no settings file ({', '.join(bases)}); remove it or build again.")


def _origins(path: Path, name: str) -> list[str | None]:
    """The different values of the column "base" of a settings table, [None] where there are none; of others nothing."""
    import pyarrow
    from pyarrow import parquet

    try:
        columns = parquet.read_schema(path).names
    except (pyarrow.ArrowException, OSError) as error:
        raise BadData(f"{name} cannot be read as a whole parquet file; build the benchmark again.") from error
    if not name.startswith("settings/"):
        return []
    if "base" not in columns:
        raise BadData(f"{name} has no column 'base' that tells where its rows come from; build the benchmark again.")
    return parquet.read_table(path, columns=["base"]).column("base").unique().to_pylist() or [None]


def _card(path: Path) -> Any:
    from huggingface_hub import DatasetCard

    try:
        return DatasetCard.load(path)
    except Exception as error:  # YAML that does not parse, or parses to no card
        raise BadData(f"{path} is no dataset card: {reason(error)}; mend its metadata or build again.") from error
