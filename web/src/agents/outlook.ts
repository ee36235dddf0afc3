// What a call to an agent would meet now, in words: from what the plane says of the agent. The
// call stays possible; the plane decides.
import type { AgentLine } from "./shapes";

export type Outlook = { says: string; tone: "text-2" | "wait" | "fail" };

export function outlookOf(agent: Pick<AgentLine, "id" | "state" | "why" | "hold" | "pending_tags" | "slots" | "queue">, lane: "async" | "sync"): Outlook | undefined {
  if (agent.pending_tags && agent.pending_tags.length > 0) return { says: "refused at once, 503 agent_pending_approval: its tags are not approved", tone: "fail" };
  if (agent.state === "down") return { says: "refused at once, 503 node_unavailable; nothing is stored", tone: "fail" };
  if (agent.hold) return { says: lane === "async" ? "queued: a hold stands until somebody lifts it" : "waits behind a hold, and is refused when the time of a sync call is over", tone: "wait" };
  if (agent.state === "restarting") return { says: "waits for the agent to restart, within its grace", tone: "wait" };
  if (agent.state === "unreachable_callback") return { says: "fails within a second: the plane cannot dial it", tone: "fail" };
  if (agent.state === "unknown") return { says: "sent: it never beat, so nobody knows whether it answers", tone: "wait" };
  if (agent.slots.cap !== null && agent.slots.used >= agent.slots.cap) {
    return { says: `queued: ${agent.slots.used} of ${agent.slots.cap} slots are held, ${agent.queue.depth} wait`, tone: "wait" };
  }
  return undefined;
}

/** How much a line of the list needs somebody: lower comes first. */
export function needOf(agent: Pick<AgentLine, "state" | "hold" | "pending_tags" | "slots" | "queue" | "window">): number {
  const states: Record<string, number> = { down: 0, unreachable_callback: 1, restarting: 3, degraded: 4, unknown: 5 };
  if (agent.pending_tags && agent.pending_tags.length > 0) return 2;
  const state = states[agent.state];
  if (state !== undefined) return state;
  if (agent.hold) return 6;
  if (agent.queue.depth > 0) return 7;
  if (agent.window.failed + agent.window.refused > 0) return 8;
  return 9;
}

/** By need, then by how much waits, then by name. */
export function byNeed<A extends Pick<AgentLine, "id" | "state" | "hold" | "pending_tags" | "slots" | "queue" | "window">>(agents: readonly A[]): A[] {
  return [...agents].sort((a, b) => needOf(a) - needOf(b) || b.queue.depth - a.queue.depth || (a.id < b.id ? -1 : 1));
}
