import { readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { ddl, modernForm } from "../../src/readers/sinks/clickhouse/tables.ts";
import { createAuthority } from "../kit/certificates.ts";
import { askedClickHouse as asked } from "../kit/clickhouse-rows.ts";
import { clickHousesForFile, gatewayForFile } from "../kit/for-file.ts";
import { ended, penstock, penstockWith } from "../kit/processes.ts";
import { root } from "./docs-kit.ts";

const gateway = await gatewayForFile();
const authority = await createAuthority();
const tls = await authority.server();
const clickHouses = await clickHousesForFile({ tls });
const guide = readFileSync(path.join(root, "docs/guides/sink-clickhouse.md"), "utf8");
const queries = [...guide.matchAll(/^```sql\n([^`]+)```$/gm)].map(([, sql]) => sql ?? "");
const nats = ["--nats-url", gateway.nats.url, "--sink-port", "0"];
const slow = { timeout: 30_000 };

describe.each(clickHouses)("the ClickHouse sink of the guide", (clickhouse) => {
  const { url, tlsUrl, password } = clickhouse;

  test("writes events over TLS for the guide's queries", async () => {
    const to = `${tlsUrl}?sslrootcert=${authority.caFile}`;
    const sink = penstock("sink", "clickhouse", to, ...nats);
    const { id, key: api_key } = await gateway.project();
    const event = { event: "signed up", distinct_id: "user-1", properties: { plan: "pro" } };
    const answer = await gateway.post("/capture/", { api_key, ...event });
    expect(answer.status).toBe(200);
    const found = () => asked(url, "SELECT event FROM penstock.events").catch(() => []);
    await expect.poll(found, slow).toEqual([{ event: "signed up" }]);
    const wanted = [
      { event: "signed up", events: "1" },
      { plan: "pro", ids: "1" },
    ];
    expect(queries.length).toBe(wanted.length);
    for (const [index, sql] of queries.entries()) {
      const rows = await asked(url, sql.replace("'demo'", `'${id}'`));
      expect(rows).toMatchObject([wanted[index]]);
    }

    const [month] = await asked(url, "SELECT toYYYYMM(max(stored_at)) AS at FROM penstock.events");
    const drop = /`(ALTER TABLE [^`]+ DROP PARTITION )\d+`/.exec(guide)?.[1];
    await asked(url, `${drop}${Number(month?.["at"]) - 100}`);
    expect(
      await asked(url, `SELECT uniqExact(project_id, uuid) AS n FROM penstock.events`),
    ).toEqual([{ n: "1" }]);
    await asked(url, `${drop}${month?.["at"]}`);
    expect(await found()).toEqual([]);

    const port = /"sinkPort":(\d+)/.exec(sink.said.err)?.[1];
    const shown = async (page: string) =>
      await (await fetch(`http://127.0.0.1:${port}${page}`)).text();
    expect(await shown("/readyz")).toBe('{"status":"ready"}\n');
    const written = 'penstock_sink_events_total{outcome="written"} 1';
    await expect.poll(() => shown("/metrics"), slow).toContain(written);

    const other = penstockWith({ PENSTOCK_SINK_TO: url }, "sink", "clickhouse", ...nats);
    await expect.poll(() => other.said.err, slow).toContain("standing by");
    sink.kill("SIGTERM");
    expect(await ended(sink)).toBe(0);
    await expect.poll(() => other.said.err, slow).toContain("sink writing events");
    expect(sink.said.err + other.said.err).not.toContain(password);
  });

  test("prints statements that create the tables on the server", async () => {
    const args = ["sink", "clickhouse", url, "--database", "warehouse"];
    const printed = penstock(...args, "--ddl");
    expect(await ended(printed)).toBe(0);
    for (const statement of printed.said.out.split(";\n").slice(0, -1)) await asked(url, statement);
    const sink = penstock(...args, "--no-create", ...nats);
    await expect.poll(() => sink.said.err, slow).toContain("sink writing events");
    const counted = () => asked(url, "SELECT count() AS n FROM warehouse.positions FINAL");
    await expect.poll(counted, slow).toEqual([{ n: "2" }]);
  });
});

test("sink clickhouse --ddl without a server prints tables for current servers", async () => {
  const printed = penstock("sink", "clickhouse", "--ddl", "--database", "warehouse");
  expect(await ended(printed)).toBe(0);
  expect(printed.said.out).toBe(ddl("warehouse", modernForm, { withPerson: false }));
});
