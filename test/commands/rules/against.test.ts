import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { expect, onTestFinished, test } from "vitest";
import { RulesTrial } from "../../../src/commands/rules/rules-trial.ts";
import { compileRules } from "../../../src/rules/compile.ts";
import { parseRules } from "../../../src/rules/parse.ts";
import type { RulesFile } from "../../../src/rules/rules-file.ts";
import { startTestGateway } from "../../kit/gateway.ts";
import { take } from "../../kit/items.ts";
import { runCommand } from "../../kit/run-command.ts";

function rulesOf(text: string): RulesFile {
  const parsed = parseRules(text);
  if ("errors" in parsed) throw new Error(JSON.stringify(parsed.errors));
  return parsed.rules;
}

const file = `privacy: { cut_query: [token] }
rules:
  - name: no-pings
    match: { event: "ping*" }
    drop: true
  - name: wrong-orders
    match: { event: order, properties: { total: { absent: true }, plan: [free, pro] } }
    quarantine: true
  - name: half
    match: { event: scroll }
    sample: 0.5
  - name: no-emails
    match: { properties: { email: { exists: true }, plan: free } }
    remove: [email]
  - name: watched
    mode: observe
    match: { event: order }
    drop: true
  - name: watched-cut
    mode: observe
    cut: { title: 3 }
  - name: never
    match: { event: nothing }
    drop: true
`;

/** Stored lines of events, with their names, distinct ids and properties. */
function lines(events: readonly (readonly [string, string, object])[]): Buffer {
  const batch = events.map(([event, id, properties]) => ({ event, distinct_id: id, properties }));
  const { lines: stored } = take({ api_key: "k", batch });
  return Buffer.from(stored.map((line) => `${line}\n`).join(""));
}

test("a trial applies the rules to events with escapes and repeated names", () => {
  const stored = String(lines([["order", "u1", { plan: "free", total: 1 }]]));
  const others = [
    stored.replace('"plan"', String.raw`"pl\u0061n"`),
    stored.replace('"total":1', String.raw`"a":{"x":1,"x":2},"pl\u0061n":"pro"`),
  ];
  const removed = "rules: [{ name: no-plan, remove: [plan] }]";
  const trial = new RulesTrial(rulesOf(removed));
  trial.take(Buffer.from([stored, ...others, stored].join("")), "live");
  expect(trial.events).toBe(4);
  expect(trial.results[0]).toMatchObject({ events: { changed: 4 } });
});

test("a trial counts what each rule would do, with examples without hidden values", () => {
  const trial = new RulesTrial(rulesOf(file));
  const scrolls = Array.from({ length: 2_000 }, (_, n) => ["scroll", `u${n}`, {}] as const);
  const stored = lines([
    ["ping", "u1", {}],
    ["ping pong", "u1", {}],
    ["order", "u1", { plan: "free", email: "secret@example.org" }],
    ["order", "u1", { plan: "free", total: 1, email: "secret@example.org" }],
    ["seen", "u1", { plan: "free", email: "secret@example.org", title: "long title" }],
    ["seen", "u1", { $current_url: "https://example.org/?token=1" }],
    ...scrolls,
  ]);
  trial.take(stored, "live");
  expect([trial.events, trial.bytes]).toEqual([2_006, stored.length]);
  const found = Object.fromEntries(
    trial.results.map(({ name, events: { dropped, quarantined, changed } }) => [
      name,
      [dropped, quarantined, changed],
    ]),
  );
  const { half, ...others } = found;
  expect(others).toEqual({
    "no-pings": [2, 0, 0],
    "wrong-orders": [0, 1, 0],
    "no-emails": [0, 0, 2],
    watched: [1, 0, 0],
    "watched-cut": [0, 0, 1],
    never: [0, 0, 0],
  });
  expect(half![0]).toBeGreaterThan(850);
  expect(half![0]).toBeLessThan(1_150);
  expect(trial.privacy.changed).toBe(1);
  const [pings, orders, , emails] = trial.results;
  const pingBytes = stored.toString().split("\n").slice(0, 2).join("\n").length + 1;
  expect(pings!.bytes).toBe(pingBytes);
  expect(pings!.examples.map(({ event }) => event)).toEqual(["ping", "ping pong"]);
  expect(orders!.examples).toMatchObject([{ event: "order", properties: { plan: "free" } }]);
  expect(emails!.examples).toHaveLength(2);
  expect(trial.results[2]!.examples).toHaveLength(3);
  expect(JSON.stringify(trial.results)).not.toContain("secret@");
});

test("a trial agrees with the intake about the events that are stored", () => {
  const rules = rulesOf(file);
  const events = Array.from({ length: 300 }, (_, n) => {
    const name = ["ping", "order", "scroll", "seen"][n % 4]!;
    return [name, `u${n}`, n % 3 === 0 ? { plan: "pro" } : { plan: "free", total: 1 }] as const;
  });
  const trial = new RulesTrial(rules);
  trial.take(lines(events), "live");
  const filtered = trial.results
    .filter(({ mode }) => mode === "enforce")
    .reduce((sum, { events: { dropped, quarantined } }) => sum + dropped + quarantined, 0);
  const batch = events.map(([event, id, properties]) => ({ event, distinct_id: id, properties }));
  const taken = take(
    { api_key: "k", batch },
    { rules: compileRules(rules, { version: 1, secret: new Uint8Array(32) }) },
  );
  expect(taken.filtered).toBe(filtered);
  expect(filtered).toBeGreaterThan(75);
});

