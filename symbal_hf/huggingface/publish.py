"""Writing to the Hub: Spaces from packaged files, the metric, and one sentence for whatever goes wrong there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from symbal_hf.core.errors import BadData

if TYPE_CHECKING:
    from huggingface_hub import HfApi

METRIC = "symbal_acc_at_k"
METRIC_FILES = ("README.md", "app.py", "requirements.txt", f"{METRIC}.py", "tests.py")


def is_repo(repo: str) -> bool:
    """Whether this is namespace/name, as the Hub has them."""
    from huggingface_hub.errors import HFValidationError
    from huggingface_hub.utils import validate_repo_id  # type: ignore[attr-defined]

    try:
        validate_repo_id(repo)
    except HFValidationError:
        return False
    return repo.count("/") == 1


def check_repo(repo: str) -> None:
    """Refuse what is no repo's name.

    Raises:
        BadData: it is not.
    """
    if not is_repo(repo):
        raise BadData(f"{repo!r} is no Hub repo; give namespace/name of letters, digits, '-', '_' and '.'.")


def reason(error: BaseException) -> str:
    """What went wrong in one line; a failed upload of a file hides what the Hub said behind it."""
    cause = error.__cause__
    said = getattr(error, "server_message", None) or getattr(cause, "server_message", None) or str(error)
    return " ".join(said.split())[:300].replace(". ", "; ").rstrip(".;:") or type(error).__name__


@contextmanager
def sending(what: str, *, again: str = "then run it again.") -> Iterator[None]:
    """Turn the dozen kinds of errors of a Hub that is not reached or not willing into `BadData`, told in a sentence.

    Args:
        what: was not done, such as "lab/metric was not published".
        again: what to do after the connection and the account have been looked at.
    """
    try:
        yield
    except BadData:
        raise
    except Exception as error:
        raise BadData(f"{what}: {reason(error)}; check the connection and `hf auth whoami`, {again}") from error


def make_repo(api: HfApi, repo: str, kind: str, *, private: bool = False, **options: Any) -> None:
    """Make a repo of this kind where there is none.

    Raises:
        BadData: it is to be private, and is public already.
    """
    # Nothing is made where a repo is there: a pull request to somebody else's needs no such right.
    if not api.repo_exists(repo, repo_type=kind):
        api.create_repo(repo, repo_type=kind, private=private or None, exist_ok=True, **options)
    if private and not api.repo_info(repo, repo_type=kind).private:
        raise BadData(f"{repo} is public already; make it private in its settings, or publish to a new name.")


def publish_space(
    repo: str,
    files: Mapping[str, bytes],
    *,
    message: str,
    create_pr: bool = False,
    private: bool = False,
    token: str | None = None,
) -> str:
    """Make a Gradio Space hold these files; returns the address of the commit or of the pull request.

    Args:
        repo: namespace/name; made where there is none.
        files: path -> content; README.md is the card, about which the Hub is asked before anything is sent.
        message: title of the commit or pull request.
        create_pr: propose the files as a pull request, which needs no right to write.
        private: make a new Space private, and take no existing one that is public.
        token: of a Hub account; the signed-in one by default.

    Raises:
        BadData: no such name, or the Hub does not take it.
    """
    check_repo(repo)
    from huggingface_hub import CommitOperationAdd, HfApi

    api = HfApi(token=token)
    with sending(f"{repo} was not published"):
        make_repo(api, repo, "space", private=private, space_sdk="gradio")
        operations = [CommitOperationAdd(name, data) for name, data in files.items()]
        done = api.create_commit(
            repo_id=repo, repo_type="space", operations=operations, commit_message=message, create_pr=create_pr
        )
    return str(done.pr_url or done.commit_url)


def publish_metric(
    folder: Path, repo: str, *, create_pr: bool = False, private: bool = False, token: str | None = None
) -> str:
    """Make a Space hold the metric, its page and its card, from which `evaluate.load(repo)` fetches it.

    Args:
        folder: of the metric.
        repo: namespace/symbal_acc_at_k; made where there is none. evaluate looks for a file called like the Space.
        create_pr: and `private`, `token`: see `publish_space`.

    Returns:
        The address of the pull request, or of the commit.

    Raises:
        BadData: another name, or the Hub does not take it.
    """
    if not (is_repo(repo) and repo.endswith(f"/{METRIC}")):
        raise BadData(f"{repo!r} is no name for the Space; evaluate finds the metric in NAMESPACE/{METRIC} only.")
    files = {name: (folder / name).read_bytes() for name in METRIC_FILES}
    files["README.md"] = files["README.md"].replace(f"YOUR_NAMESPACE/{METRIC}".encode(), repo.encode())
    return publish_space(
        repo, files, message=f"Publish the metric {METRIC}", create_pr=create_pr, private=private, token=token
    )
