"""The two official clients of the Model Context Protocol behind one interface: the Python one in
this process, the TypeScript one as a child that takes lines of JSON."""

import json
import shutil
import subprocess
import threading
from contextlib import ExitStack
from pathlib import Path
from queue import Empty, Queue

import httpx2
from anyio.from_thread import start_blocking_portal
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

PEER = Path(__file__).resolve().parents[1] / "mcp"


class ProtocolError(Exception):
    """The server answered with a JSON-RPC error, or the client gave up."""

    def __init__(self, code, message):
        super().__init__(f"{code}: {message}")
        self.code = code


class Given:
    """What a tool gave. Both forms of it agree."""

    def __init__(self, is_error, content, text):
        assert json.loads(text) == content, (text, content)
        self.is_error = is_error
        self.content = content

    def ok(self):
        assert not self.is_error, self.content
        return self.content

    def refused(self, category):
        assert self.is_error, self.content
        assert self.content["error_category"] == category, self.content
        assert self.content["error"] and self.content["message"], self.content
        return self.content


class PythonClient:
    """The Python client. `mode` says how it negotiates: by a handshake or without one."""

    def __init__(self, plane, key=None, mode="auto"):
        self._stack = ExitStack()
        portal = self._stack.enter_context(start_blocking_portal())
        headers = {"X-API-Key": key} if key else {}
        http = httpx2.AsyncClient(headers=headers, timeout=120)
        transport = streamable_http_client(f"{plane.url}/mcp", http_client=http)
        client = Client(transport, mode=mode)
        self._portal = portal
        self._client = self._stack.enter_context(portal.wrap_async_context_manager(client))
        self.version = self._client.protocol_version
        self.server = self._client.server_info.name
        self.instructions = self._client.instructions
        # Results are checked against these: read while the plane is there.
        self.tools()

    def tools(self):
        listed = self._portal.call(self._client.list_tools)
        return [tool.model_dump(by_alias=True, exclude_none=True) for tool in listed.tools]

    def call(self, name, given=None, timeout=60, progress=None, **arguments):
        async def tell(done, total, message):
            progress.append((done, total, message))

        async def ask():
            return await self._client.call_tool(
                name,
                given if given is not None else arguments,
                read_timeout_seconds=timeout,
                progress_callback=tell if progress is not None else None,
            )

        try:
            result = self._portal.call(ask)
        except MCPError as error:
            raise ProtocolError(error.error.code, error.error.message) from error
        return Given(bool(result.is_error), result.structured_content, result.content[0].text)

    def close(self):
        self._stack.close()


class TypeScriptClient:
    """The TypeScript client."""

    def __init__(self, plane, key=None):
        node = shutil.which("node")
        assert node, "node is not there; `cargo xtask test` says how to get it"
        assert (PEER / "node_modules").is_dir(), "run `npm ci` in tests/peers/mcp"
        command = [node, "client.mjs", f"{plane.url}/mcp", *([key] if key else [])]
        self.process = subprocess.Popen(
            command, cwd=PEER, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._waiting = {}
        self._lock = threading.Lock()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        try:
            told = self._ask(60, do="connect")
        except BaseException:
            self.close()
            raise
        assert told["session"] is None, "a server without sessions gave one"
        self.version = told["version"]
        self.server = told["server"]["name"]
        self.instructions = told["instructions"]

    def tools(self):
        return self._ask(60, do="tools")

    def call(self, name, given=None, timeout=60, progress=None, **arguments):
        result = self._ask(
            timeout + 30,
            progress,
            do="call",
            name=name,
            arguments=given if given is not None else arguments,
            timeout=timeout,
            progress=progress is not None,
        )
        text = result["content"][0]["text"]
        return Given(bool(result.get("isError")), result["structuredContent"], text)

    def kill(self):
        """Ends it where it stands."""
        self.process.kill()
        self.process.wait(30)

    def close(self):
        self.process.stdin.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.kill()
        self._reader.join(10)

    def _ask(self, within, told=None, **command):
        answers = Queue()
        with self._lock:
            id = len(self._waiting)
            self._waiting[id] = answers
            self.process.stdin.write(json.dumps({"id": id, **command}) + "\n")
            self.process.stdin.flush()
        while True:
            try:
                line = answers.get(timeout=within)
            except Empty:
                raise AssertionError(f"no answer to {command} within {within} s") from None
            if line is None:
                raise AssertionError(f"the client ended before it answered {command}")
            if "progress" in line:
                step = line["progress"]
                told.append((step["progress"], step.get("total"), step.get("message")))
                continue
            if "error" in line:
                raise ProtocolError(line["error"]["code"], line["error"]["message"])
            return line["answer"]

    def _read(self):
        for line in self.process.stdout:
            told = json.loads(line)
            self._waiting[told["id"]].put(told)
        for answers in list(self._waiting.values()):
            answers.put(None)


CLIENTS = {
    "python, new protocol": lambda plane, key=None: PythonClient(plane, key, mode="auto"),
    "python, handshake": lambda plane, key=None: PythonClient(plane, key, mode="legacy"),
    "typescript": TypeScriptClient,
}
