import { afterEach, beforeEach, expect, it, vi } from "vitest";
import type { Frame, LinkState } from "./frames";
import { CHANGE_DELAY_MS, SILENCE_MS, type Source, backoff, openLink } from "./link";

/** A stream under the test's hand. */
class Fake implements Source {
  readonly listeners = new Map<string, ((event: Event) => void)[]>();
  closed = false;
  constructor(readonly address: string) {}
  addEventListener = ((name: string, listener: (event: Event) => void) => {
    this.listeners.set(name, [...(this.listeners.get(name) ?? []), listener]);
  }) as Source["addEventListener"];
  close() {
    this.closed = true;
  }
  tell(name: string, data: unknown = {}, lastEventId = "") {
    for (const listener of this.listeners.get(name) ?? []) listener({ data: JSON.stringify(data), lastEventId } as MessageEvent<string>);
  }
  get query() {
    return new URLSearchParams(this.address.split("?")[1]);
  }
}

let sources: Fake[] = [];
let frames: Frame[] = [];
let states: LinkState["state"][] = [];
const now = () => sources[sources.length - 1] as Fake;
const link = () =>
  openLink(
    { frame: (frame) => frames.push(frame), state: (state) => states.push(state.state) },
    {
      open: (address) => {
        const made = new Fake(address);
        sources.push(made);
        return made;
      },
      random: () => 1,
    },
  );

beforeEach(() => {
  vi.useFakeTimers();
  sources = [];
  frames = [];
  states = [];
});
afterEach(() => vi.useRealTimers());

it("waits between tries from half a second to ten, for ever", () => {
  expect([0, 1, 2, 3, 4, 5, 60].map((attempts) => backoff(attempts, 1))).toEqual([500, 1000, 2000, 4000, 8000, 10_000, 10_000]);
  for (const random of [0, 0.5, 1]) for (const attempts of [0, 3, 99]) {
    const wait = backoff(attempts, random);
    expect(wait).toBeGreaterThanOrEqual(500);
    expect(wait).toBeLessThanOrEqual(10_000);
  }
});

it("resumes after the last id and says that it did", () => {
  link().topics(["runs"]);
  now().tell("open");
  now().tell("message", { kind: "execution.started" }, "c7");
  now().tell("error");
  expect(states.at(-1)).toBe("reconnecting");
  vi.advanceTimersByTime(500);
  expect(sources).toHaveLength(2);
  expect(now().query.get("cursor")).toBe("c7");
  now().tell("open");
  expect(frames.at(-1)).toEqual({ type: "resync", why: "reconnected" });
  expect(states.at(-1)).toBe("live");
});

it("keeps the cursor when the topics change, and changes once for several changes", () => {
  const live = link();
  live.topics(["runs"]);
  now().tell("open");
  now().tell("tick", { at: "2026-11-29T18:00:00.000Z", position: "p3" });
  live.topics(["runs", "run:a"]);
  live.topics(["run:a"]);
  vi.advanceTimersByTime(CHANGE_DELAY_MS);
  expect(sources).toHaveLength(2);
  expect(now().query.get("topics")).toBe("run:a");
  expect(now().query.get("cursor")).toBe("p3");
  now().tell("open");
  expect(frames.some((frame) => frame.type === "resync")).toBe(false);
});

it("takes silence for a loss", () => {
  link().topics(["summary"]);
  now().tell("open");
  vi.advanceTimersByTime(SILENCE_MS - 1);
  now().tell("tick", { at: "2026-11-29T18:00:00.000Z" });
  vi.advanceTimersByTime(SILENCE_MS - 1);
  expect(states.at(-1)).toBe("live");
  vi.advanceTimersByTime(1);
  expect(states.at(-1)).toBe("reconnecting");
});

it("goes on trying when it is offline, and hears nothing of a stream it has left", () => {
  link().topics(["summary"]);
  for (let attempt = 0; attempt < 40; attempt += 1) {
    now().tell("error");
    vi.advanceTimersByTime(10_000);
  }
  expect(states.at(-1)).toBe("offline");
  expect(sources).toHaveLength(41);
  sources[3]?.tell("message", { kind: "execution.started" }, "old");
  expect(frames).toEqual([]);
});

it("tells a gap and a reset apart, and lets a frame that is no JSON pass", () => {
  link().topics(["runs"]);
  now().tell("open");
  now().tell("gap");
  now().tell("reset");
  for (const listener of now().listeners.get("message") ?? []) listener({ data: "{", lastEventId: "" } as MessageEvent<string>);
  expect(frames).toEqual([{ type: "resync", why: "gap" }, { type: "resync", why: "reset" }]);
});
