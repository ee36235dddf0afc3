"""What stands between a node and its plane and can fail in two ways: it withholds the plane's
frames while pongs flow on, or it drops everything in silence with the sockets open."""

import select
import socket
import threading

from .waiting import free_port


class Proxy:
    """Forwards TCP. The mode holds for the control sockets that are open and those to come."""

    def __init__(self, port):
        self.target = port
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        # `pass`, `withhold` (the plane's messages to the node) or `drop` (everything).
        self.mode = "pass"
        self.withheld = 0
        self.pongs = 0
        self._ended = threading.Event()
        self._server = socket.create_server(("127.0.0.1", self.port))
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while not self._ended.is_set():
            try:
                client, _ = self._server.accept()
            except OSError:
                return
            threading.Thread(target=self._carry, args=(client,), daemon=True).start()

    def _carry(self, client):
        try:
            plane = socket.create_connection(("127.0.0.1", self.target), timeout=10)
        except OSError:
            client.close()
            return
        frames = Frames(self)
        is_control = None
        with client, plane:
            while not self._ended.is_set():
                ready, _, _ = select.select([client, plane], [], [], 0.2)
                for side in ready:
                    try:
                        data = side.recv(65536)
                    except OSError:
                        return
                    if not data:
                        return
                    if is_control is None:
                        is_control = b"/v1/node/ws" in data.split(b"\r\n", 1)[0]
                    if self.mode == "drop":
                        continue
                    if side is plane and is_control:
                        data = frames.filter(data)
                    try:
                        (client if side is plane else plane).sendall(data)
                    except OSError:
                        return

    def close(self):
        self._ended.set()
        self._server.close()


class Frames:
    """The frames from a plane to a node, which are not masked. Holds back text frames while the
    proxy withholds; pings, pongs and closes go through."""

    def __init__(self, proxy):
        self.proxy = proxy
        self.buffer = b""
        self.is_open = False

    def filter(self, data):
        self.buffer += data
        out = b""
        if not self.is_open:
            head, end, rest = self.buffer.partition(b"\r\n\r\n")
            if not end:
                return b""
            out, self.buffer, self.is_open = head + end, rest, True
        while (whole := self._length()) is not None and len(self.buffer) >= whole:
            frame, self.buffer = self.buffer[:whole], self.buffer[whole:]
            opcode = frame[0] & 0x0F
            self.proxy.pongs += opcode == 0xA
            if opcode in (0x0, 0x1, 0x2) and self.proxy.mode == "withhold":
                self.proxy.withheld += 1
                continue
            out += frame
        return out

    def _length(self):
        if len(self.buffer) < 2:
            return None
        length = self.buffer[1] & 0x7F
        if length < 126:
            return 2 + length
        size = 2 if length == 126 else 8
        if len(self.buffer) < 2 + size:
            return None
        return 2 + size + int.from_bytes(self.buffer[2 : 2 + size], "big")
