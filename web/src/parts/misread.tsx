// What an address says and the page does not know: told, with what is shown instead, and a way to
// take it out. Nothing of a pasted link is dropped without a word.
import { setQuery } from "@/router";
import { Plain } from "./plain";

/** `there is no by=“zzz”; shown by day [Clear]`. `of` is the key in the address. */
export function Misread({ of, value, shown }: { of: string; value: string; shown: string }) {
  return (
    <span role="status" className="text-xs text-wait" data-misread={of}>
      There is no {of}=“<Plain text={value} />” here: {shown} is shown.{" "}
      <button type="button" className="target text-accent underline" onClick={() => setQuery({ [of]: null })}>Clear</button>
    </span>
  );
}
