"""The names that other libraries know us by, registered whenever they are imported, before us or after."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from symbal_hf.data.benchmarks import NAME, built_folder

# Modules of transformers, and those of ours that they must know once they are imported.
REGISTERING = {
    "transformers.models.auto.configuration_auto": "symbal_hf.huggingface.config",
    "transformers.models.auto.modeling_auto": "symbal_hf.huggingface.model",
    "transformers.pipelines": "symbal_hf.huggingface.pipelines",
}


def register_names() -> None:
    """Let `load_dataset("symbalbench", ...)` and `pipeline("systematic-misalignment")` work, and import neither."""
    import wrapt

    for module in ("datasets.load", "datasets.inspect"):
        wrapt.register_post_import_hook(_wrap_datasets, module)
    for module, ours in REGISTERING.items():
        wrapt.register_post_import_hook(partial(_register, ours), module)


def _register(ours: str, _: Any) -> None:
    try:
        import_module(ours)  # registers itself, now or when it has come to its end
    except Exception as error:  # what goes wrong with our task must not keep anybody from transformers
        warnings.warn(f"symbal_hf could not register {ours} with transformers: {error!r}", stacklevel=2)


def _wrap_datasets(module: Any) -> None:
    import wrapt

    # A private function, so its absence costs nothing but the bare name away from the folder's parent.
    factory = getattr(module, "dataset_module_factory", None)
    if factory is not None and not isinstance(factory, wrapt.ObjectProxy):
        wrapt.wrap_function_wrapper(module, "dataset_module_factory", _route)


def _route(wrapped: Any, instance: Any, args: tuple[Any, ...], options: Mapping[str, Any]) -> Any:
    """`dataset_module_factory(path, ...)` with the bare name turned into the folder that was built last."""
    path = args[0] if args else options.get("path")
    if path != NAME or Path(NAME).exists() or options.get("data_files"):
        return wrapped(*args, **options)
    if folder := built_folder():
        return wrapped(str(folder), *args[1:], **{k: v for k, v in options.items() if k != "path"})
    try:
        return wrapped(*args, **options)
    except Exception as error:
        error.add_note(f"No {NAME} was built on this machine either; `symbal bench build` makes one.")
        raise
