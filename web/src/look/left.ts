// A sentence that says how much time is left was true when it was said. Takes off what has gone by
// since, in the unit that it was said in; never below none. Pure.

const UNIT: Record<string, number> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };
const SAID = /(\d+(?:\.\d+)?) (ms|s|m|h|d)(?: (\d+) (s|m|h))? left\b/g;

/** Whether a sentence says so at all. */
export const saysLeft = (text: string | null | undefined): boolean => !!text && new RegExp(SAID.source).test(text);

export function leftNow(text: string, saidAt: number, now: number): string {
  return text.replace(SAID, (said, many: string, unit: string, less?: string, small?: string) => {
    const finest = UNIT[small ?? unit] ?? 1000;
    const gone = Math.floor(Math.max(0, now - saidAt) / finest) * finest;
    if (gone === 0) return said;
    const left = Number(many) * (UNIT[unit] ?? 0) + Number(less ?? 0) * (UNIT[small ?? unit] ?? 0) - gone;
    if (left <= 0) return "no time left";
    return `${words(left, small ?? unit)} left`;
  });
}

function words(ms: number, finest: string): string {
  if (finest === "ms") return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${Math.floor(ms / 1000)} s`;
  if (ms < 3_600_000) return `${Math.floor(ms / 60_000)} m${finest === "s" && ms % 60_000 >= 1000 ? ` ${Math.floor((ms % 60_000) / 1000)} s` : ""}`;
  if (ms < 86_400_000) return `${Math.floor(ms / 3_600_000)} h ${Math.floor((ms % 3_600_000) / 60_000)} m`;
  return `${Math.floor(ms / 86_400_000)} d ${Math.floor((ms % 86_400_000) / 3_600_000)} h`;
}
