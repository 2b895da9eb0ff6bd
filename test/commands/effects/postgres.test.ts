import { expect, test, vi } from "vitest";
import { commandLine } from "../../../src/app/command-line.ts";
import { serveEffects } from "../../../src/app/effects.ts";
import { StoreError } from "../../../src/platform/base/store-error.ts";
import { PostgresStore } from "../../../src/readers/effects/store/postgres/store.ts";
import { commandWorld } from "../../kit/command-context.ts";
import { gatewayForFile, postgresForFile } from "../../kit/for-file.ts";
import { asked } from "../../kit/postgres-rows.ts";
import { silent } from "../../kit/processes.ts";
import { newDatabase } from "../../readers/effects/store/postgres-rig.ts";
import {
  commitOf,
  linkRow,
  mergedRow,
  personRow,
  positionRow,
  project,
  propertiesOf,
} from "../../readers/effects/store/row-kit.ts";

const server = await postgresForFile();
const gateway = await gatewayForFile();

async function run(url: string, ...args: string[]): Promise<string> {
  const { context, said } = commandWorld({ PENSTOCK_EFFECTS_URL: url });
  await commandLine(context).parseAsync(args, { from: "user" });
  return said.out;
}

test("penstock person reads from PostgreSQL", async () => {
  const { url } = server;
  const early = await run(url, "person", project, "ada").catch(({ message }: Error) => message);
  expect(early).toContain("penstock effects");

  const store = new PostgresStore({ url });
  await store.open();
  const properties = propertiesOf({ n: "12345678901234567890.10" });
  await store.commit(
    commitOf(0, {
      positions: [positionRow(3)],
      members: [personRow("ada", { properties, idsTotal: 2 }), mergedRow("anon", "ada")],
      links: [linkRow(1, "anon", "ada")],
    }),
  );
  await store.close();
  const json = await run(url, "person", project, "anon", "--json");
  expect(json).toContain('"properties":{"n":12345678901234567890.10}');
  expect(json).toContain('"as_of":{"PENSTOCK_LIVE_0":3}');
  expect(await run(url, "person", project, "ada", "links")).toContain("merged");
  expect(await run(url, "effects", "status")).toContain("1 person,");
});

test("effects rebuild replaces the tables in PostgreSQL only after a success", async () => {
  const { id, key } = await gateway.project();
  const url = await newDatabase(server);
  const at = ["--effects-url", url, "--nats-url", gateway.nats.url];
  const early = run(url, "effects", "rebuild", ...at);
  await expect(early).rejects.toThrow("the tables do not exist");
  const event = { api_key: key, event: "e", distinct_id: "me", properties: { $set: { n: 1 } } };
  expect((await gateway.post("/capture/", event)).status).toBe(200);
  const stop = new AbortController();
  const served = serveEffects(
    { ...gateway.config, natsUrl: gateway.nats.url, effectsUrl: url, effectsPort: 0 },
    { host: process, log: silent, signal: stop.signal, acceptExpired: false, isChild: false },
  );
  const person = () => run(url, "person", id, "me").catch(({ message }: Error) => message);
  await expect.poll(person, { timeout: 20_000 }).toContain("main id");
  await expect(run(url, "effects", "rebuild", ...at)).rejects.toThrow(
    "another `penstock effects` writes to it",
  );
  stop.abort();
  await served;

  const schemas = async () =>
    (
      await asked(url, "SELECT nspname FROM pg_namespace WHERE nspname LIKE 'penstock%' ORDER BY 1")
    ).map((row) => row["nspname"]);
  await asked(
    url,
    "CREATE SCHEMA penstock_effects_rebuilt; CREATE TABLE penstock_effects_rebuilt.x ()",
  );
  const takePlace = vi.spyOn(PostgresStore.prototype, "takePlace");
  takePlace.mockRejectedValueOnce(new StoreError("no space left on device"));
  await expect(run(url, "effects", "rebuild", ...at)).rejects.toThrow("no space left on device");
  expect(await schemas()).toEqual(["penstock_effects"]);
  expect(await person()).toContain("main id");

  const bindTo = vi.spyOn(PostgresStore.prototype, "bindTo");
  bindTo.mockImplementationOnce(async () => {
    await asked(url, "UPDATE penstock_effects.writer SET last_commit = -1");
  });
  await expect(run(url, "effects", "rebuild", ...at)).rejects.toThrow("changed during");

  await asked(url, "DELETE FROM penstock_effects.members");
  for (const kept of ["penstock_effects_before_rebuild", "penstock_effects_before_rebuild_2"])
    expect(await run(url, "effects", "rebuild", ...at)).toContain(`in the schema ${kept}\n`);
  expect(await schemas()).toEqual([
    "penstock_effects",
    "penstock_effects_before_rebuild",
    "penstock_effects_before_rebuild_2",
  ]);
  expect(await person()).toContain("main id");
  expect(await run(url, "effects", "verify", ...at)).toContain(
    "the database matches the streams (",
  );
});

test("penstock person reports an unavailable server without its password", async () => {
  const url = "postgres://me:hunter2@127.0.0.1:1/effects";
  const message = await run(url, "person", project, "ada").catch((error: Error) => error.message);
  expect(message).toContain("127.0.0.1:1");
  expect(message).not.toContain("hunter2");
});
