// The commands on a database in PostgreSQL, named by its URL: the same answers, a plain message
// where nothing has been written yet, and no password in any.

import { expect, test } from "vitest";
import { commandLine } from "../../../src/app/command-line.ts";
import { PostgresStore } from "../../../src/effects/store/postgres/store.ts";
import { commandWorld } from "../../../testkit/command-context.ts";
import { postgresForFile } from "../../../testkit/for-file.ts";
import {
  commitOf,
  linkRow,
  mergedRow,
  personRow,
  positionRow,
  project,
  propertiesOf,
} from "../../effects/store/row-kit.ts";

const server = await postgresForFile();

async function run(url: string, ...args: string[]): Promise<string> {
  const { context, said } = commandWorld({ PENSTOCK_EFFECTS_URL: url });
  await commandLine(context).parseAsync(args, { from: "user" });
  return said.out;
}

test("a person is read from PostgreSQL, once there is something to read", async () => {
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

test("a server that is away is told without its password", async () => {
  const url = "postgres://me:hunter2@127.0.0.1:1/effects";
  const message = await run(url, "person", project, "ada").catch((error: Error) => error.message);
  expect(message).toContain("127.0.0.1:1");
  expect(message).not.toContain("hunter2");
});
