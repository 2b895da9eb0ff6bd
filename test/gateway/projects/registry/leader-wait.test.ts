import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import { TimeoutError } from "@nats-io/nats-core";
import { describe, expect, test } from "vitest";
import {
  addProject,
  listProjects,
  rotateKey,
  setEnabled,
} from "../../../../src/gateway/projects/registry/commands.ts";
import { onceLed } from "../../../../src/gateway/projects/registry/leader-wait.ts";
import { NoLeaderError } from "../../../../src/platform/nats/api.ts";
import { leaderless, newPlace, registryRig } from "../registry-kit.ts";

const rig = registryRig();
const noWait = { waitMsMax: 0 };

function ledAfter(answers: number): {
  connection: ReturnType<typeof leaderless>;
  asked: () => number;
} {
  let asked = 0;
  return { connection: leaderless(rig, () => ++asked <= answers), asked: () => asked };
}

describe("a command on a cluster without a leader", () => {
  test.each([
    ["project add", (connection, place) => addProject(connection, { ...place, id: "other" })],
    ["project list", listProjects],
    ["project rotate", (connection, place) => rotateKey(connection, { ...place, id: "shop" })],
    [
      "project disable",
      (connection, place) => setEnabled(connection, { ...place, id: "shop", enabled: false }),
    ],
  ] as const satisfies [string, (...given: Parameters<typeof listProjects>) => Promise<unknown>][])(
    "waits for a leader: %s",
    async (_name, command) => {
      const place = newPlace();
      await addProject(rig.connection, { ...place, id: "shop" });
      const { connection, asked } = ledAfter(2);
      await command(connection, place);
      expect(asked()).toBeGreaterThan(2);
    },
  );

  test("names the stream and the next step when it gives up", async () => {
    const noLeader = () => Promise.reject(new NoLeaderError("KV_penstock_projects"));
    const ended = onceLed(noLeader, { waitMsMax: 300 });
    await expect(ended).rejects.toThrow(
      /^stream KV_penstock_projects has no leader: waited 0\.3 s.*start the missing servers.*try again$/,
    );
  });

  test("fails immediately on an error that waiting cannot fix", async () => {
    const fault = new Error("the key is in use");
    await expect(onceLed(() => Promise.reject(fault))).rejects.toBe(fault);
    const { streams } = await jetstreamManager(rig.connection);
    await expect(onceLed(() => streams.info("NOBODYS"))).rejects.toThrow("stream not found");
  });

  test("repeats a write only if no server received it", async () => {
    let writes = 0;
    const unanswered = () => {
      writes++;
      return Promise.reject(new TimeoutError());
    };
    await expect(onceLed(unanswered, { isRepeatable: false })).rejects.toBeInstanceOf(TimeoutError);
    expect(writes).toBe(1);
    const { prefix } = newPlace();
    const written = onceLed(
      () => {
        writes++;
        return jetstream(rig.connection).publish(`${prefix}.one`, "text");
      },
      { isRepeatable: false },
    );
    await expect.poll(() => writes).toBeGreaterThan(2);
    await (await jetstreamManager(rig.connection)).streams.add({
      name: prefix,
      subjects: [`${prefix}.>`],
    });
    expect((await written).seq).toBe(1);
    await expect(onceLed(unanswered, noWait)).rejects.toThrow("waited 0 s");
  });
});
