// The shared worker: holds the one connection of this browser to the plane. All it does is in
// `hub.ts` and `link.ts`.
import type { ToHub, ToTab } from "./frames";
import { openHub } from "./hub";
import { openLink } from "./link";

const ports = new Map<string, MessagePort>();
const hub = openHub((message: ToTab) => {
  for (const port of ports.values()) port.postMessage(message);
}, openLink);

(self as unknown as SharedWorkerGlobalScope).onconnect = (event) => {
  const [port] = event.ports;
  if (!port) return;
  port.onmessage = ({ data }: MessageEvent<ToHub>) => {
    if (data.is === "bye") ports.delete(data.from);
    else ports.set(data.from, port);
    hub.hear(data);
  };
};
