import { afterAll, expect, onTestFinished, test } from "vitest";
import { readAddress } from "../../../../src/platform/postgres/address.ts";
import { SinkSession } from "../../../../src/readers/sinks/postgres/session.ts";
import { StandbyError } from "../../../../src/readers/sinks/sink-target.ts";
import { startPostgres } from "../../../kit/postgres.ts";
import { newDatabase } from "../../effects/store/postgres-rig.ts";

const postgres = await startPostgres();
afterAll(() => postgres.remove());

const idleMsMax = 400;
const work = async (): Promise<string> => "done";

test("a frozen PostgreSQL sink loses its lock to another sink", async () => {
  const address = readAddress(await newDatabase(postgres));
  const sessions = [1, 2].map(() => new SinkSession(address, "penstock", idleMsMax));
  onTestFinished(async () => {
    for (const session of sessions) await session.close();
  });
  const [one, other] = sessions as [SinkSession, SinkSession];
  expect(await one.run("open", work)).toBe("done");
  const sinceMs = performance.now();
  let refused = 0;
  while (performance.now() - sinceMs < 4 * idleMsMax) {
    await expect(other.run("open", work)).rejects.toThrow(StandbyError);
    refused++;
  }
  expect(refused).toBeGreaterThan(2);
  await other.close();
  // The sink's process is frozen, and its sockets stay open.
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 4 * idleMsMax);
  expect(await other.run("open", work)).toBe("done");
  await expect(one.run("write", work)).rejects.toThrow();
  await expect(one.run("write", work)).rejects.toThrow(StandbyError);
});
