// Puts a text on the clipboard, for keys; a button that says "copied" uses `useCopy`.

export function copyText(text: string): void {
  void navigator.clipboard?.writeText(text).catch(() => undefined);
}
