import { expect, test } from "vitest";
import { openUsageBucket, usageKey, usageValue } from "../../src/gateway/projects/usage/usage.ts";
import { newPlace, registryRig } from "../gateway/projects/registry-kit.ts";
import { ended, penstock } from "../kit/processes.ts";

const rig = registryRig();

test("project usage fails only for a missing project", async () => {
  const place = newPlace();
  const project = async (...args: string[]) => {
    const at = ["--nats-url", rig.server.url, "--subject-prefix", place.prefix];
    const child = penstock("project", ...args, ...at);
    const status = await ended(child);
    const err = child.said.err.replaceAll(/^\{"level":.*\n/gm, "");
    return { status, out: child.said.out, err };
  };
  const absentOf = (known: string) => ({
    status: 1,
    out: "",
    err: `penstock: there is no project nope; ${known}\n`,
  });
  const none = absentOf("there are no projects");
  expect(await project("usage", "nope"), "without a registry").toEqual(none);
  const absent = absentOf("the only project is shop");
  expect(await project("add", "shop")).toMatchObject({ status: 0 });
  expect(await project("limit", "nope", "--none")).toEqual(absent);
  expect(await project("usage", "nope")).toEqual(absent);
  expect((await project("disable", "sohp")).err).toContain("sohp: did you mean shop?");
  expect(await project("usage", "nope", "--json")).toEqual(absent);
  expect(await project("usage", "shop", "--json")).toEqual({ status: 0, out: "[]\n", err: "" });

  const bucket = await openUsageBucket(rig.connection, { ...place, log: { warn: () => {} } });
  const counts = { rateLimitedRequests: 0, rateLimitedEvents: 0, rateLimitedBytes: 0 };
  const record = {
    accepted: 7,
    storedBytes: 70,
    unknown: 0,
    dropped: 0,
    ...counts,
    sinceMs: 0,
    atMs: 0,
    lately: { seconds: 10, accepted: 7, rateLimited: 0 },
  };
  await bucket.put(usageKey("gone", "process"), usageValue(record));
  const { status, out } = await project("usage", "gone", "--json");
  expect([status, JSON.parse(out)]).toEqual([
    0,
    [expect.objectContaining({ project: "gone", accepted: 7 })],
  ]);
});
