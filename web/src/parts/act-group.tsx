// Acts that stand together, and what a key lacks for them: said once behind the group, with the way
// to sign in. Knows nothing of what an act does.
import { type ReactNode, createContext, useMemo, useState } from "react";
import { Link, currentPath } from "@/router";

/** The sign-in page, and back. */
export const toLogin = () => `/login?next=${encodeURIComponent(currentPath() + location.search)}`;

/** Which scope is missing, and where to get it. */
export function Needs({ scope, missing }: { scope: string | undefined; missing: string }) {
  return <Link className="ml-2 text-xs whitespace-nowrap text-accent hover:underline" to={toLogin()} title={missing}>needs {scope}</Link>;
}

/** Where the acts of a group say which scopes they miss. */
export const Group = createContext<{ lack(scope: string, missing: string): () => void } | null>(null);

/** Acts that stand together: what they lack is said once, behind them; each button says it on hover and to screen readers. */
export function ActGroup({ children }: { children: ReactNode }) {
  const [lacks, setLacks] = useState<readonly { scope: string; missing: string }[]>([]);
  const group = useMemo(() => ({
    lack(scope: string, missing: string) {
      const mine = { scope, missing };
      setLacks((before) => [...before, mine]);
      return () => setLacks((before) => before.filter((each) => each !== mine));
    },
  }), []);
  const once = lacks.filter((each, at) => lacks.findIndex((other) => other.scope === each.scope) === at);
  return (
    <Group.Provider value={group}>
      {children}
      {once.map(({ scope, missing }) => <Needs key={scope} scope={scope} missing={missing} />)}
    </Group.Provider>
  );
}
