import { expect, test } from "vitest";
import { parseRules } from "../../src/rules/parse.ts";
import { splitPath } from "../../src/rules/rules-file.ts";
import { take } from "../kit/items.ts";
import { compiled } from "./compiled-rules.ts";

test.each([
  ["email", undefined, "email"],
  ["$set", undefined, "$set"],
  ["$set.email", "$set", "email"],
  ["$set_once.email", "$set_once", "email"],
  [String.raw`billing\.email`, undefined, "billing.email"],
  [String.raw`$set.billing\.email`, "$set", "billing.email"],
  [String.raw`$set\.email`, undefined, "$set.email"],
  [String.raw`a\\b`, undefined, String.raw`a\b`],
  [String.raw`a\\\.b`, undefined, String.raw`a\.b`],
])("the path %s", (path, object, name) => {
  expect(splitPath(path)).toEqual({ object, name });
});

test.each(["billing.email", "$groups.company", "$set.a.b", ".", String.raw`a\b`, "a\\"])(
  "%s is not a path",
  (path) => {
    expect(splitPath(path)).toBeUndefined();
    expect(parseRules(`rules: [{ name: r, remove: [${path}] }]`)).toHaveProperty("errors");
  },
);

test("rules for a property whose name has a dot apply to that property, and to no nested one", () => {
  const properties = { "billing.email": "a@b", "$set.plan": "p", billing: { email: "c@d" }, x: 1 };
  const stored = (yaml: string) => {
    const parsed = parseRules(`rules: [{ name: r, ${yaml} }]`);
    if ("errors" in parsed) throw new Error(JSON.stringify(parsed.errors));
    const rules = compiled(parsed.rules.rules);
    const { records, filtered } = take({ event: "e", distinct_id: "u", properties }, { rules });
    return filtered > 0 ? "filtered" : records[0]!["properties"];
  };
  const { "billing.email": _, ...others } = properties;
  expect(stored(String.raw`remove: [billing\.email]`)).toEqual(others);
  expect(stored(String.raw`hash: [billing\.email]`)).toEqual({
    ...others,
    "billing.email": expect.stringMatching(/^[0-9a-f]{64}$/),
  });
  expect(stored(String.raw`set: { billing\.email: none }`)).toEqual({
    ...others,
    "billing.email": "none",
  });
  expect(stored(String.raw`keep_only: [billing\.email]`)).toEqual({ "billing.email": "a@b" });
  const match = (path: string) => `match: { properties: { ${path} } }, drop: true`;
  expect(stored(match(String.raw`billing\.email: a@b`))).toBe("filtered");
  expect(stored(match(String.raw`$set\.plan: p`))).toBe("filtered");
  expect(stored(match("$set.plan: p"))).toEqual(properties);
});
