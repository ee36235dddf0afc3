// The field for a key or a one-use code. Says no more than that it was not taken.
import { type ReactNode, useId, useState } from "react";
import { Problem } from "@/api/problem";
import { type SignedIn, saidOfRefusal, signIn } from "./session";

/** Codes look like `XXXX-XXXX-XXXX`, as `muster keys code` prints them. */
const CODE = /^[0-9A-Za-z]{4}-?[0-9A-Za-z]{4}-?[0-9A-Za-z]{4}$/;

/** What looks like a code is tried as one, and then as a key: a key may look like anything. */
async function tried(given: string): Promise<SignedIn> {
  if (!CODE.test(given)) return signIn({ key: given });
  try {
    return await signIn({ code: given });
  } catch (error) {
    if (Problem.of(error).status !== 401) throw error;
    return await signIn({ key: given });
  }
}

export function KeyForm({ signedIn, verb = "Sign in", children }: { signedIn(session: SignedIn): void; verb?: string; children?: ReactNode }) {
  const id = useId();
  const [text, setText] = useState("");
  const [state, setState] = useState<{ sending?: boolean; says?: string }>({});
  const submit = async () => {
    const given = text.trim();
    if (given === "" || state.sending) return;
    setState({ sending: true });
    try {
      const session = await tried(given);
      setText("");
      setState({});
      signedIn(session);
    } catch (error) {
      setState({ says: saidOfRefusal(error) });
    }
  };
  return (
    <form
      className="flex flex-col gap-2"
      onSubmit={(event) => {
        event.preventDefault();
        void submit();
      }}
    >
      <label htmlFor={id} className="text-text-2">Key, or one-use code</label>
      <div className="flex flex-wrap gap-2">
        <input
          id={id} className="field min-w-0 flex-1 font-mono" type="password" autoComplete="off" spellCheck={false}
          autoFocus value={text} onChange={(event) => setText(event.target.value)}
          aria-invalid={state.says !== undefined} aria-describedby={`${id}-says`}
        />
        <button type="submit" className="button" data-primary disabled={text.trim() === "" || state.sending}>
          {state.sending ? "asking…" : verb}
        </button>
      </div>
      <p id={`${id}-says`} role="status" className="min-h-[18px] text-fail">{state.says}</p>
      {children}
    </form>
  );
}
