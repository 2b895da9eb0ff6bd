import { expect, test } from "vitest";

// The page's scripts are not TypeScript, so they are imported by URL.
const script = new URL("../../src/live/page/state.js", import.meta.url).href;
const { lostText } = (await import(script)) as {
  lostText: (snapshot: { refused: number; dropped: number; filtered: number }) => string;
};

test.each([
  [{ refused: 1, dropped: 2, filtered: 0 }, "1 request rejected, 2 events dropped"],
  [
    { refused: 0, dropped: 1, filtered: 3 },
    "0 requests rejected, 1 event dropped, 3 filtered by rules",
  ],
])("the live page names the causes of what was not stored: %j", (snapshot, text) => {
  expect(lostText(snapshot)).toBe(text);
});
