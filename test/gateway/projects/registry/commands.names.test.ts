import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import { Kvm } from "@nats-io/kv";
import { connect } from "@nats-io/transport-node";
import fc from "fast-check";
import { afterAll, describe, expect, test } from "vitest";
import { bucketName, parseProject } from "../../../../src/gateway/projects/registry/bucket.ts";
import { addProject } from "../../../../src/gateway/projects/registry/commands.ts";
import { isProjectId } from "../../../../src/platform/base/forms.ts";
import {
  lanes,
  manyProjects,
  streamName,
  streamSubject,
  subjectOf,
} from "../../../../src/platform/nats/names.ts";
import { readConfig } from "../../../../src/platform/settings/read-config.ts";
import { gatewayForFile } from "../../../kit/for-file.ts";

const hostile = [
  "a.b",
  ">",
  "*",
  "~",
  "a b",
  "a\r\nPUB x 0\r\n\r\n",
  "a\n",
  "a\u0000",
  "a\t",
  "",
  ".",
  "..",
  "$JS",
  "é",
  "a\u2028",
  "x".repeat(65),
];
const token = /^[A-Za-z0-9_-]{1,64}$/;
const text = fc.string({
  unit: fc.oneof(fc.constantFrom(...".*>~ \r\n\t\0$/"), fc.string({ minLength: 1, maxLength: 1 })),
  maxLength: 70,
});
const anyId = fc.oneof(
  text,
  fc.constantFrom(...hostile),
  fc.stringMatching(/^[A-Za-z0-9_-]{1,66}$/),
);

const soon = { timeout: 30_000 };
const gateway = await gatewayForFile();
const connection = await connect({ servers: gateway.nats.url });

afterAll(() => connection.close());

describe("a project id", () => {
  test("is valid only if it is one plain NATS token", () => {
    fc.assert(
      fc.property(anyId, (id) => {
        expect(isProjectId(id)).toBe(token.test(id) && !/[\r\n]/.test(id));
        const value = JSON.stringify({ id, name: "n", keys: ["phc_k"], enabled: true });
        expect(parseProject(id, new TextEncoder().encode(value)).ok).toBe(isProjectId(id));
      }),
    );
    for (const id of hostile) expect([id, isProjectId(id)]).toEqual([id, false]);
  });

  test("always gives a subject of four tokens that the stream accepts", () => {
    const anyPrefix = fc.oneof(
      text,
      fc.constantFrom(...hostile),
      fc.stringMatching(/^[a-z][a-z0-9_]{0,33}$/),
    );
    fc.assert(
      fc.property(
        anyId,
        anyPrefix,
        fc.constantFrom(...lanes),
        fc.nat(1_023),
        (projectId, prefix, lane, partition) => {
          const settings = readConfig({ PENSTOCK_SUBJECT_PREFIX: prefix }, {});
          if (!settings.ok || !isProjectId(projectId)) return;
          const subject = subjectOf(settings.config.subjectPrefix, lane, { partition, projectId });
          expect(subject).toMatch(
            /^[a-z][a-z0-9_]{0,31}\.(live|historical)\.\d{1,4}\.[A-Za-z0-9_-]{1,64}$/,
          );
          expect(subject.split(".")).toEqual([prefix, lane, String(partition), projectId]);
          expect(projectId).not.toBe(manyProjects);
          expect(streamSubject(prefix, lane, partition)).toBe(
            `${subject.slice(0, subject.lastIndexOf("."))}.*`,
          );
          expect(streamName(prefix, lane, partition)).toMatch(/^[A-Z0-9_]+$/);
        },
      ),
      { numRuns: 800 },
    );
  });

  test("gets no key and no subject if it is invalid and was written by hand", async () => {
    const js = jetstream(connection);
    const entry = (id: string, key: string): string =>
      JSON.stringify({ id, name: id, keys: [key], enabled: true });
    const at = (id: string): string => `$KV.${bucketName("penstock")}.${id}`;
    for (const [index, id] of hostile.entries()) {
      await js.publish(at(`entry-${index}`), entry(id, `phc_hostile_${index}`));
      if (/^[^\s\0*>.]+(\.[^\s\0*>.]+)*$/.test(id))
        await js.publish(at(id), entry(id, `phc_hostile_${index}`));
    }
    await js.publish(at("__proto__"), entry("__proto__", "phc_proto"));
    await addProject(connection, { prefix: "penstock", replicas: 1, id: "last", key: "phc_last" });
    const codeFor = async (key: string): Promise<unknown> => {
      const { json } = await gateway.post("/capture/", {
        api_key: key,
        event: "e",
        distinct_id: "d",
      });
      return json["code"] ?? json["status"];
    };
    await expect.poll(() => codeFor("phc_last"), soon).toBe("Ok");
    // The entries under possible project names are damaged, so their keys are uncertain.
    for (const index of hostile.keys())
      expect(await codeFor(`phc_hostile_${index}`)).toBe("unavailable");
    expect(await codeFor("phc_proto")).toBe("Ok");
    const bucket = await new Kvm(js).open(bucketName("penstock"));
    for (const index of hostile.keys()) await bucket.delete(`entry-${index}`);
    await expect.poll(() => codeFor("phc_hostile_0"), soon).toBe("unknown_api_key");
    for (const index of hostile.keys())
      expect(await codeFor(`phc_hostile_${index}`)).toBe("unknown_api_key");
    expect(await codeFor("phc_proto")).toBe("Ok");
    const manager = await jetstreamManager(connection);
    const { state } = await manager.streams.info("PENSTOCK_LIVE_0", { subjects_filter: ">" });
    expect(Object.keys(state.subjects ?? {}).sort()).toEqual([
      "penstock.live.0.__proto__",
      "penstock.live.0.last",
    ]);
  });
});
