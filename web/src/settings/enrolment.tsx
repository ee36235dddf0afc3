// Adding a machine: a token that is good once, for one name, for fifteen minutes, with the command
// to run there. And the tokens that wait to be used.
import { useId, useState } from "react";
import { act } from "@/api/client";
import { Problem } from "@/api/problem";
import { queries, useGet } from "@/api/queries";
import { planeNow, useSecond } from "@/live/clock";
import { Link, path } from "@/router";
import { ActButton } from "@/parts/act";
import { CommandLine, ErrorPanel, Skeleton } from "@/parts/says";
import { Age, msOf } from "@/parts/values";
import { clockOf } from "./countdown";
import { Secret } from "./secret";

type Made = { token: string; name: string; node_id: string; expires_at: string; plane: string; again: boolean };
const ROUTE = "/api/v1/fleet/enrollments";
const refresh = () => void queries.invalidateQueries({ predicate: ({ queryKey }) => queryKey[0] === ROUTE });

export default function Enrolment() {
  const open = useGet(ROUTE, {}, { refetchInterval: 10_000 });
  const [made, setMade] = useState<Made>();
  if (open.error && !open.data) return <ErrorPanel error={open.error} what="tokens" retry={() => void open.refetch()} />;
  if (!open.data) return <Skeleton what="tokens" />;
  return (
    <div className="flex flex-col gap-4">
      {made ? (
        <Secret text={made.token} what={`The token for ${made.name}`} done={() => setMade(undefined)} command={{ shown: commandWith(made, "TOKEN"), whole: commandWith(made, made.token) }} more={
          <div className="flex flex-col items-start gap-2">
            <p>{made.again && <>A node named {made.name} is known: it is enrolled again, and its former key ends then. </>}Run this on that machine, <Countdown until={made.expires_at} />; then it is on <Link to={path("fleet", "nodes", made.name)} className="underline underline-offset-2">its page</Link>.</p>
          </div>
        } />
      ) : <NewToken made={(token) => { setMade(token); refresh(); }} />}
      <section aria-labelledby="tokens">
        <h2 id="tokens" className="mb-1">Tokens that wait to be used</h2>
        {open.data.enrollments.length === 0 && <p className="text-text-2">None.</p>}
        <ul>
          {open.data.enrollments.map((token) => (
            <li key={token.id} className="flex flex-wrap items-center gap-x-4 gap-y-1 border-t border-border py-1">
              <b className="font-semibold">{token.name}</b> <code>{token.prefix}</code>
              <span className="text-text-2">{token.labels?.join(" ")}</span>
              <span className="text-text-2">by {token.principal} <Age at={token.created_at} /></span>
              <Countdown until={token.expires_at} />
              <span className="ml-auto"><ActButton compact act={{
                verb: "Revoke", kind: "ask", scope: "admin", object: token.prefix,
                consequence: () => Promise.resolve(`No machine can be enrolled as ${token.name} with it any more.`),
                run: async (key) => {
                  await act("post", "/api/v1/fleet/enrollments/{id}/revoke", { path: { id: token.id }, key });
                  refresh();
                  return "revoked";
                },
              }} /></span>
            </li>
          ))}
        </ul>
      </section>
    </div>
  );
}

const commandWith = (made: Made, token: string) => `muster node enroll --plane ${made.plane} --token ${token} && muster node run`;

/** How long a token is still good, in minutes and seconds. */
function Countdown({ until }: { until: string }) {
  useSecond();
  const left = (msOf(until) ?? 0) - planeNow();
  return left > 0 ? <span className={left < 120_000 ? "text-wait" : undefined}>good for {clockOf(left)}</span> : <span className="text-fail">no longer good: make another</span>;
}

function NewToken({ made }: { made(token: Made): void }) {
  const id = useId();
  const [name, setName] = useState("");
  const [labels, setLabels] = useState("");
  const [most, setMost] = useState("");
  const [state, setState] = useState<{ sending?: boolean; problem?: Problem }>({});
  const submit = async () => {
    if (name.trim() === "" || state.sending) return;
    setState({ sending: true });
    const max = Number.parseInt(most, 10);
    try {
      const answer = await act("post", ROUTE, {
        body: { name: name.trim(), labels: labels.split(/[\s,]+/).filter(Boolean), ...(Number.isFinite(max) && { max_workers: max }) },
      });
      made(answer as Made);
    } catch (error) {
      setState({ problem: Problem.of(error) });
    }
  };
  return (
    <form className="flex max-w-2xl flex-col gap-3 rounded-md border border-line bg-surface p-4" onSubmit={(event) => { event.preventDefault(); void submit(); }}>
      <h2>Enrol a machine</h2>
      <div className="grid gap-3 sm:grid-cols-3">
        <label htmlFor={`${id}n`} className="flex flex-col gap-1"><span className="text-text-2">Name</span>
          <input id={`${id}n`} className="field" value={name} spellCheck={false} placeholder="edge-1" onChange={(event) => setName(event.target.value)} /></label>
        <label htmlFor={`${id}l`} className="flex flex-col gap-1"><span className="text-text-2">Labels <span className="text-text-3">· empty: its own</span></span>
          <input id={`${id}l`} className="field" value={labels} spellCheck={false} placeholder="gpu zone=eu" onChange={(event) => setLabels(event.target.value)} /></label>
        <label htmlFor={`${id}m`} className="flex flex-col gap-1"><span className="text-text-2">Workers <span className="text-text-3">· 0: no bound</span></span>
          <input id={`${id}m`} className="field" value={most} inputMode="numeric" placeholder="what it says" onChange={(event) => setMost(event.target.value)} /></label>
      </div>
      {state.problem && <ErrorPanel error={state.problem} what="the token" />}
      <div className="flex flex-wrap items-center gap-3">
        <button type="submit" className="button" data-primary disabled={name.trim() === "" || state.sending}>{state.sending ? "making…" : "Make a token"}</button>
        <CommandLine command={`muster nodes enroll ${name.trim() || "NAME"}`} />
      </div>
    </form>
  );
}
