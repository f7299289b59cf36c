"""Loopback stand-ins that follow the documented REST APIs of Zep, Letta, Cognee and MemOS.

Each has one small rule for what it stores, so that a test knows the truth: a sentence is an item,
and every item keeps the documented fields. Requests that the documentation does not allow fail.
"""

from __future__ import annotations

import itertools
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from ...doubles import LoopbackServer

KEY = "key-SECRET-0123456789"


class RefusalError(Exception):
    """A request that the API does not accept."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


def sentences(text: str) -> list[str]:
    return [item for item in re.split(r"(?<=[.!?])\s+", text.replace("[USER] ", "")) if item]


def rank(items: list[dict[str, Any]], query: str, field: str) -> list[dict[str, Any]]:
    """Sort by common words; ties keep the order of storage."""
    words = set(query.lower().split())
    return sorted(items, key=lambda first: -len(words & set(str(first[field]).lower().split())))


class Service(ABC):
    """What the stand-ins share: numbered ids, times, and work that is done on the second look."""

    header = ("Authorization", f"Bearer {KEY}")

    def __init__(self) -> None:
        self.spaces: dict[str, Any] = {}
        self._numbers = itertools.count(1)
        self.pending: dict[str, Any] = {}

    def name(self, kind: str) -> str:
        return f"{kind}-{next(self._numbers):08d}-0000-4000-8000-000000000000"

    def time(self) -> str:
        return f"2026-01-01T00:{next(self._numbers) // 60:02d}:{next(self._numbers) % 60:02d}Z"

    def space(self, name: Any) -> Any:
        if name not in self.spaces:
            raise RefusalError(404, f"{name} not found")
        return self.spaces[name]

    @abstractmethod
    def handle(self, method: str, path: str, query: Mapping[str, str], body: Any) -> Any:
        """Answer a request."""


class Zep(Service):
    """Facts of a user graph; a fact that is said again names both episodes."""

    header = ("Authorization", f"Api-Key {KEY}")

    def handle(self, method: str, path: str, query: Mapping[str, str], body: Any) -> Any:
        place = path.removeprefix("/api/v2")
        if (method, place) == ("POST", "/users"):
            self.spaces[body["user_id"]] = []
            return {"user_id": body["user_id"], "uuid": self.name("user")}
        if (method, place) == ("POST", "/graph"):
            assert set(body) == {"user_id", "type", "data"}
            assert body["type"] == "text"
            self.space(body["user_id"])
            uuid = self.name("episode")
            self.pending[uuid] = [0, body]
            return {"uuid": uuid, "content": body["data"], "created_at": self.time()}
        if method == "GET" and place.startswith("/graph/episodes/"):
            return self._look(place.rpartition("/")[2])
        if method == "POST" and place.startswith("/graph/edge/user/"):
            edges = self.space(place.rpartition("/")[2])
            uuids = [edge["uuid"] for edge in edges]
            start = uuids.index(body["uuid_cursor"]) + 1 if "uuid_cursor" in body else 0
            return edges[start : start + body["limit"]]
        if (method, place) == ("POST", "/graph/search"):
            assert body["scope"] == "edges"
            return {
                "edges": rank(self.space(body["user_id"]), body["query"], "fact")[: body["limit"]]
            }
        if method == "DELETE" and place.startswith("/users/"):
            self.space(place.rpartition("/")[2])
            del self.spaces[place.rpartition("/")[2]]
            return {"message": "ok"}
        raise RefusalError(404, place)

    def _look(self, uuid: str) -> Any:
        looks, body = self.pending[uuid]
        self.pending[uuid][0] += 1
        if looks == 1:
            edges = self.spaces[body["user_id"]]
            for sentence in sentences(body["data"]):
                existing_edge = next((edge for edge in edges if edge["fact"] == sentence), None)
                if existing_edge is not None:
                    existing_edge["episodes"].append(uuid)
                    continue
                edges.append(
                    {
                        "uuid": self.name("edge"),
                        "fact": sentence,
                        "name": "SAYS",
                        "created_at": self.time(),
                        "episodes": [uuid],
                    }
                )
        return {"uuid": uuid, "content": body["data"], "processed": looks >= 1}


class Letta(Service):
    """Passages of an archival memory."""

    def handle(self, method: str, path: str, query: Mapping[str, str], body: Any) -> Any:
        if (method, path) == ("POST", "/v1/agents"):
            assert {"name", "model", "embedding"} <= set(body)
            agent = self.name("agent")
            self.spaces[agent] = []
            return {"id": agent, "name": body["name"]}
        pieces = path.split("/")
        passages = self.space(pieces[3])
        if method == "DELETE" and len(pieces) == 4:
            del self.spaces[pieces[3]]
            return None
        if method == "POST" and pieces[4:] == ["archival-memory"]:
            new = {"id": self.name("passage"), "text": body["text"], "created_at": self.time()}
            passages.append(new)
            return [new]
        if method == "GET" and pieces[4:] == ["archival-memory"]:
            ids = [passage["id"] for passage in passages]
            start = ids.index(query["after"]) + 1 if "after" in query else 0
            return passages[start : start + int(query["limit"])]
        if method == "GET" and pieces[4:] == ["archival-memory", "search"]:
            hits = rank(passages, query["query"], "text")[: int(query["top_k"])]
            results = [
                {
                    "id": passage["id"],
                    "content": passage["text"],
                    "timestamp": passage["created_at"],
                    "tags": [],
                }
                for passage in hits
            ]
            return {"count": len(results), "results": results}
        raise RefusalError(405, path)


class Cognee(Service):
    """Chunks of a dataset: nothing is in the graph before it is cognified."""

    header = ("X-Api-Key", KEY)

    def handle(self, method: str, path: str, query: Mapping[str, str], body: Any) -> Any:
        place = path.removeprefix("/api/v1")
        if (method, place) == ("POST", "/datasets"):
            dataset = self.name("dataset")
            self.spaces[dataset] = {"data": [], "nodes": [], "looks": 0}
            return {"id": dataset, "name": body["name"]}
        if (method, place) == ("POST", "/add"):
            parts = dict(re.findall(r'name="(\w+)".*?\r\n\r\n(.*?)\r\n--', body, re.DOTALL))
            self.space(parts["datasetId"])["data"].append(parts["data"])
            return {"status": "PipelineRunCompleted"}
        if (method, place) == ("POST", "/cognify"):
            assert body["runInBackground"] is True
            for dataset in body["datasetIds"]:
                self.space(dataset)["looks"] = 0
            return {dataset: {"status": "PipelineRunStarted"} for dataset in body["datasetIds"]}
        if (method, place) == ("GET", "/datasets/status"):
            return {query["dataset"]: self._cognify(self.space(query["dataset"]))}
        if method == "GET" and place.endswith("/graph"):
            return {"nodes": self.space(place.split("/")[2])["nodes"], "edges": []}
        if (method, place) == ("POST", "/search"):
            assert body["searchType"] == "CHUNKS"
            nodes = self.space(body["datasetIds"][0])["nodes"]
            chunks = [
                {"id": node["id"], "text": node["properties"]["text"]}
                for node in nodes
                if node["type"] == "DocumentChunk"
            ]
            return rank(chunks, body["query"], "text")[: body["topK"]]
        if method == "DELETE":
            del self.spaces[place.split("/")[2]]
            return None
        raise RefusalError(404, place)

    def _cognify(self, space: Any) -> str:
        space["looks"] += 1
        if space["looks"] < 2:
            return "DATASET_PROCESSING_STARTED"
        for text in space["data"]:
            for chunk in sentences(text):
                node = {"label": "chunk", "type": "DocumentChunk", "properties": {"text": chunk}}
                space["nodes"].append({"id": self.name("node"), **node})
            entity = {"label": "user", "type": "Entity", "properties": {"description": "a person"}}
            space["nodes"].append({"id": self.name("node"), **entity})
        space["data"] = []
        return "DATASET_PROCESSING_COMPLETED"


class MemOS(Service):
    """Memories of a user: the four newest sentences, in words of its own."""

    header = ("Authorization", f"Token {KEY}")

    def handle(self, method: str, path: str, query: Mapping[str, str], body: Any) -> Any:
        assert method == "POST"
        place = path.removeprefix("/api/openmem/v1")
        data: Any
        if place == "/add/message":
            task = self.name("task")
            self.pending[task] = [0, body]
            data = {"success": True, "task_id": task, "status": "running"}
        elif place == "/get/status":
            data = {"task_id": body["task_id"], "status": self._work(body["task_id"])}
        elif place == "/get/memory":
            memories = self.spaces.get(body["user_id"], [])
            start = (body["page"] - 1) * body["size"]
            data = {"memory_detail_list": memories[start : start + body["size"]]}
        elif place == "/search/memory":
            memories = rank(self.spaces.get(body["user_id"], []), body["query"], "memory_value")
            data = {"memory_detail_list": memories[: body["memory_limit_number"]]}
        elif place == "/delete/memory":
            self.spaces.pop(body["user_id"], None)
            data = {"success": True}
        else:
            raise RefusalError(404, place)
        return {"code": 0, "data": data, "message": "ok"}

    def _work(self, task: str) -> str:
        looks, body = self.pending[task]
        self.pending[task][0] += 1
        if looks == 0:
            return "running"
        if looks == 1:
            memories = self.spaces.setdefault(body["user_id"], [])
            for message in body["messages"]:
                for sentence in sentences(message["content"]):
                    value = f"[user opinion] The user said: {sentence}"
                    new = {"id": self.name("memory"), "memory_value": value}
                    memories.append(
                        {**new, "memory_key": "talk", "create_time": next(self._numbers)}
                    )
            del memories[:-4]
        return "completed"


class Server(LoopbackServer):
    """Serves a stand-in on loopback."""

    def __init__(self, service: Service) -> None:
        super().__init__(_Handler)
        self.service = service


class _Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def do_DELETE(self) -> None:
        self._answer()

    def _answer(self) -> None:
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
        is_json = (self.headers.get("Content-Type") or "").startswith("application/json")
        parts = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        status = 200
        try:
            name, value = self.server.service.header
            if self.headers.get(name) != value:
                raise RefusalError(401, "not authorized")
            body = json.loads(raw) if raw and is_json else raw
            reply = self.server.service.handle(self.command, unquote(parts.path), query, body)
        except RefusalError as refusal:
            status, reply = refusal.status, {"detail": str(refusal)}
        content = json.dumps(reply).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *arguments: object) -> None:
        """Say nothing."""
