import { describe, expect, test } from "vitest";
import { logVersionFaults } from "../../../src/platform/nats/versions.ts";

interface Watched {
  readonly warnings: { version?: string; faults?: readonly string[]; wanted?: string }[];
  reconnectTo(version: string): void;
}

function watched(server: { version: string; cluster?: string }, replicas: number): Watched {
  const warnings: Watched["warnings"] = [];
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

describe("the warning about a nats-server that may lose acknowledged events", () => {
  test("is logged with replicas or in a cluster", () => {
    for (const { warnings } of [
      watched({ version: "2.10.27" }, 3),
      watched({ version: "2.10.27", cluster: "C" }, 1),
    ]) {
      expect(warnings).toHaveLength(1);
      expect(warnings[0]).toMatchObject({
        version: "2.10.27",
        wanted: "2.14.7, or 2.15 and newer",
      });
      expect(warnings[0]?.faults).toContainEqual(expect.stringContaining("(7038, fixed in 2.12)"));
    }
    expect(watched({ version: "2.15.1", cluster: "C" }, 3).warnings).toEqual([]);
  });

  test("is logged for 2.10.21 on a single node, but not for 2.10.27", () => {
    expect(watched({ version: "2.10.27" }, 1).warnings).toEqual([]);
    expect(watched({ version: "2.10.21" }, 1).warnings).toHaveLength(1);
  });

  test("is logged once per version", () => {
    const { warnings, reconnectTo } = watched({ version: "2.15.1", cluster: "C" }, 3);
    reconnectTo("2.12.1");
    reconnectTo("2.15.1");
    reconnectTo("2.12.1");
    expect(warnings.map(({ version }) => version)).toEqual(["2.12.1"]);
  });
});
