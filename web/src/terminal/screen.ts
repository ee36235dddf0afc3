// The screen: xterm, its size and type, what is found in it. Loaded only when a terminal is
// opened. Interprets what a worker wrote; the plane took out what could steer this page.
import "@xterm/xterm/css/xterm.css";
import "./terminal.css";
import { FitAddon } from "@xterm/addon-fit";
import { Terminal } from "@xterm/xterm";
import { PALETTE } from "./palette";
import type { Screen } from "./session";
import { openStrict } from "./strict";

/** What may wait to be drawn; more is dropped and counted. */
const WAITING_MAX = 8 * 1024 * 1024;
const FONT = { least: 5, most: 32, usual: 13 };

export type ScreenEvents = {
  typed(bytes: Uint8Array): void;
  /** A key before the worker gets it; true when it was taken. */
  key(event: KeyboardEvent): boolean;
  lost(bytes: number): void;
};

export function makeScreen(box: HTMLElement, events: ScreenEvents, wanted: { font: number; reader: boolean }) {
  const term = new Terminal({
    allowProposedApi: true,
    theme: PALETTE,
    minimumContrastRatio: 4.5,
    fontFamily: 'ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace',
    fontSize: wanted.font,
    scrollback: 10_000,
    screenReaderMode: wanted.reader,
    cursorBlink: false,
    convertEol: false,
    // Links and titles of a worker lead nowhere from here.
    linkHandler: null,
  });
  const fit = new FitAddon();
  term.loadAddon(fit);
  openStrict(term, box);
  let waiting = 0;
  let font = wanted.font;
  let size = { rows: 24, cols: 80 };
  let following = true;

  const write = (data: string | Uint8Array) => {
    if (waiting > WAITING_MAX) {
      events.lost(data.length);
      return;
    }
    waiting += data.length;
    term.write(data, () => {
      waiting -= data.length;
    });
  };
  const encoder = new TextEncoder();
  term.onData((text) => events.typed(encoder.encode(text)));
  term.onBinary((text) => events.typed(Uint8Array.from(text, (char) => char.charCodeAt(0) & 255)));
  term.attachCustomKeyEventHandler((event) => event.type !== "keydown" || !events.key(event));

  /** Watching: the driver's size, in a type that fits the width. Driving: our size, our type. */
  const lay = (): { rows: number; cols: number } | undefined => {
    if (!following) {
      if (term.options.fontSize !== font) term.options.fontSize = font;
      const own = fit.proposeDimensions();
      if (!own || !Number.isFinite(own.cols) || !Number.isFinite(own.rows)) return undefined;
      const next = { rows: Math.max(2, own.rows), cols: Math.max(2, own.cols) };
      term.resize(next.cols, next.rows);
      return next;
    }
    term.resize(size.cols, size.rows);
    const core = term.element?.querySelector<HTMLElement>(".xterm-screen");
    const have = box.clientWidth - 20;
    const now = term.options.fontSize ?? font;
    const need = core?.offsetWidth ?? 0;
    if (need <= 0 || have <= 0) return undefined;
    const fits = Math.max(FONT.least, Math.min(font, Math.floor((now * have * 10) / need) / 10));
    if (Math.abs(fits - now) >= 0.1) term.options.fontSize = fits;
    return undefined;
  };

  const screen: Screen = {
    paint(bytes, next, after) {
      size = next;
      if (following) lay();
      // Out of whatever mode the former session left: normal screen, soft reset.
      write("\x1b[?1049l\x1b[!p\x1b[0m");
      if (after === "loss") write("\r\n".repeat(next.rows));
      write("\x1b[H\x1b[2J");
      write(bytes);
    },
    output: write,
    note(line) {
      // Ours is dim and in its own line; what others wrote in it is text.
      write(`\x1b[0m\r\n\x1b[2m── ${line.replaceAll(/[\u0000-\u001f\u007f-\u009f]/g, " ")} ──\x1b[0m\r\n`);
    },
  };
  return {
    screen,
    term,
    /** Whether the size is the driver's (watching) or this window's (driving). Answers with ours. */
    follow(on: boolean) {
      following = on;
      box.toggleAttribute("data-drives", !on);
      term.options.disableStdin = on;
      term.options.cursorStyle = on ? "underline" : "block";
      return lay();
    },
    lay,
    setSize(next: { rows: number; cols: number }) {
      size = next;
    },
    larger(by: number) {
      font = Math.min(FONT.most, Math.max(FONT.least, font + by));
      lay();
      return font;
    },
    readerMode(on: boolean) {
      term.options.screenReaderMode = on;
    },
    /** What finds texts: loaded when somebody looks for one. */
    async finder() {
      const { SearchAddon } = await import("@xterm/addon-search");
      const search = new SearchAddon();
      term.loadAddon(search);
      return search;
    },
    /** Moves through what has scrolled away. */
    scroll: (pages: number) => term.scrollPages(pages),
    focus: () => term.focus(),
    leave: () => term.blur(),
    dispose: () => term.dispose(),
  };
}

export type TerminalScreen = ReturnType<typeof makeScreen>;
