// This tab's end of the one connection: a shared worker where there is one, else the tab that
// leads (a lock decides, a channel carries), else a connection of its own.
import type { ToHub, ToTab } from "./frames";
import { openHub } from "./hub";
import { openLink } from "./link";

const ALIVE_MS = 30_000;
const LEAD = "muster-stream";

export type TabLink = { topics(topics: string[]): void; now(): void };

type Carrier = (message: ToHub) => void;

export function joinLink(hear: (message: ToTab) => void): TabLink {
  const from = newId();
  let topics: string[] = [];
  let cursor = "";
  const heard = (message: ToTab) => {
    if (message.is === "frame") cursor = message.cursor;
    if (message.is === "lead") send({ to: "hub", from, is: "topics", topics });
    hear(message);
  };
  const send: Carrier = carrier(heard, () => cursor);
  const alive = setInterval(() => send({ to: "hub", from, is: "alive" }), ALIVE_MS);
  addEventListener("pagehide", () => send({ to: "hub", from, is: "bye" }));
  // A page that comes back from the cache of Back was taken off the list when it went.
  addEventListener("pageshow", (event) => (event as PageTransitionEvent).persisted && send({ to: "hub", from, is: "topics", topics }));
  document.addEventListener("visibilitychange", () => document.visibilityState === "visible" && send({ to: "hub", from, is: "alive" }));
  import.meta.hot?.dispose(() => clearInterval(alive));
  return {
    topics(next) {
      topics = next;
      send({ to: "hub", from, is: "topics", topics });
    },
    now: () => send({ to: "hub", from, is: "now" }),
  };
}

const newId = () => Array.from(crypto.getRandomValues(new Uint8Array(8)), (byte) => byte.toString(16).padStart(2, "0")).join("");

function carrier(heard: (message: ToTab) => void, cursor: () => string): Carrier {
  if (typeof SharedWorker !== "undefined") {
    try {
      const worker = new SharedWorker(new URL("./hub.worker.ts", import.meta.url), { type: "module", name: LEAD });
      let fallen: Carrier | undefined;
      let last: ToHub | undefined;
      worker.port.onmessage = ({ data }: MessageEvent<ToTab>) => heard(data);
      // A worker that cannot be loaded (an old build after an upgrade) must not leave the page deaf.
      worker.onerror = () => {
        fallen ??= led(heard, cursor);
        if (last) fallen(last);
      };
      return (message) => {
        if (message.is === "topics") last = message;
        if (fallen) fallen(message);
        else worker.port.postMessage(message);
      };
    } catch {
      // A browser may refuse workers; the tabs then share one among themselves.
    }
  }
  return led(heard, cursor);
}

/** One tab leads: the one that holds the lock. It talks to the plane, the others over a channel. */
function led(heard: (message: ToTab) => void, cursor: () => string): Carrier {
  if (typeof BroadcastChannel === "undefined" || !navigator.locks) {
    const hub = openHub(heard, openLink);
    return (message) => hub.hear(message);
  }
  const channel = new BroadcastChannel(LEAD);
  let hub: ReturnType<typeof openHub> | undefined;
  const tell = (message: ToTab) => {
    channel.postMessage(message);
    heard(message);
  };
  channel.onmessage = ({ data }: MessageEvent<ToTab | ToHub>) => {
    if (data.to === "tab") heard(data);
    else hub?.hear(data);
  };
  void navigator.locks.request(LEAD, () => new Promise<void>(() => {
    // Held until this tab is gone. Where the last leader stopped, this one goes on.
    hub = openHub(tell, (events) => openLink(events, { cursor: cursor() }));
    tell({ to: "tab", is: "lead" });
  }));
  return (message) => (hub ? hub.hear(message) : channel.postMessage(message));
}
