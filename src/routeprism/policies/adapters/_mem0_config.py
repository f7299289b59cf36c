"""A configuration in mem0's own format: vector store, model and embedder."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from routeprism.errors import InputError, MissingExtraError, SpecError
from routeprism.inputs import read_input
from routeprism.policies.adapters._systems import import_system
from routeprism.redaction import names_secret

__all__ = ["Mem0Config", "load_config"]

_SECTIONS = ("vector_store", "llm", "embedder", "reranker", "graph_store")
_VARIABLE = "env:"
"""Followed by the name of an environment variable, as in mem0's own server."""
_LOCAL = ("qdrant", "chroma", "faiss")
"""Vector stores that keep their data in a directory, unless they have an address."""
_ADDRESSES = ("host", "url", "api_key", "client")


@dataclass(frozen=True, slots=True)
class Mem0Config:
    """What a configuration file contains, with the values of its variables."""

    sections: Mapping[str, Any]
    sha256: str
    secrets: tuple[str, ...]

    def find(self, section: str, key: str) -> Any:
        """Return a value of a section's own configuration; None if it has none."""
        return (self.sections.get(section, {}).get("config") or {}).get(key)

    @property
    def model(self) -> str:
        """The model that extracts; empty if the file names none."""
        return str(self.find("llm", "model") or "")

    @property
    def provider(self) -> str:
        """Who serves the model; empty if the file names none."""
        return str(self.sections.get("llm", {}).get("provider", ""))

    @property
    def base_url(self) -> str:
        """The address of the model; empty for the provider's own."""
        names = ("openai_base_url", "ollama_base_url", "lmstudio_base_url", "vllm_base_url")
        return next((str(value) for name in names if (value := self.find("llm", name))), "")

    @property
    def api_key(self) -> str:
        """The key of the model; empty if the file names none."""
        return str(self.find("llm", "api_key") or "")

    @property
    def is_local(self) -> bool:
        """Whether the vector store keeps its data in a directory of this machine."""
        store = self.sections.get("vector_store", {})
        remote = any(self.find("vector_store", name) for name in _ADDRESSES)
        return store.get("provider", "qdrant") in _LOCAL and not remote


def load_config(file: str) -> Mem0Config:
    """Read a configuration in JSON or YAML; `env:NAME` is the value of that variable."""
    try:
        content = read_input(Path(file))
    except (InputError, OSError) as error:
        raise SpecError(f"config={file} cannot be read: {error}") from None
    parsed = _parse(file, content)
    if not isinstance(parsed, dict):
        raise SpecError(f"config={file}: expected an object with {', '.join(_SECTIONS)}")
    for name in _SECTIONS:
        section = parsed.get(name)
        if section is not None and not (isinstance(section, dict) and "provider" in section):
            raise SpecError(f"config={file}: expected {name} to have a provider and a config")
    secrets: set[str] = set()
    sections = {key: _resolve(file, key, value, secrets) for key, value in parsed.items()}
    return Mem0Config(sections, hashlib.sha256(content).hexdigest(), tuple(sorted(secrets)))


def _parse(file: str, content: bytes) -> Any:
    try:
        if not file.lower().endswith((".yaml", ".yml")):
            return json.loads(content)
        yaml = import_system("yaml", "a YAML configuration", "mem0")
        return yaml.safe_load(content)
    except (ValueError, RecursionError) as error:
        raise SpecError(f"config={file} is not valid JSON: {error}") from None
    except Exception as error:
        if isinstance(error, MissingExtraError):
            raise
        raise SpecError(f"config={file} is not valid YAML: {type(error).__name__}") from None


def _resolve(file: str, key: str, value: Any, secrets: set[str]) -> Any:
    """Fill variables in, and collect secrets so that no message shows them."""
    if isinstance(value, dict):
        return {name: _resolve(file, name, item, secrets) for name, item in value.items()}
    if isinstance(value, list):
        return [_resolve(file, key, item, secrets) for item in value]
    if not isinstance(value, str):
        return value
    if value.startswith(_VARIABLE):
        variable = value.removeprefix(_VARIABLE)
        if not os.environ.get(variable):
            raise SpecError(
                f"config={file}: {key} needs the environment variable {variable}, which is not set"
            )
        value = os.environ[variable]
        secrets.add(value)
    elif names_secret(key) and value:
        secrets.add(value)
    return value
