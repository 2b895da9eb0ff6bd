import { execFileSync } from "node:child_process";
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { parseRules } from "../../src/rules/parse.ts";
import { typesOf } from "../../src/rules/schema-types.ts";
import { temporaryFolder } from "../kit/processes.ts";

const root = fileURLToPath(new URL("../../", import.meta.url));

const rules = `
schemas:
  - event: order completed
    version: 2
    properties:
      type: object
      required: [total, "a \\"b\\""]
      additionalProperties: false
      properties:
        total: { type: number, description: "The sum */ in\\nEUR" }
        plan: { enum: [free, pro, null, 1] }
        items:
          type: array
          items: { type: object, required: [sku], properties: { sku: { type: string } } }
        note: { type: [string, "null"] }
        paid: { const: true }
        any: {}
  - event: viewed
    version: 1
    properties: { properties: { page: { type: string } } }
`;

const use = `
import posthogJs from "posthog-js";
import { PostHog } from "posthog-node";
import type { BrowserClient, NodeClient, PropertiesOf } from "./events";

const browser: BrowserClient<typeof posthogJs> = posthogJs;
const node: NodeClient<PostHog> = new PostHog("key");

browser.capture("order completed", { total: 1, 'a "b"': 0, plan: "pro", $lib: "x" });
browser.capture("viewed");
browser.capture("viewed", { page: "/", more: 1 });
browser.capture("other", { anything: 1 });
const viewed: PropertiesOf<"viewed"> = { page: "/" };
browser.capture("viewed", viewed);
browser.identify("me");
node.capture({ distinctId: "u", event: "order completed", properties: { total: 1, 'a "b"': "", items: [{ sku: "s", n: 1 }] } });
node.capture({ distinctId: "u", event: "viewed" });
node.capture({ distinctId: "u", event: "other", properties: { anything: 1 } });

// @ts-expect-error: total is required
browser.capture("order completed", { 'a "b"': 0 });
// @ts-expect-error: the properties are required
browser.capture("order completed");
// @ts-expect-error: a wrong value
browser.capture("order completed", { total: 1, 'a "b"': 0, plan: "gold" });
// @ts-expect-error: not in the schema
browser.capture("order completed", { total: 1, 'a "b"': 0, other: 1 });
// @ts-expect-error: a wrong type
browser.capture("viewed", { page: 1 });
// @ts-expect-error: a wrong type
node.capture({ distinctId: "u", event: "order completed", properties: { total: "1", 'a "b"': 0 } });
// @ts-expect-error: the properties are required
node.capture({ distinctId: "u", event: "order completed" });
`;

test("the types have escapes for characters that a reader cannot see", () => {
  const name = "we ird\u200bname\u{e0001}";
  const description = "right \u202e left";
  const schema = { properties: { [name]: { description, enum: ["a\u2028b", "ü😀"] } } };
  const text = typesOf([{ event: name, version: 1, mode: "observe", properties: schema }], "x");
  const hidden = /[\u200b\u202e\u2028\u{e0001}]/u;
  expect(hidden.test(text)).toBe(false);
  expect(text).toContain('"we ird\\u{200B}name\\u{E0001}"?: "a\\u{2028}b" | "ü😀";');
  expect(text).toContain('  "we ird\\u{200B}name\\u{E0001}": {');
  expect(text).toContain("/** right \\u{202E} left */");
});

test("the types compile, accept valid events of both SDKs, and reject wrong ones", () => {
  const parsed = parseRules(rules);
  if ("errors" in parsed) throw new Error(JSON.stringify(parsed.errors));
  const folder = temporaryFolder();
  mkdirSync(folder, { recursive: true });
  symlinkSync(path.join(root, "node_modules"), path.join(folder, "node_modules"));
  const types = typesOf(parsed.rules.schemas, "Written by a test.");
  writeFileSync(path.join(folder, "events.ts"), types);
  writeFileSync(path.join(folder, "use.ts"), use);
  const compiler = path.join(root, "node_modules/typescript/bin/tsc");
  const options = ["--noEmit", "--strict", "--skipLibCheck", "--target", "es2022"];
  const modules = ["--module", "preserve", "--moduleResolution", "bundler", "--types", ""];
  let errors = "";
  try {
    execFileSync(process.execPath, [compiler, ...options, ...modules, "use.ts"], {
      cwd: folder,
      encoding: "utf8",
    });
  } catch (error) {
    errors = (error as { stdout: string }).stdout;
  }
  expect([errors, types]).toEqual(["", types]);
  expect(types).toContain('"plan"?: "free" | "pro" | null | 1;');
}, 60_000);
