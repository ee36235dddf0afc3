// The colours of the terminal: dark in both themes, each at least 4.5 : 1 on its ground.
import type { ITheme } from "@xterm/xterm";

export const GROUND = "#0b0e13";

export const PALETTE: ITheme = {
  background: GROUND, foreground: "#e6e9ed", cursor: "#e6e9ed", cursorAccent: GROUND,
  selectionBackground: "#3b4a78", selectionInactiveBackground: "#2a3350",
  black: "#1b212a", red: "#ff7b72", green: "#4fc98f", yellow: "#e3b341",
  blue: "#79b8ff", magenta: "#d2a8ff", cyan: "#56d4dd", white: "#d5dae1",
  brightBlack: "#8b96a3", brightRed: "#ffa198", brightGreen: "#7ee2b0", brightYellow: "#f2cc60",
  brightBlue: "#a5d6ff", brightMagenta: "#e2c5ff", brightCyan: "#8be9ee", brightWhite: "#ffffff",
  scrollbarSliderBackground: "#6e798766", scrollbarSliderHoverBackground: "#6e7987aa", scrollbarSliderActiveBackground: "#6e7987dd",
};
