// Asks for a key where it is needed, in place: whatever was refused is asked for again after the
// sign-in, and the reader has not left the page.
import type { ReactNode } from "react";
import { Problem } from "@/api/problem";
import { CommandLine, ErrorPanel } from "@/parts/says";
import { KeyForm } from "./form";
import { useSession } from "./session";

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

/** A failure: one for want of a key asks for it, any other says what it is. */
export function Refused({ error, what, scope, retry }: { error: unknown; what: string; scope?: string; retry?(): void }): ReactNode {
  return Problem.of(error).needsKey
    ? <AskKey what={what} scope={scope} signedIn={retry} />
    : <ErrorPanel error={error} what={what} retry={retry} />;
}
