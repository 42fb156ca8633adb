"""Publish the metric as a Space, from which `evaluate.load("NS/symbal_acc_at_k")` fetches it."""

from __future__ import annotations

from pathlib import Path

from symbal_hf.core.errors import BadData
from symbal_hf.huggingface.publish import is_repo, publish_space

NAME = "symbal_acc_at_k"
FOLDER = Path(__file__).parents[1] / "bench" / "metrics" / NAME
FILES = ("README.md", "app.py", "requirements.txt", f"{NAME}.py", "tests.py")
PLACEHOLDER = f"YOUR_NAMESPACE/{NAME}"


def publish_metric(repo: str, *, create_pr: bool = False, private: bool = False, token: str | None = None) -> str:
    """Make a Space hold the metric, its page and its card.

    Args:
        repo: namespace/symbal_acc_at_k; made where there is none. evaluate looks for a file called like the Space.
        create_pr: propose the files as a pull request, which needs no right to write.
        private: make a new Space private, and take no existing one that is public.
        token: of a Hub account; the signed-in one by default.

    Returns:
        The address of the pull request, or of the commit.

    Raises:
        BadData: another name, or the Hub does not take it.
    """
    if not (is_repo(repo) and repo.endswith(f"/{NAME}")):
        raise BadData(f"{repo!r} is no name for the Space; evaluate finds the metric in NAMESPACE/{NAME} only.")
    card = (FOLDER / "README.md").read_text("utf-8").replace(PLACEHOLDER, repo)
    files = {name: card.encode() if name == "README.md" else (FOLDER / name).read_bytes() for name in FILES}
    return publish_space(
        repo, files, message="Publish the metric symbal_acc_at_k", create_pr=create_pr, private=private, token=token
    )
