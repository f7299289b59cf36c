"""The scripted model: its rules, the requests that it recognises, and its endpoint on loopback."""

from __future__ import annotations

import base64
import json
import os
import struct
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from routeprism.models.scripted import ScriptedEndpoint

OLD = [("0", "I like green tea."), ("1", "My dentist is Dr Moe."), ("2", "The cat sleeps a lot.")]


@pytest.fixture(scope="module")
def endpoint() -> Iterator[ScriptedEndpoint]:
    with ScriptedEndpoint() as served:
        yield served


def post(endpoint: ScriptedEndpoint, path: str, body: dict[str, Any], key: str = "") -> Any:
    request = urllib.request.Request(  # noqa: S310
        f"{endpoint.base_url}/{path}",
        json.dumps(body).encode(),
        {"Authorization": f"Bearer {key or endpoint.api_key}", "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=120) as response:  # noqa: S310
        return json.load(response)


def chat(endpoint: ScriptedEndpoint, *texts: str, **more: Any) -> dict[str, Any]:
    messages = [{"role": "user", "content": text} for text in texts]
    reply = post(endpoint, "chat/completions", {"model": "x", "messages": messages, **more})
    assert reply["model"] == reply["system_fingerprint"] == "scripted"
    message: dict[str, Any] = reply["choices"][0]["message"]
    return message


def decided(endpoint: ScriptedEndpoint, *facts: str) -> list[dict[str, str]]:
    """Ask as mem0 1.x does: stored memories and new facts between backticks."""
    stored = [{"id": id, "text": text} for id, text in OLD]
    prompt = f'Give "memory" with "event".\n```\n{stored}\n```\nNew facts:\n```\n{list(facts)}\n```'
    memory: list[dict[str, str]] = json.loads(chat(endpoint, prompt)["content"])["memory"]
    return [item for item in memory if item["event"] != "NONE"]


def test_facts_are_what_the_user_states(endpoint: ScriptedEndpoint) -> None:
    """Questions, greetings and the assistant's turns are left out; a repetition counts once."""
    conversation = (
        'Reply with {"facts": []}. Input:\nuser: Good morning. I live in Rye. How are you?\n'
        "assistant: You like boats.\nuser: I live in Rye."
    )
    assert json.loads(chat(endpoint, conversation)["content"]) == {"facts": ["I live in Rye."]}


@pytest.mark.parametrize(
    ("fact", "expected"),
    [
        ("My dentist is Dr Moe.", []),
        ("my dentist is dr moe", []),
        (
            "My dentist is Dr Roe.",
            [{"id": "1", "event": "UPDATE", "old_memory": "My dentist is Dr Moe."}],
        ),
        ("I no longer like green tea.", [{"id": "0", "event": "DELETE"}]),
        ("I hate green tea.", [{"id": "0", "event": "DELETE"}]),
        ("I keep bees on the roof.", [{"id": "3", "event": "ADD"}]),
    ],
)
def test_a_new_fact_is_compared_with_the_stored_ones(
    endpoint: ScriptedEndpoint, fact: str, expected: list[dict[str, str]]
) -> None:
    changes = decided(endpoint, fact)
    assert [
        {name: change[name] for name in change if name != "text"} for change in changes
    ] == expected
    for change in changes:
        assert change["text"] == (OLD[0][1] if change["event"] == "DELETE" else fact)


def test_the_same_attribute_is_recognised_in_other_words(endpoint: ScriptedEndpoint) -> None:
    """Where somebody moved to is where they live."""
    stored = "[{'id': '7', 'text': 'I live in Paris.'}]"
    prompt = f'"memory", "event"\n```{stored}```\n```["I moved to Lyon."]```'
    (change,) = json.loads(chat(endpoint, prompt)["content"])["memory"]
    assert (change["event"], change["id"], change["text"]) == ("UPDATE", "7", "I moved to Lyon.")


def tool(name: str, *properties: str) -> dict[str, Any]:
    parameters = {"properties": {item: {"type": "string"} for item in properties}}
    return {"type": "function", "function": {"name": name, "parameters": parameters}}


TOOLS = [tool("PatchDoc", "json_doc_id"), tool("Memory", "content"), tool("RemoveDoc", "x")]


def calls(message: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    values = [item["function"] for item in message["tool_calls"]]
    return [(item["name"], json.loads(item["arguments"])) for item in values]


def test_tools_are_called_to_insert_patch_and_remove(endpoint: ScriptedEndpoint) -> None:
    """Written as LangMem's manager writes it."""
    instances = "".join(
        f'<instance id={id} schema_type="Memory">\n{ {"content": text} }\n</instance>\n'
        for id, text in OLD
    )
    output = "I don't like green tea. My dentist is Dr Roe. I keep bees."
    session = f"<session_a-1>\n==== Human Message ====\n\n{output}\n</session_a-1>"
    result = calls(chat(endpoint, instances + session, tools=TOOLS))
    assert result[0] == ("RemoveDoc", {"json_doc_id": "0"})
    assert result[1][0] == "PatchDoc" and result[1][1]["json_doc_id"] == "1"
    patch = {"op": "replace", "path": "/content", "value": "My dentist is Dr Roe."}
    assert result[1][1]["patches"] == [patch]
    assert result[2] == ("Memory", {"content": "I keep bees."})
    repetition = "<session_b>\n==== Human Message ====\n\nMy dentist is Dr Moe.\n</session_b>"
    (nothing,) = calls(chat(endpoint, instances + repetition, tools=TOOLS))
    assert nothing[0] == "PatchDoc" and nothing[1]["patches"] == []


def schema(*names: str) -> dict[str, Any]:
    properties = {name: {"type": "array"} for name in names}
    return {"type": "json_schema", "json_schema": {"schema": {"properties": properties}}}


def test_graphs_get_entities_edges_and_contradictions(endpoint: ScriptedEndpoint) -> None:
    """The sections are named as Graphiti names them."""
    message = "<CURRENT MESSAGE>\nuser: My dentist is Dr Roe. We sailed to Rye.\n</CURRENT MESSAGE>"
    document = json.loads(
        chat(endpoint, message, response_format=schema("extracted_entities"))["content"]
    )
    names = [item["name"] for item in document["extracted_entities"]]
    assert names == ["user", "dentist", "Rye"]
    entities = json.dumps([{"name": name} for name in names])
    text = f"{message}<ENTITIES>\n{entities}\n</ENTITIES>"
    dated = f"{text}<REFERENCE_TIME>\n2025-03-01T00:00:00Z  # UTC\n</REFERENCE_TIME>"
    document = json.loads(chat(endpoint, dated, response_format=schema("edges"))["content"])
    assert [item["fact"] for item in document["edges"]] == [
        "My dentist is Dr Roe.",
        "We sailed to Rye.",
    ]
    assert {item["valid_at"] for item in document["edges"]} == {"2025-03-01T00:00:00Z"}
    facts = [{"idx": 0, "fact": "My dentist is Dr Moe."}, {"idx": 1, "fact": "We sailed to Rye."}]
    compared = (
        f"<EXISTING FACTS>\n{facts}\n</EXISTING FACTS>"
        f"<FACT INVALIDATION CANDIDATES>\n[]\n</FACT INVALIDATION CANDIDATES>"
        f"<NEW FACT>\nMy dentist is Dr Roe.\n</NEW FACT>"
    )
    expected = schema("duplicate_facts", "contradicted_facts")
    document = json.loads(chat(endpoint, compared, response_format=expected)["content"])
    assert document == {"duplicate_facts": [], "contradicted_facts": [0]}


def test_an_unknown_schema_gets_the_least_that_is_valid(endpoint: ScriptedEndpoint) -> None:
    parts = {
        "note": {"type": "string"},
        "when": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "kind": {"$ref": "#/$defs/Kind"},
    }
    whole = {"properties": parts, "$defs": {"Kind": {"enum": ["a", "b"], "type": "string"}}}
    values = {"type": "json_schema", "json_schema": {"schema": whole}}
    reply = json.loads(chat(endpoint, "Anything.", response_format=values)["content"])
    assert reply == {"note": "", "when": None, "kind": "a"}


def test_embeddings_count_words_and_have_length_one(endpoint: ScriptedEndpoint) -> None:
    texts = ["green tea", "tea that is green", "boats"]
    reply = post(endpoint, "embeddings", {"model": "x", "input": texts})
    first, second, third = (item["embedding"] for item in reply["data"])
    assert sum(x * x for x in first) == pytest.approx(1)
    assert sum(x * y for x, y in zip(first, second, strict=True)) == pytest.approx(1)
    assert sum(x * y for x, y in zip(first, third, strict=True)) == 0
    body = {"model": "x", "input": texts[0], "encoding_format": "base64", "dimensions": 64}
    (packed,) = post(endpoint, "embeddings", body)["data"]
    assert len(struct.unpack("<64f", base64.b64decode(packed["embedding"]))) == 64


def test_only_its_own_clients_are_served(endpoint: ScriptedEndpoint) -> None:
    body = {"model": "x", "messages": []}
    with pytest.raises(urllib.error.HTTPError, match="401"):
        post(endpoint, "chat/completions", body, key="wrong")
    with pytest.raises(urllib.error.HTTPError, match="400"):
        post(endpoint, "chat/completions", {**body, "stream": True})
    with pytest.raises(urllib.error.HTTPError, match="404"):
        post(endpoint, "images", body)


@pytest.mark.parametrize(
    ("lower", "upper", "expected"),
    [
        ("", "", "127.0.0.1"),
        ("", "intern.example, 10.0.0.1", "intern.example,10.0.0.1,127.0.0.1"),
        ("first.example", "second.example", "first.example,second.example,127.0.0.1"),
        ("", "*", "*"),
        ("127.0.0.1 , b", "b", "127.0.0.1,b"),
    ],
)
def test_clients_do_not_ask_through_a_web_proxy(
    lower: str, upper: str, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing listens at the address of this proxy; a real one would see records and the token."""
    for name, value in (("no_proxy", lower), ("NO_PROXY", upper)):
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    with ScriptedEndpoint() as endpoint:
        assert {os.environ[name] for name in ("no_proxy", "NO_PROXY")} == {expected}
        request = urllib.request.Request(f"{endpoint.base_url}/nothing", b"{}")  # noqa: S310
        with pytest.raises(urllib.error.HTTPError, match="401") as refused:
            urllib.request.build_opener().open(request)
        refused.value.close()


@pytest.mark.slow
def test_replies_do_not_depend_on_the_hash_seed() -> None:
    script = (
        "import json, urllib.request; from routeprism.models.scripted import ScriptedEndpoint; "
        "text = 'user: I like tea. My dentist is Dr Roe. We sailed to Rye and Hove.'; "
        "form = {'type': 'json_schema', 'json_schema': {'schema': "
        "{'properties': {'extracted_entities': {}, 'edges': {}}}}}; "
        "body = {'messages': [{'role': 'user', 'content': text}], 'response_format': form}; "
        "endpoint = ScriptedEndpoint(api_key='k').__enter__(); "
        "request = urllib.request.Request(f'{endpoint.base_url}/chat/completions', "
        "json.dumps(body).encode(), {'Authorization': 'Bearer k'}); "
        "print(urllib.request.urlopen(request).read().decode()); "
        "endpoint.__exit__(None, None, None)"
    )
    replies = {
        subprocess.run(
            [sys.executable, "-c", script],
            env={"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(replies) == 1 and "Dr Roe" in replies.pop()
