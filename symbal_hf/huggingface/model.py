"""A composition as a transformers model: it holds no weights, and is saved and pushed as config, card and loader."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModel, PreTrainedModel

from symbal_hf.auditing.engine import audit
from symbal_hf.core.files import write_whole
from symbal_hf.huggingface.card import check_portable, composition_card
from symbal_hf.huggingface.config import SymbalConfig
from symbal_hf.huggingface.publish import check_repo, sending
from symbal_hf.results.findings import AuditResult

TASK = "systematic-misalignment"
# What a process that has not imported us runs, once it trusts it: public names alone, which later versions keep.
LOADER = '''"""Where symbal-hf is installed, this makes transformers know the composition that lies here."""

from symbal_hf import SymbalConfig, SymbalModel, SymbalPipeline

__all__ = ["SymbalConfig", "SymbalModel", "SymbalPipeline"]
'''
AUTO_MAP = {"AutoConfig": "pipelines.SymbalConfig", "AutoModel": "pipelines.SymbalModel"}
CUSTOM = {TASK: {"impl": "pipelines.SymbalPipeline", "pt": ["AutoModel"]}}


# A pipeline takes whole datasets and gives findings, so that some signatures differ from those of transformers.
class SymbalModel(PreTrainedModel):
    """A composition that can be run.

    It has no weights of its own: the models that it names stay where they live, and are loaded when an audit first
    needs them. The empty parameter is for transformers, which ask every model for its device and its numbers.

    >>> rows = [{"caption": "A dog.", "objects": ["dog"]}, {"caption": "A cat.", "objects": ["dog"]}]
    >>> SymbalModel(SymbalConfig(scorer="objects"))(rows).verdict
    'none'
    """

    config_class = SymbalConfig
    base_model_prefix = "symbal"
    input_modalities = ("image", "text")  # type: ignore[assignment]

    def __init__(self, config: SymbalConfig) -> None:
        super().__init__(config)
        self.place = torch.nn.Parameter(torch.zeros(0), requires_grad=False)
        self.device_map: Any = None  # how the models that it names are spread over GPUs
        self.post_init()

    @classmethod
    def register_for_auto_class(cls, auto_class: str | type = "AutoModel") -> None:
        """Do nothing, as for `SymbalConfig`."""

    @classmethod
    def from_pretrained(cls, *args: Any, device_map: Any = None, **options: Any) -> SymbalModel:
        """As for any transformers model, but that `device_map` is for the models that it names."""
        model = super().from_pretrained(*args, **options)
        model.device_map = device_map
        return model

    def forward(self, source: Any, **options: Any) -> AuditResult:
        """`symbal_hf.audit` of `source` by this composition; `options` take the place of the config's."""
        return audit(source, preset=self.config.composed(), **{**self.config.options(), **options})

    def save_pretrained(self, save_directory: str | Path, **options: Any) -> None:  # type: ignore[override]
        """Write the config, what loads it in a process without us, and a card; `options` as for any transformers model.

        Raises:
            BadData: a part carries a password, or is an object that no other process could find again.
        """
        check_portable(self.config.parts())
        folder = Path(save_directory)
        self.config.auto_map, self.config.custom_pipelines = AUTO_MAP, CUSTOM
        try:
            super().save_pretrained(folder, **options)
        finally:
            del self.config.auto_map, self.config.custom_pipelines
        write_whole(folder / "pipelines.py", LOADER)
        card = composition_card(self.config.preset, self.config.parts(), self.config.options())
        write_whole(folder / "README.md", card)

    def push_to_hub(  # type: ignore[override]
        self,
        repo_id: str,
        *,
        private: bool | None = None,
        token: str | bool | None = None,
        revision: str | None = None,
        create_pr: bool = False,
        commit_message: str | None = None,
    ) -> str:
        """Write the composition with its own card to a model repo, made where there is none; returns the address.

        Raises:
            BadData: a part is a folder of this machine, carries a password, or is an object.
        """
        from huggingface_hub import HfApi

        check_portable(self.config.parts(), folders=False)
        check_repo(repo_id)
        api = HfApi(token=token)
        with sending(f"{repo_id} was not pushed"), tempfile.TemporaryDirectory() as folder:
            self.save_pretrained(folder)
            if not api.repo_exists(repo_id):
                api.create_repo(repo_id, private=private, exist_ok=True)
            done = api.upload_folder(
                folder_path=folder,
                repo_id=repo_id,
                revision=revision,
                create_pr=create_pr,
                commit_message=commit_message or "Publish the composition",
            )
        return str(done.pr_url or done.commit_url)


AutoModel.register(SymbalConfig, SymbalModel, exist_ok=True)
