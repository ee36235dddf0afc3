// The scopes that a person can give a key, and what each allows, in the words of the docs.

export const SCOPES: { scope: string; allows: string; id?: string }[] = [
  { scope: "read", allows: "see everything, change nothing" },
  { scope: "call", allows: "call functions, see and cancel its own calls" },
  { scope: "operate", allows: "pause, hold, approve, spawn, attach, drain" },
  { scope: "agent", allows: "register as an agent, beat, report", id: "agent" },
  { scope: "relay", allows: "let an Agent Relay broker enrol its nodes, nothing under /api" },
  { scope: "admin", allows: "everything, keys and settings too" },
];

/** The body for a new key, or what is missing. */
export function newKeyOf(typed: { name: string; scopes: ReadonlySet<string>; agent: string; days: string }):
  | { body: { name: string; scopes: string[]; expires_in_seconds?: number } }
  | { missing: string } {
  const name = typed.name.trim();
  if (name === "") return { missing: "a name" };
  const scopes = SCOPES.filter(({ scope }) => typed.scopes.has(scope)).map(({ scope, id }) => {
    const of = id ? typed.agent.trim() : "";
    return of === "" ? scope : `${scope}:${of}`;
  });
  if (scopes.length === 0) return { missing: "at least one scope" };
  const days = typed.days.trim();
  if (days !== "" && !/^\d+$/.test(days)) return { missing: "whole days, or nothing" };
  if (days !== "" && Number(days) === 0) return { missing: "at least one day, or nothing" };
  return { body: { name, scopes, ...(days !== "" && { expires_in_seconds: Number(days) * 86_400 }) } };
}
