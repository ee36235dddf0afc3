// How this reader sees the dashboard. Kept in this browser alone.
import { type Display, setDisplay, useDisplay } from "@/look/display";
import { planeNow, useSecond } from "@/live/clock";
import { time } from "@/look/format";

type Choice<K extends keyof Display> = { value: Display[K]; says: string };

export default function DisplaySettings() {
  const display = useDisplay();
  useSecond();
  const now = planeNow();
  return (
    <div className="flex max-w-2xl flex-col gap-5">
      <Choose name="Theme" of="theme" value={display.theme} choices={[{ value: "system", says: "as the system" }, { value: "light", says: "light" }, { value: "dark", says: "dark" }]} />
      <Choose name="Rows" of="density" value={display.density} choices={[{ value: "comfortable", says: "comfortable" }, { value: "compact", says: "compact" }]} />
      <Choose name="Times" of="clock" value={display.clock} choices={[{ value: "local", says: `here: ${time(now, "local", now)}` }, { value: "utc", says: time(now, "utc", now) }]} />
      <Choose name="Single letters as keys" of="keys" value={display.keys} choices={[{ value: true, says: "on: j, k, w, g r …" }, { value: false, says: "off" }]} />
      <Choose name="Motion" of="motion" value={display.motion} choices={[{ value: "system", says: "as the system" }, { value: "none", says: "none" }]} />
    </div>
  );
}

function Choose<K extends keyof Display>({ name, of, value, choices }: { name: string; of: K; value: Display[K]; choices: Choice<K>[] }) {
  return (
    <fieldset className="flex flex-wrap items-center gap-x-5 gap-y-1 border-b border-border pb-3">
      <legend className="float-left w-44 text-text-2">{name}</legend>
      {choices.map((choice) => (
        <label key={String(choice.value)} className="flex min-h-6 items-center gap-2">
          <input type="radio" name={of} checked={value === choice.value} onChange={() => setDisplay({ [of]: choice.value } as Partial<Display>)} />
          {choice.says}
        </label>
      ))}
    </fieldset>
  );
}
