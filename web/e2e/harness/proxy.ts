// A proxy in front of a plane, as one stands before planes that are asked from elsewhere: it passes
// everything on, streams and sockets too, and says for whom. Whoever comes through it is not local.
import { type IncomingMessage, type Server, createServer, request } from "node:http";
import type { Socket } from "node:net";
import type { Plane } from "./plane";

/** An address that documentation may use, and nobody has. */
const FROM = "203.0.113.7";

export class Proxy {
  private constructor(private readonly server: Server, private readonly sockets: Set<Socket>, readonly url: string) {}

  static async start(plane: Plane): Promise<Proxy> {
    const passed = (asked: IncomingMessage) => request({
      host: plane.host, port: plane.port, method: asked.method, path: asked.url, headers: { ...asked.headers, "x-forwarded-for": FROM },
    });
    const sockets = new Set<Socket>();
    const server = createServer((asked, answer) => {
      const on = passed(asked);
      on.on("response", (said) => {
        answer.writeHead(said.statusCode ?? 502, said.headers);
        said.pipe(answer);
      });
      on.on("error", () => answer.headersSent ? answer.destroy() : answer.writeHead(502).end());
      answer.on("close", () => on.destroy());
      asked.pipe(on);
    });
    server.on("upgrade", (asked, socket: Socket, head) => {
      const on = passed(asked);
      on.on("upgrade", (said, other: Socket) => {
        const lines = Object.entries(said.headers).map(([name, value]) => `${name}: ${String(value)}`);
        socket.write(`HTTP/1.1 101 Switching Protocols\r\n${lines.join("\r\n")}\r\n\r\n`);
        other.write(head);
        other.pipe(socket).pipe(other);
        for (const each of [socket, other]) each.on("error", () => undefined);
      });
      on.on("error", () => socket.destroy());
      on.end();
    });
    server.on("connection", (socket) => {
      sockets.add(socket);
      socket.on("close", () => sockets.delete(socket));
    });
    await new Promise<void>((listens) => server.listen(0, "127.0.0.1", listens));
    const address = server.address();
    return new Proxy(server, sockets, `http://127.0.0.1:${typeof address === "object" && address ? address.port : 0}`);
  }

  async close(): Promise<void> {
    for (const socket of this.sockets) socket.destroy();
    await new Promise((closed) => this.server.close(closed));
  }
}