test("a trial agrees with the intake about the events that are valid", () => {
  const rules = rulesOf(
    "schemas: [{ event: seen, version: 1, mode: observe, properties: { properties: { title: { type: string } } } }]",
  );
  const events = [{}, { plan: "free" }, { title: "a" }, { title: 1 }].map(
    (properties) => ["seen", "u", properties] as const,
  );
  const trial = new RulesTrial(rules);
  trial.take(lines(events), "live");
  expect(trial.schemas.results).toMatchObject([{ event: "seen", valid: 3, invalid: 1 }]);
  const batch = events.map(([event, id, properties]) => ({ event, distinct_id: id, properties }));
  const compiled = compileRules(rules, { version: 1, secret: new Uint8Array(32) });
  take({ batch }, { rules: compiled });
  expect([...compiled.schemas[0]!.counts]).toEqual([3, 1]);
});

test("rules check --against reads the stored events of one project, and changes nothing", async () => {
  const gateway = await startTestGateway();
  onTestFinished(() => gateway.stop());
  const folder = mkdtempSync(path.join(tmpdir(), "penstock-test-rules-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const rulesFile = path.join(folder, "rules.yaml");
  writeFileSync(rulesFile, file);
  const [shop, blog] = await gateway.projects(2);
  const batch = ["ping", "ping", "order", "seen"].map((event) => ({ event, distinct_id: "u" }));
  for (const { key } of [shop!, blog!])
    expect((await gateway.post("/batch/", { api_key: key, batch })).status).toBe(200);
  const env = { PENSTOCK_NATS_URL: gateway.nats.url };
  const rules = (...args: string[]) => runCommand(env, ["rules", ...args]);
  const read = await rules("check", rulesFile, "--against", "24h", "--project", shop!.id);
  expect(read.fault).toBeUndefined();
  expect(read.out).toMatch(
    new RegExp(
      `^project ${shop!.id} since [-0-9T:.]+Z: 4 stored events, \\d+ bytes\nRULE +MODE +DROPPED`,
    ),
  );
  expect(read.out).toMatch(/\nno-pings +enforce +2 +0 +0 +\d+\n/);
  expect(read.out).toMatch(/\nno-pings: "ping", received [-0-9T:.]+Z, uuid [-0-9a-f]{36}\n/);
  const json = await rules("check", rulesFile, "--against", "1h", "--project", blog!.id, "--json");
  expect(JSON.parse(json.out)).toMatchObject({
    project: blog!.id,
    events: 4,
    rules: [
      { name: "no-pings", mode: "enforce", dropped: 2, quarantined: 0, changed: 0 },
      ...Array.from({ length: 6 }, () => ({})),
    ],
  });
  expect(await gateway.events(shop!)).toHaveLength(4);
  expect((await rules("check", rulesFile, "--against", "1h")).fault).toBe(
    "rules check: --against needs --project <id>",
  );
  expect((await rules("check", rulesFile, "--against", "1h", "--project", "none")).fault).toContain(
    "there is no project none",
  );
  expect((await rules("show", shop!.id)).fault).toContain("has no rules");
});

test("a gateway applies a new version within 2 s, and answers 503 without a usable version", async () => {
  const gateway = await startTestGateway();
  onTestFinished(() => gateway.stop());
  const folder = mkdtempSync(path.join(tmpdir(), "penstock-test-rules-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const rulesFile = path.join(folder, "rules.yaml");
  writeFileSync(rulesFile, "rules: [{ name: no-x, match: { event: x }, drop: true }]\n");
  const shop = await gateway.project();
  const send = () =>
    gateway.post("/batch/", {
      api_key: shop.key,
      batch: ["x", "y"].map((event) => ({ event, distinct_id: "u" })),
    });
  expect((await send()).json).toMatchObject({ accepted: 2 });
  const env = { PENSTOCK_NATS_URL: gateway.nats.url };
  expect((await runCommand(env, ["rules", "apply", shop.id, rulesFile])).fault).toBeUndefined();
  const startMs = performance.now();
  await expect
    .poll(async () => (await send()).json, { timeout: 10_000, interval: 20 })
    .toMatchObject({ accepted: 1, filtered: 1 });
  expect(performance.now() - startMs).toBeLessThan(2_000);
  await gateway.close();
  const connection = await connect({ servers: gateway.nats.url });
  onTestFinished(() => connection.close());
  await (await jetstreamManager(connection)).streams.delete("KV_penstock_rules");
  const next = await startTestGateway({ server: gateway.nats });
  onTestFinished(() => next.stop());
  const answer = await next.post("/capture/", { api_key: shop.key, event: "y", distinct_id: "u" });
  expect([answer.status, answer.json["code"]]).toEqual([503, "unavailable"]);
  expect(answer.json["detail"]).toContain("rules of the project have not been loaded");
  expect(await next.metrics()).toMatch(/^penstock_projects_without_current_rules(\{.*\})? 1$/m);
  expect((await runCommand(env, ["rules", "apply", shop.id, rulesFile])).fault).toBeUndefined();
  await expect
    .poll(
      async () =>
        (await next.post("/capture/", { api_key: shop.key, event: "y", distinct_id: "u" })).status,
      { timeout: 10_000, interval: 50 },
    )
    .toBe(200);
});
