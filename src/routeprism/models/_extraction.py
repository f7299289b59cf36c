"""Reply to the requests of memory systems by rules: which facts to store, replace or remove.

A request is recognised by what it asks for, not by the name of a system: the tools it offers, the
JSON schema it requires, or the JSON keys that its instructions describe.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from routeprism.models._facts import (
    Decision,
    Fact,
    decide_changes,
    name_entities,
    read_fact,
    read_facts,
    relate_entities,
    relate_facts,
)

Json = dict[str, Any]

_TURN = re.compile(
    r"^(?:=+ )?(?P<role>user|human|assistant|ai|system)(?: message =+)?:?[ \t]*(?:\([^)]*\):)?",
    re.IGNORECASE | re.MULTILINE,
)
"""How systems write a turn: `user: …`, `Human Message ===`."""
_SPEAKERS = ("user", "human")


def reply_to_chat(body: Mapping[str, Any]) -> Json:
    """Return the assistant's message in reply to a chat completion request."""
    prompt = _Prompt.of(body)
    if tools := body.get("tools"):
        return _call_tools(prompt, [tool["function"] for tool in tools])
    schema = _find_schema(body, prompt)
    if schema is not None:
        return _say(json.dumps(fill_schema(schema, prompt), ensure_ascii=False))
    return _say(_answer_instructions(prompt))


def _say(content: str) -> Json:
    return {"role": "assistant", "content": content}


class _Prompt:
    """The texts of a request, and the parts of it that systems mark."""

    def __init__(self, texts: Sequence[tuple[str, str]]) -> None:
        self.whole = "\n\n".join(text for _, text in texts)
        self.last = next((text for role, text in reversed(texts) if role == "user"), "")

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> _Prompt:
        return cls(
            [(str(message.get("role")), _text(message)) for message in body.get("messages", ())]
        )

    def section(self, *names: str) -> str:
        """Return the text between tags with one of these names; the last one counts."""
        for name in names:
            tagged = re.findall(rf"<({name})>(.*?)</\1>", self.whole, re.DOTALL)
            if tagged:
                return str(tagged[-1][1]).strip()
        return ""

    def facts(self) -> list[Fact]:
        """Read the facts of the conversation that the request is about."""
        return read_facts(read_turns(self._conversation()))

    def _conversation(self) -> str:
        """Find the new part of the conversation: a marked section, or the last message."""
        marked = self.section(r"session_[\w-]+", "CURRENT[ _]MESSAGE", "conversation", "EPISODES")
        if marked:
            return marked
        if "## New Messages" in self.last:
            return re.split(r"^## ", self.last.rpartition("## New Messages\n")[2], flags=re.M)[0]
        return self.last.rpartition("Input:")[2]


def _text(message: Mapping[str, Any]) -> str:
    content = message.get("content")
    if isinstance(content, list):
        return "\n".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return str(content or "")


def read_turns(conversation: str) -> list[str]:
    """Return what the user says; all of it where no turn is marked."""
    marks = list(_TURN.finditer(conversation))
    if not marks:
        return [conversation]
    ends = [*(mark.start() for mark in marks[1:]), len(conversation)]
    return [
        conversation[mark.end() : end].strip()
        for mark, end in zip(marks, ends, strict=True)
        if mark["role"].lower() in _SPEAKERS
    ]


# --- Instructions that describe JSON -----------------------------------------------------------


def _answer_instructions(prompt: _Prompt) -> str:
    """Reply to instructions: decisions about memories, additions, facts, or plain sentences."""
    if '"event"' in prompt.whole and '"memory"' in prompt.whole:
        return json.dumps({"memory": _decide_listed(prompt)}, ensure_ascii=False)
    if "## Existing Memories" in prompt.last:
        stored = _list_memories(prompt.last, "## Existing Memories")
        added = _list_new(prompt.facts(), [read_fact(text) for _, text in stored])
        memories = [{"id": str(at), "text": fact.text} for at, fact in enumerate(added)]
        return json.dumps({"memory": memories}, ensure_ascii=False)
    texts = [fact.text for fact in prompt.facts()]
    if '"facts"' in prompt.whole:
        return json.dumps({"facts": texts}, ensure_ascii=False)
    return "\n".join(texts)


def _list_new(facts: Sequence[Fact], stored: Sequence[Fact]) -> list[Fact]:
    """List the facts that are not stored yet, for systems that only add."""
    return [
        fact for fact in facts if all(relate_facts(fact, memory) != "same" for memory in stored)
    ]


