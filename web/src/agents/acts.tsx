// What can be done about an agent: hold and lift the hold, change its cap, approve its tags, take
// it off the list. Used by the list, the page and the queues.
import { type ReactNode, useState } from "react";
import { ask, touched, wouldDo } from "@/execution/ask";
import { count } from "@/look/format";
import { plain } from "@/look/plain";
import type { NamedAct } from "@/execution/acts";
import { Plain } from "@/parts/plain";
import type { components } from "muster-openapi";
import type { AgentLine, AgentRetired, CapShown } from "./shapes";

type Lifted = components["schemas"]["Lifted"];

/** Drafts of the fields, by agent: a refusal does not lose what was typed. */
const reasons = new Map<string, string>();
const caps = new Map<string, string>();
/** What takes the last change of an agent's cap back. */
const before = new Map<string, number | null>();

export function agentActs(agent: AgentLine): NamedAct[] {
  const acts = [agent.hold ? unhold(agent) : hold(agent), cap(agent)];
  if (agent.hold && !agent.hold.everything) acts.splice(1, 0, sayWhy(agent));
  if (agent.pending_tags && agent.pending_tags.length > 0) acts.unshift(approveTags(agent, agent.pending_tags));
  if (agent.state !== "active" && agent.state !== "degraded") acts.push(retire(agent));
  return acts;
}

function refresh(id: string): void {
  touched(id, "/api/v1/nodes", "/api/v1/hold", "/api/v1/queues");
}

/** What is said of a hold whose reason nobody has given yet. */
export const NO_REASON = "held from the dashboard";

const setHold = (id: string, reason: string, key: string) => ask("/api/v1/hold", { path: {}, body: { agent: id, reason }, key });

/** Stops dispatching to it, at once. Within ten seconds that is taken back; later only lifting it does. */
export function hold(agent: Pick<AgentLine, "id">): NamedAct {
  return {
    name: "hold", verb: "Hold", kind: "undo", hint: "Shift+H", scope: "operate", object: agent.id,
    command: `muster hold ${agent.id} --reason …`,
    run: async (key) => {
      await setHold(agent.id, NO_REASON, key);
      refresh(agent.id);
      return `${plain(agent.id)} is held: what it has goes on, calls are queued`;
    },
    undo: async (key) => {
      await ask<Lifted>("/api/v1/unhold", { path: {}, body: { agent: agent.id }, key });
      refresh(agent.id);
      return `${plain(agent.id)} is held no longer`;
    },
  };
}

/** Gives a hold its reason, which whoever waits is shown. */
export function sayWhy(agent: Pick<AgentLine, "id" | "hold">): NamedAct {
  const said = agent.hold?.reason;
  return {
    name: "say_why", verb: "Say why", kind: "ask", scope: "operate", object: agent.id, keep: "Not now",
    consequence: async () => (
      <div className="flex flex-col gap-2">
        <p>Everybody who waits for <b><Plain text={agent.id} /></b> is shown it. The hold counts from then, as yours.</p>
        <Draft drafts={reasons} id={agent.id} label="Reason" initial={said === NO_REASON ? "" : said} />
      </div>
    ),
    run: async (key) => {
      const reason = (reasons.get(agent.id) ?? said ?? "").trim();
      if (reason === "") throw new Error("say in a few words why it is held");
      await setHold(agent.id, reason, key);
      reasons.delete(agent.id);
      refresh(agent.id);
      return "said";
    },
  };
}

export function unhold(agent: Pick<AgentLine, "id" | "hold">): NamedAct {
  const everything = agent.hold?.everything === true;
  const body = everything ? {} : { agent: agent.id };
  return {
    name: "unhold", verb: everything ? "Lift the hold over everything" : "Unhold", kind: "wide", scope: "operate",
    confirm: everything ? "everything" : agent.id, command: everything ? "muster unhold" : `muster unhold ${agent.id}`,
    consequence: async () => {
      const would = await wouldDo<Lifted>("/api/v1/unhold", { path: {}, body });
      return (
        <div className="flex flex-col gap-1">
          <p>{count(would.executions)} queued {would.executions === 1 ? "execution goes" : "executions go"} out while slots allow.</p>
          <ul>{would.queued.slice(0, 12).map((each) => <li key={each.agent}><Plain text={each.agent} />: {count(each.executions)}</li>)}</ul>
          {would.held && <p className="text-wait">The hold over everything stays: nothing goes out before that is lifted.</p>}
        </div>
      );
    },
    run: async (key) => {
      const done = await ask<Lifted>("/api/v1/unhold", { path: {}, body, key });
      refresh(agent.id);
      return `lifted, ${count(done.executions)} may go out`;
    },
  };
}

