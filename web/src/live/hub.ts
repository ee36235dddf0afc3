// Shares one link between all tabs of a browser: the union of their topics goes to the plane, what
// comes goes to all. Runs in the shared worker, or in the tab that leads. Knows no page.
import type { Frame, LinkState, ToHub, ToTab } from "./frames";
import { localNow } from "./time";

/** A tab that was not heard for so long is gone (background tabs may speak once a minute). */
export const TAB_GONE_MS = 150_000;

type Link = { topics(topics: readonly string[]): void; now(): void; close(): void };
export type LinkTo = (events: { frame(frame: Frame, cursor: string): void; state(state: LinkState): void }) => Link;

export function openHub(tell: (message: ToTab) => void, link: LinkTo, now: () => number = localNow) {
  const tabs = new Map<string, { topics: readonly string[]; heard: number }>();
  let last: LinkState | undefined;
  const open = link({
    frame: (frame, cursor) => tell({ to: "tab", is: "frame", frame, cursor }),
    state(state) {
      last = state;
      tell({ to: "tab", is: "state", state });
    },
  });
  const union = () => {
    for (const [id, tab] of tabs) if (now() - tab.heard > TAB_GONE_MS) tabs.delete(id);
    open.topics([...new Set([...tabs.values()].flatMap((tab) => tab.topics))].sort());
  };
  return {
    hear(message: ToHub) {
      const tab = tabs.get(message.from);
      switch (message.is) {
        case "topics":
          tabs.set(message.from, { topics: message.topics, heard: now() });
          union();
          // A tab that has just come learns how things stand without waiting for a frame.
          if (!tab && last) tell({ to: "tab", is: "state", state: last });
          return;
        case "alive":
          if (tab) tab.heard = now();
          else tell({ to: "tab", is: "lead" });
          return;
        case "bye":
          tabs.delete(message.from);
          if (tabs.size > 0) union();
          return;
        case "now":
          open.now();
      }
    },
    close: () => open.close(),
  };
}
