import { readFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { gatewayForFile } from "../kit/for-file.ts";
import { askedOfParquet } from "../kit/parquet-rows.ts";
import { ended, penstock, temporaryFolder } from "../kit/processes.ts";
import { root } from "./docs-kit.ts";

const gateway = await gatewayForFile();
const guide = readFileSync(path.join(root, "docs/guides/sink-parquet.md"), "utf8");
const queries = [...guide.matchAll(/^```sql\n([^`]+);\n```$/gm)].map(([, sql]) => sql ?? "");
const nats = ["--nats-url", gateway.nats.url, "--sink-port", "0"];
const slow = { timeout: 30_000 };

test("the guide's Parquet sink writes events for the guide's queries", async () => {
  const folder = path.join(temporaryFolder(), "warehouse");
  const sink = penstock("sink", "parquet", folder, "--sink-file-seconds", "1", ...nats);
  const { id, key: api_key } = await gateway.project();
  const event = { event: "signed up", distinct_id: "user-1", properties: { plan: "pro" } };
  const answer = await gateway.post("/capture/", { api_key, ...event });
  expect(answer.status).toBe(200);
  const found = () => askedOfParquet(folder, "SELECT event FROM events").catch(() => []);
  await expect.poll(found, slow).toEqual([{ event: "signed up" }]);
  expect(queries.length).toBe(3);
  const own = (sql: string): string =>
    sql
      .replaceAll("/data/warehouse", folder)
      .replace("'demo'", `'${id}'`)
      .replace("project_id=demo", `project_id=${id}`);
  const answers = await Promise.all(
    queries.map((sql) => askedOfParquet(folder, `FROM (${own(sql)})`)),
  );
  expect(answers[0]).toMatchObject([{ event: "signed up", events: "1" }]);
  expect(answers[1]).toEqual([{ plan: "pro", ids: "1" }]);
  expect(answers[2]).toMatchObject([{ project_id: id, event: "signed up" }]);

  const port = /"sinkPort":(\d+)/.exec(sink.said.err)?.[1];
  const shown = async (page: string) =>
    await (await fetch(`http://127.0.0.1:${port}${page}`)).text();
  expect(await shown("/readyz")).toBe('{"status":"ready"}\n');
  expect(await shown("/metrics")).toContain('penstock_sink_events_total{outcome="written"} 1');

  const other = penstock("sink", "parquet", folder, ...nats);
  await expect.poll(() => other.said.err, slow).toContain("standing by");
  sink.kill("SIGTERM");
  expect(await ended(sink)).toBe(0);
  expect(sink.said.err).toMatch(/sink committed a segment as Parquet files[\s\S]*sink ended/);
  await expect.poll(() => other.said.err, slow).toContain("sink writing events");
});
