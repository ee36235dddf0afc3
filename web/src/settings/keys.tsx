// Keys: what each may do, when it was used last, and what would end with it. A key's text is in
// the answer that made it and nowhere else.
import type { components } from "muster-openapi";
import { useState } from "react";
import { act } from "@/api/client";
import { queries, useGet } from "@/api/queries";
import { shortId } from "@/look/format";
import { signOut, useSession } from "@/login/session";
import { useQuery } from "@/router";
import { ActButton, useBarred } from "@/parts/act";
import { Plain } from "@/parts/plain";
import { CommandLine, ErrorPanel, Skeleton } from "@/parts/says";
import { Narrow } from "@/parts/narrow";
import { StateMark } from "@/parts/state-mark";
import { Age, Unknown } from "@/parts/values";
import { NewKey } from "./new-key";
import { Secret } from "./secret";

type KeyShown = components["schemas"]["KeyShown"];

const refresh = () => void queries.invalidateQueries({ predicate: ({ queryKey }) => /\/(keys|session)$/.test(String(queryKey[0])) });

/** What it would end, in the plane's sentence. */
async function would(route: "/api/v1/keys/{id}/revoke" | "/api/v1/keys/{id}/rotate", id: string): Promise<string> {
  const answer = await act("post", route, { path: { id }, query: { dry_run: true }, body: {} });
  return "dry_run" in answer ? answer.text : "the plane did not say what it would end";
}

export default function Keys() {
  const [all, setAll] = useQuery("all");
  const keys = useGet("/api/v1/keys", { query: { all: all !== "" } });
  const [making, setMaking] = useState(false);
  const [made, setMade] = useState<{ text: string; what: string }>();
  const barred = useBarred({ scope: "admin" });
  if (keys.error && !keys.data) return <ErrorPanel error={keys.error} what="keys" retry={() => void keys.refetch()} />;
  if (!keys.data) return <Skeleton what="keys" />;
  const list = keys.data.keys;
  const alone = all === "" && list.length === 1;
  return (
    <div className="flex flex-col gap-4">
      <SignedIn />
      {made && <Secret text={made.text} what={made.what} done={() => setMade(undefined)} />}
      {!made && (making
        ? <NewKey made={(text, name) => { setMaking(false); setMade({ text, what: `The key ${name}` }); refresh(); }} close={() => setMaking(false)} />
        : (
          <div className="flex flex-wrap items-center gap-3">
            <button type="button" className="button" data-primary disabled={barred !== undefined} title={barred} onClick={() => setMaking(true)}>New key</button>
            {barred && <span className="text-wait">{barred}</span>}
            <label className="flex min-h-6 items-center gap-2 text-text-2"><input type="checkbox" checked={all !== ""} onChange={(event) => setAll(event.target.checked ? "1" : null)} /> those of workers too</label>
          </div>
        ))}
      {alone && (
        <p className="flex flex-wrap items-center gap-2 text-text-2">There is only the owner’s key. One that only reads: <CommandLine command="muster keys create --scope read" /></p>
      )}
      <div className="overflow-x-auto" tabIndex={0} role="region" aria-label="Keys">
      <table className="w-full border-collapse">
        <caption className="visually-hidden">Keys</caption>
        <thead className="hidden text-left text-xs text-text-3 sm:table-header-group">
          <tr><th className="py-1 pr-3">KEY</th><th className="pr-3">SCOPES</th><th className="pr-3">USED</th><th className="pr-3">BY</th><th className="pr-3">MADE</th><th><span className="visually-hidden">acts</span></th></tr>
        </thead>
        <tbody>{list.map((key) => <Row key={key.id} shown={key} made={setMade} />)}</tbody>
      </table>
      </div>
    </div>
  );
}

function Row({ shown: key, made }: { shown: KeyShown; made(secret: { text: string; what: string }): void }) {
  const active = key.state === "active";
  // Ids inside a name or a scope are short, as everywhere; the whole is on hover.
  const brief = (text: string) => text.replace(/[a-z]+_[0-9A-HJKMNP-TV-Z]{26}/g, shortId);
  const barred = !active ? `it is ${key.state}` : key.is_configured ? "it is in the configuration, and can be changed only there" : undefined;
  return (
    <tr className={`flex flex-wrap items-center gap-x-3 gap-y-1 border-t border-border py-2 sm:table-row ${active ? "" : "text-text-3"}`}>
      <th scope="row" className="sm:h-9 sm:py-1 sm:pr-3">
        <code>{key.prefix}</code> <span className="font-normal text-text-2" title={key.name}><Plain text={brief(key.name)} /></span>
        {key.is_own && <span className="font-normal text-text-2"> · this one</span>}
        {!active && <> <StateMark state={key.state} /></>}
      </th>
      <td className="sm:pr-3 sm:whitespace-nowrap" title={key.scopes.join(" ")}>{brief(key.scopes.join(" "))}</td>
      <td className="whitespace-nowrap sm:pr-3">{key.last_used_at ? <><Narrow>used</Narrow><Age at={key.last_used_at} /></> : <span className="text-text-3">never<span className="sm:hidden"> used</span></span>}</td>
      <td className="sm:pr-3">{key.last_used_by ? <Plain text={key.last_used_by} /> : key.principal}{key.sessions > 0 && <span className="text-text-2"> · {key.sessions} signed in</span>}{key.open_links > 0 && <span className="text-text-2"> · {key.open_links} open</span>}</td>
      <td className="whitespace-nowrap sm:pr-3"><Narrow>made</Narrow><Age at={key.created_at} />{key.expires_at && <span className="text-text-2">, ends <Age at={key.expires_at} /></span>}</td>
      <td className="sm:text-right">
        <span className="inline-flex gap-2 max-sm:flex-wrap">
          <ActButton compact act={{
            verb: "Rotate", kind: "ask", scope: "admin", object: key.prefix, disabled: barred, command: `muster keys rotate ${key.id}`,
            consequence: () => would("/api/v1/keys/{id}/rotate", key.id),
            run: async (idempotency) => {
              const answer = await act("post", "/api/v1/keys/{id}/rotate", { path: { id: key.id }, body: {}, key: idempotency });
              if ("dry_run" in answer) return "nothing was changed";
              made({ text: answer.key, what: `The key that takes the place of ${key.prefix}` });
              refresh();
              return "rotated: the new one is shown above";
            },
          }} />
          <ActButton compact act={{
            verb: "Revoke", kind: "wide", danger: true, scope: "admin", confirm: key.prefix, object: key.prefix, disabled: barred, command: `muster keys revoke ${key.id}`,
            consequence: () => would("/api/v1/keys/{id}/revoke", key.id),
            run: async (idempotency) => {
              await act("post", "/api/v1/keys/{id}/revoke", { path: { id: key.id }, key: idempotency });
              refresh();
              return "revoked";
            },
          }} />
        </span>
      </td>
    </tr>
  );
}

/** Who this browser is, and the way out. */
function SignedIn() {
  const session = useSession();
  const offline = useBarred({});
  if (!session) return <p className="text-text-2">Who you are to the plane: <Unknown reason="it did not say" /></p>;
  if (!session.signed_in) return null;
  return (
    <p className="flex flex-wrap items-center gap-3">
      <span>You are <b>{session.principal}</b>, with {session.scopes.join(", ")}.</span>
      <button type="button" className="button button-compact" disabled={offline !== undefined} title={offline} onClick={() => void signOut()}>Sign out</button>
      {offline && <span className="text-wait">{offline}</span>}
    </p>
  );
}
