// `?`: every key that can be pressed now, innermost first, as the page registered them.
import { Dialog } from "@/parts/layer";
import { keyText } from "@/parts/key-hint";
import { setDisplay, useDisplay } from "@/look/display";
import { type Key, keysNow } from "./keys";

/** Keys by what they do where: each key once, the one that would act. */
export function listed(keys: readonly Key[]): Key[] {
  const seen = new Set<string>();
  return keys.filter((key) => key.does !== "" && !seen.has(key.key) && seen.add(key.key));
}

export default function KeysOverlay({ close }: { close(): void }) {
  const { keys } = useDisplay();
  return (
    <Dialog close={close} label="Keys" className="!w-[min(720px,calc(100vw-32px))]">
      <div className="mb-3 flex items-center gap-3">
        <h2 className="flex-1 text-lg">Keys</h2>
        <label className="flex items-center gap-2"><input type="checkbox" checked={keys} onChange={(event) => setDisplay({ keys: event.target.checked })} />single letters act</label>
        <button type="button" className="button" data-first onClick={close}>Close</button>
      </div>
      <dl className="columns-1 gap-8 sm:columns-2">
        {listed(keysNow()).map((key) => (
          <div key={key.key} className="flex min-h-7 break-inside-avoid items-center gap-3">
            <dt className="w-20 shrink-0"><kbd className="rounded-sm border border-border bg-sunken px-1.5 py-0.5">{keyText(key.key)}</kbd></dt>
            <dd className="m-0 text-text-2">{key.does}</dd>
          </div>
        ))}
      </dl>
    </Dialog>
  );
}
