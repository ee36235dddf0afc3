// Values of the configuration as text, and which of them are asked for.

export function shownOf(value: unknown): string {
  if (value === null || value === undefined) return "not set";
  if (typeof value === "string") return value === "" ? '""' : value;
  if (Array.isArray(value) && value.length === 0) return "none";
  return JSON.stringify(value);
}

export function matching<T extends { key: string; value: unknown; source: string }>(values: readonly T[], wanted: string, changed: boolean): T[] {
  const text = wanted.trim().toLowerCase();
  return values.filter((one) => (!changed || one.source !== "default") && (text === "" || one.key.toLowerCase().includes(text) || shownOf(one.value).toLowerCase().includes(text)));
}
