import { expect, test } from "vitest";
import { parseVersionText } from "../../../../src/gateway/projects/rules/rules-loader.ts";
import { parseStoredRules } from "../../../../src/rules/parse.ts";

const list = (count: number, of: (n: number) => string) =>
  Array.from({ length: count }, (_, n) => of(n)).join("\n");

/** Returns a file with each member of a rules file. */
const fileOf = (size: number) => `privacy: { ip: truncate, cut_query: [a], cut_fragment: true }
rules:
${list(
  size,
  (n) => `  - name: r${n}
    mode: observe
    match: { event: [a${n}, "b${n}*"], sdk: web, lane: live, bot: false, properties: { p: [1, x, null], q: { exists: true } } }
    sample: 0.5
    hash: [h${n}]
    cut: { c${n}: 9 }
    set: { s${n}: 1, $set.t: null }`,
)}
schemas:
${list(
  size,
  (n) => `  - event: e${n}
    version: 1
    mode: stamp
    properties: { required: [a], properties: { __proto__: { type: string }, a: { enum: [1, null, x] } } }`,
)}
`;

test("a long file is parsed like a short one, and the event loop continues meanwhile", async () => {
  let turns = 0;
  const timer = setInterval(() => turns++, 1);
  const parsed = await parseVersionText(fileOf(100));
  clearInterval(timer);
  expect(parsed).toHaveProperty("rules");
  expect(parsed).toEqual(parseStoredRules(fileOf(100)));
  expect(JSON.stringify(parsed)).toBe(JSON.stringify(parseStoredRules(fileOf(100))));
  expect(turns).toBeGreaterThan(5);
  expect(await parseVersionText(fileOf(1))).toEqual(parseStoredRules(fileOf(1)));
});

test("the errors of a long file are those of a short one", async () => {
  const text = `${fileOf(100)}rules: []\n`;
  expect(await parseVersionText(text)).toEqual(parseStoredRules(text));
  expect(parseStoredRules(text)).toHaveProperty("errors");
});
