// The field for a key or a one-use code. Says no more than that it was not taken.
import { type ReactNode, useId, useState } from "react";
import { Problem } from "@/api/problem";
import { type Session, saidOfRefusal, signIn } from "./session";

/** Tries it as a key, and then as a code: the plane's refusal says of neither what is wrong. */
async function tryBoth(given: string): Promise<Session> {
  try {
    return await signIn({ key: given });
  } catch (error) {
    if (!Problem.of(error).needsKey) throw error;
    return await signIn({ code: given });
  }
}

export function KeyForm({ signedIn, verb = "Sign in", children }: { signedIn(session: Session): void; verb?: string; children?: ReactNode }) {
  const id = useId();
  const [text, setText] = useState("");
  const [state, setState] = useState<{ sending?: boolean; says?: string }>({});
  const submit = async () => {
    const given = text.trim();
    if (given === "" || state.sending) return;
    setState({ sending: true });
    try {
      const session = await tryBoth(given);
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
