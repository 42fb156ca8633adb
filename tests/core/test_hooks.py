"""What we rely on in other libraries without their promise is still there; where it goes, this says what is lost."""

from __future__ import annotations

import inspect
from importlib import import_module

import pytest

# where, name, the parameters that must be there, and what no longer works without it
HOOKS = [
    ("datasets.load", "dataset_module_factory", ["path"], 'load_dataset("symbalbench") from any folder'),
    ("datasets.inspect", "dataset_module_factory", ["path"], 'get_dataset_config_names("symbalbench")'),
    ("transformers.pipelines", "PIPELINE_REGISTRY.supported_tasks", None, "registering the task without a warning"),
    ("transformers.pipelines", "PIPELINE_REGISTRY.register_pipeline", ["pipeline_class", "pt_model", "default"],
     'pipeline("systematic-misalignment")'),
    ("transformers", "Pipeline.__init__", ["model", "device"], "pipelines of ours"),
    ("transformers", "Pipeline._sanitize_parameters", None, "options of our pipeline"),
    ("transformers", "PreTrainedConfig.register_for_auto_class", None, "loading a composition with trust_remote_code"),
    ("transformers", "PreTrainedModel.register_for_auto_class", ["auto_class"], "the same"),
    ("transformers.dynamic_module_utils", "custom_object_save", ["obj", "folder", "config"], "code in saved folders"),
    ("evaluate", "Metric.add_batch", ["predictions", "references"], "rows of the settings table as references"),
    ("evaluate", "Metric.add", ["prediction", "reference"], "the same, one by one"),
    ("evaluate", "Metric._compute", None, "the metric"),
    ("huggingface_hub.utils", "validate_repo_id", ["repo_id"], "one sentence for a bad repo name"),
]  # fmt: skip


@pytest.mark.parametrize(("module", "name", "parameters", "lost"), HOOKS, ids=[f"{m}.{n}" for m, n, *_ in HOOKS])
def test_hook_is_there(module, name, parameters, lost):
    found = import_module(module)
    for part in name.split("."):
        found = getattr(found, part, None)
        assert found is not None, f"{module}.{name} is gone: {lost} is lost"
    if parameters:
        there = inspect.signature(found).parameters
        missing = [p for p in parameters if p not in there]
        assert not missing, f"{module}.{name} takes no {missing[0]} any more: {lost} is lost"


def test_hook_pipeline_parameters_of_construction_are_kept_apart_from_those_of_calls():
    import symbal_hf

    made = symbal_hf.pipeline(tau=0.9, limit=7)
    assert made._preprocess_params == {"limit": 7}, (
        "Pipeline._preprocess_params is gone: limit= at construction is lost"
    )
    assert made._forward_params == {"tau": 0.9}, "Pipeline._forward_params is gone: saving options is lost"


def test_hook_dataset_module_factory_is_what_load_dataset_calls():
    import datasets.load

    calls = inspect.getsource(datasets.load.load_dataset_builder)
    assert "dataset_module_factory(" in calls, "load_dataset goes another way: the bare name symbalbench is lost"
