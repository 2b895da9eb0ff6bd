import { expect, test } from "vitest";
import { forTerminal } from "../../src/commands/terminal.ts";

test("the live page escapes the same characters as tail", async () => {
  // The page's scripts are not TypeScript, so they are imported by URL.
  const script = new URL("../../src/live/page/text.js", import.meta.url).href;
  const { forPage } = (await import(script)) as { forPage: (text: string) => string };
  const units = Array.from({ length: 0x1_0000 }, (_, unit) => String.fromCharCode(unit));
  expect(units.filter((unit) => forPage(unit) !== forTerminal(unit))).toEqual([]);
  for (const control of ["\u202a", "\u202e", "\u2066", "\u2069"]) {
    const hex = control.charCodeAt(0).toString(16);
    expect(forPage(`"${control}",\n`)).toBe(`"\\u${hex}",\n`);
  }
});