def _decide_listed(prompt: _Prompt) -> list[Json]:
    """Decide about facts and memories that are written as lists between triple backticks."""
    lists = [*_quoted_lists(prompt.last or prompt.whole)]
    if not lists:
        return []
    facts = read_facts(str(fact) for fact in lists[-1])
    stored = [_entry(item) for item in (lists[-2] if len(lists) > 1 else ()) if _entry(item)[0]]
    return [*_write_decisions(decide_changes(facts, stored), stored)]


def _quoted_lists(text: str) -> Iterator[list[Any]]:
    for quoted in re.findall(r"```(?:json)?(.*?)```", text, re.DOTALL):
        value = read_value(quoted)
        if isinstance(value, list):
            yield value


def _write_decisions(
    decisions: Sequence[Decision], stored: Sequence[tuple[str, str]]
) -> Iterator[Json]:
    """Write every stored memory with its event, then the new ones with new numbers."""
    changed = {
        decision.id: decision for decision in decisions if decision.id and decision.event != "NONE"
    }
    for id, text in stored:
        change = changed.get(id)
        if change is None:
            yield {"id": id, "text": text, "event": "NONE"}
        elif change.event == "UPDATE":
            yield {"id": id, "text": change.text, "event": "UPDATE", "old_memory": change.old}
        else:
            yield {"id": id, "text": text, "event": "DELETE"}
    for at, decision in enumerate(decision for decision in decisions if decision.event == "ADD"):
        yield {"id": str(len(stored) + at), "text": decision.text, "event": "ADD"}


def _list_memories(text: str, heading: str) -> list[tuple[str, str]]:
    """Read a JSON list of memories below a heading."""
    lines = text.rpartition(f"{heading}\n")[2].partition("\n")[0]
    value = read_value(lines)
    return [_entry(item) for item in value] if isinstance(value, list) else []


def _entry(item: Any) -> tuple[str, str]:
    """Return the id and the text of a memory as systems list it."""
    if not isinstance(item, Mapping):
        return "", str(item)
    names = ("text", "memory", "content", "fact")
    text = next((str(item[name]) for name in names if isinstance(item.get(name), str)), "")
    return str(item.get("id", item.get("idx", ""))), text


def read_value(text: str) -> Any:
    """Read a literal in a prompt: JSON, or as Python writes it; None if it is neither."""
    with suppress(ValueError, RecursionError):
        return json.loads(text)
    with suppress(ValueError, SyntaxError, MemoryError, RecursionError):
        return ast.literal_eval(text.strip())
    return None


# --- Tools -------------------------------------------------------------------------------------

_INSTANCE = re.compile(r"<instance id=(\S+)[^>]*>\n(.*?)\n</instance>", re.DOTALL)
_PATCH, _REMOVE = "PatchDoc", "RemoveDoc"


def _call_tools(prompt: _Prompt, tools: Sequence[Mapping[str, Any]]) -> Json:
    """Call the offered tools: one call for each fact to insert, patch or remove."""
    properties = {str(tool["name"]): _text_property(tool) for tool in tools}
    insert, key = next(((name, key) for name, key in properties.items() if key), ("", "content"))
    stored = [(id, _instance_text(text, key)) for id, text in _INSTANCE.findall(prompt.whole)]
    changes = [
        _choose_tool(change, insert, key)
        for change in decide_changes(prompt.facts(), stored)
        if change.event != "NONE"
    ]
    calls = [(name, arguments) for name, arguments in changes if name in properties]
    if not calls and stored and _PATCH in properties:
        calls.append((_PATCH, _patch(stored[0][0])))  # at least one call is required
    return _write_calls(calls) if calls else _say("")


def _choose_tool(decision: Decision, insert: str, key: str) -> tuple[str, Json]:
    if decision.event == "ADD":
        return insert, {key: decision.text}
    if decision.event == "DELETE":
        return _REMOVE, {"json_doc_id": decision.id}
    change = {"op": "replace", "path": f"/{key}", "value": decision.text}
    return _PATCH, _patch(decision.id, change)


def _write_calls(calls: Sequence[tuple[str, Json]]) -> Json:
    tool_calls = [
        {
            "id": f"call-{at}",
            "type": "function",
            "function": {"name": name, "arguments": json.dumps(arguments, ensure_ascii=False)},
        }
        for at, (name, arguments) in enumerate(calls)
    ]
    return {"role": "assistant", "content": None, "tool_calls": tool_calls}


def _text_property(tool: Mapping[str, Any]) -> str:
    """Name the one text that a tool stores; empty if it stores none."""
    properties = tool.get("parameters", {}).get("properties", {})
    names = ("content", "memory", "text", "fact")
    return next((name for name in names if name in properties), "")


