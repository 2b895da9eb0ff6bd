import { readFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { ddl } from "../../src/readers/sinks/postgres/tables.ts";
import { gatewayForFile, postgresForFile } from "../kit/for-file.ts";
import { asked } from "../kit/postgres-rows.ts";
import { ended, penstock, penstockWith } from "../kit/processes.ts";
import { root } from "./docs-kit.ts";

const gateway = await gatewayForFile();
const postgres = await postgresForFile();
const guide = readFileSync(path.join(root, "docs/guides/sink-postgres.md"), "utf8");
const queries = [...guide.matchAll(/^```sql\n([^`]+)```$/gm)].map(([, sql]) => sql ?? "");
const nats = ["--nats-url", gateway.nats.url, "--sink-port", "0"];
const slow = { timeout: 30_000 };

test("the guide's PostgreSQL sink writes events for the guide's queries", async () => {
  const sink = penstock("sink", "postgres", postgres.url, ...nats);
  const { id, key: api_key } = await gateway.project();
  const event = { event: "signed up", distinct_id: "user-1", properties: { plan: "pro" } };
  const answer = await gateway.post("/capture/", { api_key, ...event });
  expect(answer.status).toBe(200);
  const found = () => asked(postgres.url, "SELECT event FROM penstock.events").catch(() => []);
  await expect.poll(found, slow).toEqual([{ event: "signed up" }]);
  expect(queries.length).toBe(2);
  const answers = await Promise.all(
    queries.map((sql) => asked(postgres.url, sql.replace("'demo'", `'${id}'`))),
  );
  expect(answers[0]).toMatchObject([{ event: "signed up", count: "1" }]);
  expect(answers[1]).toEqual([{ plan: "pro", ids: "1" }]);

  const today = new Date().toISOString().slice(0, 10);
  const drops = /^```sql not-run\n([^`]+)```$/m.exec(guide)?.[1] ?? "";
  const [table = "", keys = ""] = drops.replaceAll("2025-11-22", today).split("\n");
  await asked(postgres.url, table.replace("20251122", today.replaceAll("-", "")));
  expect(await found()).toEqual([]);
  expect(await asked(postgres.url, `${keys.replace(/;$/, "")} RETURNING project_id`)).toEqual([
    { project_id: id },
  ]);

  const port = /"sinkPort":(\d+)/.exec(sink.said.err)?.[1];
  const shown = async (page: string) =>
    await (await fetch(`http://127.0.0.1:${port}${page}`)).text();
  expect(await shown("/readyz")).toBe('{"status":"ready"}\n');
  expect(await shown("/metrics")).toContain('penstock_sink_events_total{outcome="written"} 1');

  const other = penstockWith({ PENSTOCK_SINK_TO: postgres.url }, "sink", "postgres", ...nats);
  await expect.poll(() => other.said.err, slow).toContain("standing by");
  sink.kill("SIGTERM");
  expect(await ended(sink)).toBe(0);
  await expect.poll(() => other.said.err, slow).toContain("sink writing events");
  expect(other.said.err).not.toContain(postgres.password);
});

test("the guide's PostgreSQL sink prints statements that can be run repeatedly", async () => {
  const printed = penstock("sink", "postgres", "--ddl", "--schema", "warehouse");
  expect(await ended(printed)).toBe(0);
  expect(printed.said.out).toBe(ddl("warehouse", { withPerson: false }));
  for (const _ of ["once", "again"]) await asked(postgres.url, printed.said.out);
  const sink = penstock("sink", "postgres", "--to", postgres.url, "--schema", "warehouse", ...nats);
  await expect.poll(() => sink.said.err, slow).toContain("sink writing events");
  const counted = () => asked(postgres.url, "SELECT count(*) FROM warehouse.positions");
  await expect.poll(counted, slow).toEqual([{ count: "2" }]);
});