const capText = (value: number | null): string => (value === null ? "no cap" : `cap ${count(value)}`);

/** Changes how many it may run at once. The old value is in Undo. */
function cap(agent: AgentLine): NamedAct {
  // 0 is no cap at all; null gives it back to the configuration.
  const set = (value: number | null, key: string) => ask<CapShown>("/api/v1/nodes/{agent}/cap", { path: { agent: agent.id }, body: { cap: value }, key, method: "PUT" });
  const was = agent.slots.cap;
  return {
    name: "cap", verb: "Cap", kind: "ask", scope: "operate", object: agent.id, keep: "Not now",
    consequence: async () => (
      <div className="flex flex-col gap-2">
        <p>How many calls <b><Plain text={agent.id} /></b> may run at once. Now {capText(was)}, {count(agent.slots.used)} held. A smaller one ends nothing: it holds back what starts next.</p>
        <Draft drafts={caps} id={agent.id} label="Cap; empty for none" initial={was === null ? "" : String(was)} numeric />
      </div>
    ),
    run: async (key) => {
      const typed = (caps.get(agent.id) ?? (was === null ? "" : String(was))).trim();
      const value = typed === "" ? null : Number(typed);
      if (value !== null && !(Number.isInteger(value) && value >= 1)) throw new Error("a cap is a whole number of at least 1, or empty for none");
      const done = await set(value ?? 0, key);
      before.set(agent.id, done.was_source === "config" ? null : (done.was ?? 0));
      caps.delete(agent.id);
      refresh(agent.id);
      return `${capText(done.cap)}, was ${capText(done.was)}`;
    },
    undo: async (key) => {
      const done = await set(before.get(agent.id) ?? null, key);
      refresh(agent.id);
      return `${capText(done.cap)} again`;
    },
  };
}

function approveTags(agent: AgentLine, tags: readonly string[]): NamedAct {
  return {
    name: "approve_tags", verb: "Approve tags", kind: "ask", scope: "admin", primary: true, keep: "Not yet",
    command: `muster tags approve ${agent.id}`,
    consequence: async () => (
      <p><b><Plain text={agent.id} /></b> may then be called with the {tags.length === 1 ? "tag" : "tags"} <code><Plain text={tags.join(", ")} /></code>. Everybody who may call can reach it.</p>
    ),
    run: async (key) => {
      await ask("/api/v1/tags/{agent}/approve", { path: { agent: agent.id }, body: { tags }, key });
      refresh(agent.id);
      return "approved";
    },
  };
}

function retire(agent: AgentLine): NamedAct {
  const template = "/api/v1/nodes/{agent}/retire";
  return {
    name: "retire", verb: "Retire", kind: "wide", danger: true, scope: "operate", confirm: agent.id,
    consequence: async () => {
      const would = await wouldDo<AgentRetired>(template, { path: { agent: agent.id } });
      return <p>It leaves the list with {count(would.instances.length)} {would.instances.length === 1 ? "instance" : "instances"}, and its id is free. <Plain text={would.stays} /></p>;
    },
    run: async (key) => {
      await ask<AgentRetired>(template, { path: { agent: agent.id }, key });
      refresh(agent.id);
      return "retired";
    },
  };
}

function Draft({ drafts, id, label, initial = "", numeric }: { drafts: Map<string, string>; id: string; label: string; initial?: string; numeric?: boolean }): ReactNode {
  const [text, setText] = useState(drafts.get(id) ?? initial);
  return (
    <label className="flex flex-col gap-1">
      <span className="text-text-2">{label}</span>
      <input className="field" data-first value={text} inputMode={numeric ? "numeric" : undefined} maxLength={500}
        onChange={(event) => {
          drafts.set(id, event.target.value);
          setText(event.target.value);
        }} />
    </label>
  );
}

