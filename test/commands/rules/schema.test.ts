import { writeFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { parseRules } from "../../../src/rules/parse.ts";
import { gatewayForFile } from "../../kit/for-file.ts";
import { temporaryFolder } from "../../kit/processes.ts";
import { rejectedOf } from "../../kit/rejected.ts";
import { runCommand } from "../../kit/run-command.ts";

const gateway = await gatewayForFile();

const rules = (...args: string[]) =>
  runCommand({ PENSTOCK_NATS_URL: gateway.config.natsUrl! }, ["rules", ...args]);

async function send(key: string, events: readonly object[]): Promise<void> {
  const answer = await gateway.post("/batch/", { api_key: key, batch: events });
  expect([answer.status, answer.json["accepted"]]).toEqual([200, events.length]);
}

const order = (n: number) => ({
  event: "order completed",
  distinct_id: `user-${n}`,
  properties: { plan: n % 2 === 0 ? "free" : "pro", total: n + 0.5, email: `u${n}@example.com` },
});

test("rules schema learn proposes a schema from the events of one project and one name", async () => {
  const [shop, other] = [await gateway.project(), await gateway.project()];
  await send(
    shop.key,
    Array.from({ length: 40 }, (_, n) => order(n)),
  );
  await send(shop.key, [{ event: "other", distinct_id: "u", properties: { more: 1 } }]);
  await send(other.key, [{ ...order(1), properties: { plan: 7, wrong: true } }]);
  const learned = await rules("schema", "learn", shop.id, "--event", "order completed");
  expect(learned.fault).toBeUndefined();
  expect(learned.out).toContain("# Learned from 40 events since ");
  expect(learned.out).not.toMatch(/example\.com|user-|wrong|more/);
  expect(parseRules(learned.out)).toMatchObject({
    rules: {
      schemas: [
        {
          event: "order completed",
          version: 1,
          mode: "observe",
          properties: {
            required: ["email", "plan", "total"],
            properties: {
              plan: { enum: ["free", "pro"] },
              total: { type: "number" },
              email: { type: "string" },
            },
          },
        },
      ],
    },
  });
  const file = path.join(temporaryFolder(), "learned.yaml");
  writeFileSync(file, learned.out);
  expect((await rules("apply", shop.id, file)).fault).toBeUndefined();
  const again = await rules("schema", "learn", shop.id, "--event", "order completed");
  expect(again.out).toContain("    version: 2\n");
  const types = await rules("schema", "types", shop.id);
  expect(types.fault).toBeUndefined();
  expect(types.out).toContain('"plan": "free" | "pro";');
  expect(types.out).toContain(`\`penstock rules schema types ${shop.id}\` from version 1`);
});

test("the rules schema commands explain what they do not find", async () => {
  const empty = await gateway.project();
  const fault = async (...args: string[]) => (await rules("schema", ...args)).fault;
  expect(await fault("learn", empty.id, "--event", "none", "--since", "1h")).toMatch(
    new RegExp(`^rules schema learn: project ${empty.id} has no stored event "none" since 2`),
  );
  expect(await fault("types", empty.id)).toBe(
    `rules schema types: project ${empty.id} has no schemas: propose one with \`penstock rules schema learn ${empty.id} --event NAME\``,
  );
  expect(await fault("learn", "nobody", "--event", "none")).toContain("there is no project nobody");
  expect(await fault("learn", empty.id, "--event", "")).toContain("must have 1 to 200 characters");
  expect(await fault("learn", empty.id, "--event", "order*")).toBe(
    'rules schema learn: --event must not contain * (got "order*"): a schema is for one exact name',
  );
  expect(await fault("learn", empty.id)).toContain("--event");
});

test("a gateway checks events against the applied schema, and counts the results", async () => {
  const project = await gateway.project();
  const file = path.join(temporaryFolder(), "order.yaml");
  const schema = (mode: string) =>
    `schemas: [{ event: order, version: 4, mode: ${mode}, properties: { required: [total] } }]\n`;
  const apply = async (mode: string) => {
    writeFileSync(file, schema(mode));
    expect((await rules("apply", project.id, file)).fault).toBeUndefined();
  };
  const post = async () => {
    const batch = [{ total: 1 }, { sum: 1 }].map((properties) => ({
      event: "order",
      distinct_id: "u",
      properties,
    }));
    return (await gateway.post("/batch/", { api_key: project.key, batch })).json;
  };
  const schemas = async () => (await gateway.events(project)).map((event) => event["schema"]);
  await apply("stamp");
  const soon = { timeout: 10_000, interval: 100 };
  await expect
    .poll(async () => {
      await post();
      return await schemas();
    }, soon)
    .toContainEqual({ version: 4, ok: false, errors: ["total: is required"] });
  expect(await schemas()).toContainEqual({ version: 4, ok: true });
  await apply("quarantine");
  await expect.poll(post, soon).toMatchObject({ accepted: 1, dropped: 0, filtered: 1 });
  await expect
    .poll(async () => (await rejectedOf(gateway, project))[0], soon)
    .toMatchObject({ reason: "schema", rule: "order", rules: 2, detail: "total: is required" });
  expect(await gateway.metrics()).toMatch(
    new RegExp(
      `penstock_schema_results_total{project="${project.id}",event="order",mode="quarantine",result="invalid"} [1-9]`,
    ),
  );
});
