// The form for a new key: a name, what it may do, until when.
import { useId, useState } from "react";
import { act } from "@/api/client";
import { Problem } from "@/api/problem";
import { useBarred } from "@/parts/act";
import { ErrorPanel } from "@/parts/says";
import { SCOPES, newKeyOf } from "./scopes";

export function NewKey({ made, close }: { made(text: string, name: string): void; close(): void }) {
  const id = useId();
  const [name, setName] = useState("");
  const [scopes, setScopes] = useState<ReadonlySet<string>>(new Set());
  const [agent, setAgent] = useState("");
  const [days, setDays] = useState("");
  const [state, setState] = useState<{ sending?: boolean; problem?: Problem }>({});
  const wanted = newKeyOf({ name, scopes, agent, days });
  const barred = useBarred({ scope: "admin" });
  const submit = async () => {
    if (!("body" in wanted) || state.sending || barred !== undefined) return;
    setState({ sending: true });
    try {
      const answer = await act("post", "/api/v1/keys", { body: wanted.body });
      made((answer as { key: string }).key, wanted.body.name);
    } catch (error) {
      setState({ problem: Problem.of(error) });
    }
  };
  const toggle = (scope: string) => {
    const next = new Set(scopes);
    if (!next.delete(scope)) next.add(scope);
    setScopes(next);
  };
  return (
    <form className="flex max-w-2xl flex-col gap-3 rounded-md border border-line bg-surface p-4" onSubmit={(event) => { event.preventDefault(); void submit(); }}>
      <h2>New key</h2>
      <label htmlFor={`${id}n`} className="flex flex-col gap-1"><span className="text-text-2">Name</span>
        <input id={`${id}n`} className="field" autoFocus value={name} onChange={(event) => setName(event.target.value)} placeholder="for whom, or for what" />
      </label>
      <fieldset className="flex flex-col gap-1">
        <legend className="text-text-2">May</legend>
        {SCOPES.map(({ scope, allows }) => (
          <label key={scope} className="flex min-h-6 items-center gap-2">
            <input type="checkbox" checked={scopes.has(scope)} onChange={() => toggle(scope)} />
            <code className="w-20">{scope}</code> <span className="text-text-2">{allows}</span>
          </label>
        ))}
      </fieldset>
      {scopes.has("agent") && (
        <label htmlFor={`${id}a`} className="flex flex-col gap-1"><span className="text-text-2">Only as this agent <span className="text-text-3">· empty: any</span></span>
          <input id={`${id}a`} className="field" value={agent} spellCheck={false} onChange={(event) => setAgent(event.target.value)} />
        </label>
      )}
      <label htmlFor={`${id}d`} className="flex flex-col gap-1"><span className="text-text-2">Ends after days <span className="text-text-3">· empty: when it is revoked</span></span>
        <input id={`${id}d`} className="field w-32" inputMode="numeric" value={days} onChange={(event) => setDays(event.target.value)} />
      </label>
      {state.problem && <ErrorPanel error={state.problem} what="the key" />}
      <div className="flex flex-wrap items-center gap-3">
        <button type="button" className="button" onClick={close}>Keep as it is</button>
        <button type="submit" className="button" data-primary disabled={!("body" in wanted) || state.sending || barred !== undefined} title={barred}>{state.sending ? "making…" : "Make the key"}</button>
        {barred && <span className="text-wait">{barred}</span>}
        {!barred && "missing" in wanted && name !== "" && <span className="text-text-2">still needs {wanted.missing}</span>}
      </div>
    </form>
  );
}
