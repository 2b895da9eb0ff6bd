// A gateway that finds a nats-server whose version can lose what was acknowledged says so in its
// log, with what bites: in a cluster all below 2.14.7. On one node 2.10 is supported: what a power
// cut may take there is for doctor to say.

import { describe, expect, test } from "vitest";
import { logVersionFaults } from "../../../src/platform/nats/versions.ts";

interface Told {
  readonly warnings: { version?: string; faults?: readonly string[]; wanted?: string }[];
  reconnectTo(version: string): void;
}

function told(server: { version: string; cluster?: string }, replicas: number): Told {
  const warnings: Told["warnings"] = [];
  let changed = (_: boolean): void => {};
  const connection = { info: server };
  const onChange = (listener: typeof changed): void => {
    changed = listener;
  };
  const link = { connection, onChange };
  logVersionFaults(link as unknown as Parameters<typeof logVersionFaults>[0], replicas, {
    warn: (fields) => void warnings.push(fields),
  });
  const reconnectTo = (version: string): void => {
    connection.info = { ...server, version };
    changed(false);
    changed(true);
  };
  return { warnings, reconnectTo };
}

describe("an old cluster is told in the log", () => {
  test("with replicas, and in a cluster", () => {
    for (const { warnings } of [
      told({ version: "2.10.27" }, 3),
      told({ version: "2.10.27", cluster: "C" }, 1),
    ]) {
      expect(warnings).toHaveLength(1);
      expect(warnings[0]).toMatchObject({
        version: "2.10.27",
        wanted: "2.14.7, or 2.15 and newer",
      });
      expect(warnings[0]?.faults).toContainEqual(expect.stringContaining("(7038, fixed in 2.12)"));
    }
    expect(told({ version: "2.15.1", cluster: "C" }, 3).warnings).toEqual([]);
  });

  test("on one node", () => {
    expect(told({ version: "2.10.27" }, 1).warnings).toEqual([]);
    expect(told({ version: "2.10.21" }, 1).warnings).toHaveLength(1);
  });

  test("of a node of another version that a reconnect leads to, once", () => {
    const { warnings, reconnectTo } = told({ version: "2.15.1", cluster: "C" }, 3);
    reconnectTo("2.12.1");
    reconnectTo("2.15.1");
    reconnectTo("2.12.1");
    expect(warnings.map(({ version }) => version)).toEqual(["2.12.1"]);
  });
});
