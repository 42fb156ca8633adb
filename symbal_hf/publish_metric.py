"""Publish the metric as a Space, from which `evaluate.load("NS/symbal_acc_at_k")` fetches it."""

from __future__ import annotations

from pathlib import Path

from symbal_hf.tables import BadData

NAME = "symbal_acc_at_k"
FOLDER = Path(__file__).parent / "metrics" / NAME
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
    _check(repo)
    from huggingface_hub import CommitOperationAdd, HfApi

    card = (FOLDER / "README.md").read_text("utf-8").replace(PLACEHOLDER, repo)
    content = {name: card.encode() if name == "README.md" else (FOLDER / name).read_bytes() for name in FILES}
    api = HfApi(token=token)
    try:
        # Nothing is made where a Space is there: a pull request to somebody else's needs no such right.
        if not api.repo_exists(repo, repo_type="space"):
            api.create_repo(repo, repo_type="space", space_sdk="gradio", private=private or None, exist_ok=True)
        if private and not api.repo_info(repo, repo_type="space").private:
            raise BadData(f"{repo} is public already; make it private in its settings, or publish to a new Space.")
        done = api.create_commit(
            repo_id=repo,
            repo_type="space",
            operations=[CommitOperationAdd(name, data) for name, data in content.items()],
            commit_message="Publish the metric symbal_acc_at_k",
            create_pr=create_pr,
        )
    except BadData:
        raise
    except Exception as error:  # a dozen kinds: no network, not signed in, no right to write, a card not taken
        said = " ".join(str(getattr(error, "server_message", None) or error).split()).rstrip(".;:")
        raise BadData(
            f"{repo} was not published: {said or type(error).__name__}; check the connection and `hf auth whoami`, "
            "then run it again."
        ) from error
    return str(done.pr_url or done.commit_url)


def _check(repo: str) -> None:
    from huggingface_hub.errors import HFValidationError
    from huggingface_hub.utils import validate_repo_id  # type: ignore[attr-defined]

    try:
        validate_repo_id(repo)
        valid = repo.count("/") == 1 and repo.endswith(f"/{NAME}")
    except HFValidationError:
        valid = False
    if not valid:
        raise BadData(f"{repo!r} is no name for the Space; evaluate finds the metric in NAMESPACE/{NAME} only.")
