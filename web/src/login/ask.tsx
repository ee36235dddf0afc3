// Asks for a key where it is needed, in place: what needs one is asked for only by who may have it,
// and after the sign-in the reader has not left the page.
import type { ReactNode } from "react";
import { type Session, useMay, useSession } from "@/api/session";
import { CommandLine, Skeleton } from "@/parts/says";
import { KeyForm } from "./form";

/** What is shown only to who may read it; who may not is asked for a key, and the plane for nothing. */
export function ForScope({ scope, what, unless, children }: { scope: string; what: string; unless?(session: Session): boolean; children: ReactNode }) {
  const may = useMay(scope, unless);
  if (may === undefined) return <Skeleton what="what you may" />;
  return may ? children : <AskKey what={what} scope={scope} />;
}

/** A form in place of what was refused. `what` completes "… needs a key". */
export function AskKey({ what, scope, signedIn }: { what: string; scope?: string; signedIn?(): void }) {
  const session = useSession();
  const who = session?.signed_in ? session : undefined;
  return (
    <section aria-label="Sign in" className="flex max-w-xl flex-col gap-3 border-l-2 border-accent bg-surface p-4">
      <p>
        {what} needs a key{scope && <> with the scope <code>{scope}</code></>}
        {who ? <>; you are signed in as <b>{who.principal}</b> with {who.scopes.join(", ")}.</> : ", on this machine too."}
      </p>
      <KeyForm signedIn={() => signedIn?.()}>
        <p className="flex flex-wrap items-center gap-2 text-text-2">
          <span>The owner’s is in <code>owner.key</code> of the data directory. A code for this browser:</span> <CommandLine command="muster keys code" />
        </p>
      </KeyForm>
    </section>
  );
}
