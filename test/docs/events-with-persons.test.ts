import { readFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { personUuid } from "../../src/readers/effects/people/person-uuid.ts";
import { ddl } from "../../src/readers/sinks/postgres/tables.ts";
import { gatewayForFile, postgresForFile } from "../kit/for-file.ts";
import { asked } from "../kit/postgres-rows.ts";
import { ended, penstock, penstockWith } from "../kit/processes.ts";
import { root } from "./docs-kit.ts";

const gateway = await gatewayForFile();
const postgres = await postgresForFile();
const guide = readFileSync(path.join(root, "docs/guides/events-with-persons.md"), "utf8");
const queries = [...guide.matchAll(/^```sql\n([^`]+)```$/gm)].map(([, sql]) => sql ?? "");
const nats = ["--nats-url", gateway.nats.url];
const slow = { timeout: 30_000 };

test("the guide's sink with persons adds the person to each event", async () => {
  const sink = penstockWith(
    { PENSTOCK_SINK_TO: postgres.url, PENSTOCK_EFFECTS_URL: postgres.url },
    "sink",
    "postgres",
    ...nats,
    "--sink-port",
    "0",
    "--with-person",
  );
  const { id, key: api_key } = await gateway.project();
  const send = async (event: object) =>
    expect((await gateway.post("/capture/", { api_key, ...event })).status).toBe(200);
  await send({ event: "read", distinct_id: "anon-1" });
  await send({ event: "paid", distinct_id: "ada" });
  const anonymous = { $process_person_profile: false };
  await send({ event: "looked", distinct_id: "anon-2", properties: anonymous });
  await expect
    .poll(() => sink.said.err, slow)
    .toContain("sink waiting: `penstock effects` has not applied these events yet");
  expect(await asked(postgres.url, "SELECT event FROM penstock.events")).toEqual([]);

  const effects = penstock(
    "effects",
    "--effects-url",
    postgres.url,
    "--effects-port",
    "0",
    ...nats,
  );
  const personsAt = async () => {
    const sql = "SELECT event, person_uuid FROM penstock.events ORDER BY timestamp, received_at";
    const rows = await asked(postgres.url, sql);
    return Object.fromEntries(rows.map(({ event, person_uuid: uuid }) => [event, uuid]));
  };
  const [anon, ada] = [personUuid(id, "anon-1"), personUuid(id, "ada")];
  const apart = { read: anon, paid: ada, looked: null };
  await expect.poll(personsAt, slow).toEqual(apart);
  await send({
    event: "$identify",
    distinct_id: "ada",
    properties: { $anon_distinct_id: "anon-1" },
  });
  await expect.poll(personsAt, slow).toEqual({ ...apart, $identify: anon });

  expect(queries.length).toBe(3);
  const [today = "", update = "", fill = ""] = queries.map((sql) =>
    sql.replace("'demo'", `'${id}'`),
  );
  const shown = await asked(postgres.url, today);
  expect(shown.map(({ event, person_uuid: uuid }) => [event, uuid])).toEqual([
    ["read", anon],
    ["paid", anon],
    ["looked", null],
    ["$identify", anon],
  ]);
  await asked(postgres.url, update);
  const one = { read: anon, paid: anon, looked: null, $identify: anon };
  expect(await personsAt()).toEqual(one);
  await asked(postgres.url, "UPDATE penstock.events SET person_uuid = NULL");
  await asked(postgres.url, fill);
  expect(await personsAt()).toEqual(one);
  for (const process of [sink, effects]) {
    process.kill("SIGTERM");
    expect(await ended(process)).toBe(0);
  }
  expect(sink.said.err).not.toContain(postgres.password);
});

test("--ddl --with-person prints tables with the column person_uuid", async () => {
  const printed = penstock("sink", "postgres", "--ddl", "--with-person");
  expect(await ended(printed)).toBe(0);
  expect(printed.said.out).toBe(ddl("penstock", { withPerson: true }));
  expect(printed.said.out).toContain("ADD COLUMN IF NOT EXISTS person_uuid uuid;");
});
