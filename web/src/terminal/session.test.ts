import { describe, expect, it } from "vitest";
import { Problem } from "@/api/problem";
import { INPUT_MAX, base64Of, bytesOf, inputFrames, newsOf } from "./frames";
import { type Screen, openSession } from "./session";

class Socket {
  readyState = 1;
  sent: string[] = [];
  onmessage?: (event: { data: string }) => void;
  onopen?: () => void;
  onclose?: (event: { code: number; reason: string }) => void;
  send(frame: string) {
    this.sent.push(frame);
  }
  close() {
    this.readyState = 3;
  }
  say(frame: object) {
    this.onmessage?.({ data: JSON.stringify(frame) });
  }
  break(code = 1006, reason = "") {
    this.readyState = 3;
    this.onclose?.({ code, reason });
  }
}

const settled = () => new Promise((done) => setTimeout(done, 0));

function world(ticket: () => Promise<string> = () => Promise.resolve("ws://plane"), refusal?: { code: string; message: string }) {
  const painted: string[] = [];
  const sockets: Socket[] = [];
  const timers: { run: () => void; ms: number }[] = [];
  const screen: Screen = {
    paint: (bytes, size, after) => painted.push(`${after} ${size.cols}x${size.rows} ${new TextDecoder().decode(bytes)}`),
    output: (text) => painted.push(text),
    note: (line) => painted.push(`— ${line}`),
  };
  const session = openSession(screen, {
    ticket,
    refusal: () => Promise.resolve(refusal),
    open: () => {
      const socket = new Socket();
      sockets.push(socket);
      return socket as unknown as WebSocket;
    },
    later: (run, ms) => {
      timers.push({ run, ms });
      return () => undefined;
    },
    now: () => 0,
  });
  return { session, painted, sockets, timers };
}

const ready = { type: "terminal.ready", screen: base64Of(new TextEncoder().encode("$ ")), rows: 32, cols: 120, offset: 0 };

describe("a viewer's session", () => {
  it("watches without sending anything, whatever is typed", async () => {
    const { session, painted, sockets } = world();
    await settled();
    sockets[0]?.say(ready);
    sockets[0]?.say({ type: "terminal.driver", driving: false, driver: "ci-2", viewers: 2 });
    expect(session.type(new Uint8Array([97]))).toBe(false);
    session.resize(10, 10);
    expect(sockets[0]?.sent).toEqual([]);
    expect(painted).toEqual(["start 120x32 $ "]);
    expect(session.state().seats).toMatchObject({ driver: "ci-2", viewers: 2 });
  });

  it("types only while it drives, and counts what the worker has not taken yet", async () => {
    const { session, sockets } = world();
    await settled();
    sockets[0]?.say(ready);
    session.drive(false);
    sockets[0]?.say({ type: "terminal.driver", driving: true, driver: "owner", viewers: 1 });
    expect(session.type(new TextEncoder().encode("ls\r"))).toBe(true);
    expect(session.state().unconfirmed).toBe(3);
    sockets[0]?.say({ type: "terminal.input_ack", bytes_written: 3 });
    expect(session.state().unconfirmed).toBe(0);
    expect(sockets[0]?.sent[0]).toBe('{"type":"terminal.drive","take":false}');
    expect(JSON.parse(sockets[0]?.sent[1] ?? "{}")).toEqual({ type: "terminal.input", data_base64: btoa("ls\r") });
  });

  it("connects again after a loss, keeps what was there, and no longer drives", async () => {
    const { session, painted, sockets, timers } = world();
    await settled();
    sockets[0]?.say(ready);
    sockets[0]?.say({ type: "terminal.driver", driving: true, driver: "owner", viewers: 1 });
    sockets[0]?.onopen?.();
    sockets[0]?.break();
    expect(session.state().phase).toEqual({ is: "lost", at: 500 });
    expect(session.state().seats.driving).toBe(false);
    timers[0]?.run();
    await settled();
    sockets[1]?.say(ready);
    expect(painted.at(-1)).toBe("loss 120x32 $ ");
    expect(session.state().phase.is).toBe("open");
  });

  it("paints over itself when the driver changed", async () => {
    const { painted, sockets } = world();
    await settled();
    sockets[0]?.say(ready);
    sockets[0]?.say(ready);
    expect(painted.at(-1)).toBe("change 120x32 $ ");
  });

  it("says why it was closed, and comes back only when somebody wants it", async () => {
    const { session, painted, sockets, timers } = world();
    await settled();
    sockets[0]?.say(ready);
    sockets[0]?.say({ type: "terminal.closed", code: "agent_exited", message: "it exited with 1" });
    sockets[0]?.break(1000);
    expect(painted.at(-1)).toBe("— closed: it exited with 1");
    expect(session.state().phase).toMatchObject({ is: "closed", code: "agent_exited" });
    expect(timers).toEqual([]);
    session.again();
    await settled();
    expect(sockets).toHaveLength(2);
  });

  it("says why a socket was refused for good, and does not try again", async () => {
    const { session, painted, sockets, timers } = world(undefined, { code: "agent_exited", message: "it has ended: exited with 7" });
    await settled();
    sockets[0]?.break();
    await settled();
    expect(session.state().phase).toMatchObject({ is: "closed", message: "it has ended: exited with 7" });
    expect(painted).toEqual(["— closed: it has ended: exited with 7"]);
    expect(timers).toEqual([]);
  });

  it("asks for a key instead of trying for ever", async () => {
    const { session, timers } = world(() => Promise.reject(new Problem("unauthenticated", "this needs a key", 401)));
    await settled();
    expect(session.state().phase).toMatchObject({ is: "refused" });
    expect(timers).toEqual([]);
  });

  it("keeps a refusal while the same one drives, and forgets it when somebody else does", async () => {
    const { session, sockets } = world();
    await settled();
    sockets[0]?.say(ready);
    sockets[0]?.say({ type: "terminal.driver", driving: false, driver: "ci-2", viewers: 2 });
    sockets[0]?.say({ type: "terminal.error", code: "driven_by_another", message: "ci-2 drives" });
    sockets[0]?.say({ type: "terminal.driver", driving: false, driver: "ci-2", viewers: 2, why: "owner asks" });
    expect(session.state().error?.code).toBe("driven_by_another");
    sockets[0]?.say({ type: "terminal.driver", driving: false, driver: null, viewers: 2 });
    expect(session.state().error).toBeUndefined();
  });

  it("counts what was dropped on the way", async () => {
    const { session, sockets } = world();
    await settled();
    sockets[0]?.say({ type: "terminal.output", chunk: "x", offset: 9, dropped: 1024 });
    sockets[0]?.say({ type: "terminal.output", chunk: "y", offset: 99, dropped: 24 });
    expect(session.state().dropped).toBe(1048);
  });
});

describe("frames", () => {
  it("cuts a large paste into pieces that are taken, losing nothing", () => {
    const typed = new Uint8Array(INPUT_MAX + 7).map((_, at) => at % 251);
    const pieces = inputFrames(typed).map((frame) => bytesOf((JSON.parse(frame) as { data_base64: string }).data_base64));
    expect(pieces.map((piece) => piece.length)).toEqual([INPUT_MAX, 7]);
    expect([...(pieces[1] ?? [])]).toEqual([...typed.subarray(INPUT_MAX)]);
  });
  it("takes what it does not know for nothing", () => {
    expect(newsOf('{"type":"terminal.hologram"}')).toBeUndefined();
    expect(newsOf("not json")).toBeUndefined();
    expect(newsOf('{"type":"terminal.ready","screen":"%%%"}')).toBeUndefined();
  });
});
