// Signing in, where a key is needed for all. A code in the fragment is taken out of the address
// before anything else happens, and used once.
import { useEffect, useState } from "react";
import { navigate, useQuery as useAddress } from "@/router";
import { CommandLine } from "@/parts/says";
import { useTitle } from "@/shell/crumbs";
import { KeyForm } from "./form";
import { codeOf, nextOf } from "./return";
import { saidOfRefusal, signIn, useSession } from "./session";

/** Takes the code out of the address. */
function takeCode(): string | undefined {
  const code = codeOf(window.location.hash);
  if (code !== undefined) window.history.replaceState(null, "", window.location.pathname + window.location.search);
  return code;
}

// Taken when the page is loaded, not when it is drawn: a drawing may be thrown away.
let waiting = takeCode();

export default function Login() {
  useTitle("Sign in");
  const [wanted] = useAddress("next");
  const to = nextOf(wanted);
  const session = useSession();
  const [code, setCode] = useState(waiting);
  const [says, setSays] = useState<string>();
  useEffect(() => {
    const changed = () => setCode((before) => (waiting = takeCode()) ?? before);
    window.addEventListener("hashchange", changed);
    return () => window.removeEventListener("hashchange", changed);
  }, []);
  useEffect(() => {
    // Each is tried once, however often this is drawn.
    if (!code || waiting !== code) return;
    waiting = undefined;
    signIn({ code }).then(
      () => navigate(to, { replace: true }),
      (error: unknown) => {
        setSays(`${saidOfRefusal(error)} A code is good once, for ten minutes.`);
        setCode(undefined);
      },
    );
  }, [code, to]);
  if (code) return <p className="mt-[8vh] text-center text-text-2" role="status">Signing in with the code of the link…</p>;
  return (
    <div className="mx-auto mt-[8vh] flex w-full max-w-[400px] flex-col gap-4">
      <header className="flex items-baseline gap-2">
        <h1 className="text-xl">Sign in</h1><span className="text-text-2">to Muster at <b className="font-semibold">{window.location.host}</b></span>
      </header>
      <div className="flex flex-col gap-4 rounded-md border border-border bg-surface p-4">
        {says && <p role="alert" className="border-l-2 border-fail bg-tint-fail p-3">{says}</p>}
        {session?.signed_in && (
          <p className="text-text-2">
            Signed in as <b className="text-text">{session.principal}</b> with {session.scopes.join(", ")}. Another key takes its place.
          </p>
        )}
        <KeyForm signedIn={() => navigate(to, { replace: true })} />
        <div className="flex flex-col items-start gap-2 text-text-2">
          <p>A code that is good once, made where a key is already:</p>
          <CommandLine command="muster keys code" />
          <p>A key that only reads:</p>
          <CommandLine command="muster keys create --scope read" />
        </div>
      </div>
    </div>
  );
}