def _instance_text(text: str, key: str) -> str:
    value = read_value(text)
    while isinstance(value, Mapping):
        value = value.get(key, value.get("content", ""))
    return str(value) if value is not None else text


def _patch(id: str, *patches: Json) -> Json:
    edits = "Replace the outdated value." if patches else "Nothing changes."
    return {"json_doc_id": id, "planned_edits": edits, "patches": list(patches)}


# --- Schemas -----------------------------------------------------------------------------------


def _find_schema(body: Mapping[str, Any], prompt: _Prompt) -> Mapping[str, Any] | None:
    """Find the JSON schema of the reply, in the request or at the end of the instructions."""
    response_format = body.get("response_format") or {}
    schema = (response_format.get("json_schema") or {}).get("schema")
    if isinstance(schema, Mapping):
        return schema
    quoted = read_value(prompt.last.rpartition("in the following format:")[2])
    return quoted if isinstance(quoted, Mapping) and "properties" in quoted else None


def fill_schema(schema: Mapping[str, Any], prompt: Any) -> Json:
    """Fill the properties that the rules know; every other one gets the least that is valid."""
    properties = schema.get("properties", {})
    fillers: Mapping[str, Callable[[Any], Any]] = {
        "extracted_entities": lambda prompt: [
            {"name": name, "entity_type_id": 0} for name in name_entities(prompt.facts())
        ],
        "edges": _extract_edges,
        "entity_resolutions": _resolve_entities,
        "duplicate_facts": lambda prompt: _compare_facts(prompt, ("same",)),
        "contradicted_facts": lambda prompt: _compare_facts(prompt, ("update", "delete")),
        "facts": lambda prompt: [fact.text for fact in prompt.facts()],
    }
    return {
        name: fillers[name](prompt) if name in fillers else _least(part, schema)
        for name, part in properties.items()
    }


def _least(part: Mapping[str, Any], schema: Mapping[str, Any]) -> Any:
    """Return the least value that a part of a schema allows."""
    if reference := part.get("$ref"):
        return _least(schema.get("$defs", {}).get(reference.rpartition("/")[2], {}), schema)
    if "default" in part:
        return part["default"]
    choices = part.get("anyOf", ())
    if any(choice.get("type") == "null" for choice in choices):
        return None
    kind = choices[0].get("type") if choices else part.get("type")
    if kind == "object":
        return {name: _least(choice, schema) for name, choice in part.get("properties", {}).items()}
    if part.get("enum"):
        return part["enum"][0]
    return {"array": [], "integer": 0, "number": 0, "boolean": False}.get(str(kind), "")


def _extract_edges(prompt: _Prompt) -> list[Json]:
    """Relate the entities that the request lists, or those of the facts where it lists none."""
    entities = read_value(prompt.section("ENTITIES"))
    names = [_name(entity) for entity in entities] if isinstance(entities, list) else None
    moment = re.search(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d", prompt.section("REFERENCE_TIME"))
    since = f"{moment[0].replace(' ', 'T')}Z" if moment else None
    return [
        {
            "source_entity_name": edge.source,
            "target_entity_name": edge.target,
            "relation_type": edge.relation,
            "fact": edge.fact.text,
            "valid_at": since,
            "invalid_at": None,
        }
        for edge in relate_entities(prompt.facts(), names)
    ]


def _name(entity: Any) -> str:
    return str(entity.get("name", "")) if isinstance(entity, Mapping) else str(entity)


def _resolve_entities(prompt: _Prompt) -> list[Json]:
    """Match entities with stored ones of the same name."""
    new = read_value(prompt.section("ENTITIES"))
    stored = read_value(prompt.section("EXISTING ENTITIES"))
    candidates = {
        _name(entity).lower(): entity.get("candidate_id", entity.get("id", -1))
        for entity in (stored if isinstance(stored, list) else ())
    }
    return [
        {
            "id": entity.get("id", at),
            "name": _name(entity),
            "duplicate_candidate_id": candidates.get(_name(entity).lower(), -1),
        }
        for at, entity in enumerate(new if isinstance(new, list) else ())
    ]


def _compare_facts(prompt: _Prompt, relations: Sequence[str]) -> list[int]:
    """List the numbers of stored facts that the new fact has one of these relations with."""
    fact = read_fact(prompt.section("NEW FACT"))
    candidates = () if "same" in relations else ("FACT INVALIDATION CANDIDATES",)
    numbers = []
    for name in ("EXISTING FACTS", *candidates):
        for item in read_value(prompt.section(name)) or ():
            id, text = _entry(item)
            if id.isdigit() and relate_facts(fact, read_fact(text)) in relations:
                numbers.append(int(id))
    return numbers
