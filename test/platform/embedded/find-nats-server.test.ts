import { chmodSync, existsSync, writeFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { findNatsServer } from "../../../src/platform/embedded/find-nats-server.ts";
import { startEmbeddedNats } from "../../../src/platform/embedded/nats-server.ts";
import { binary, silent, temporaryFolder } from "../../kit/processes.ts";

function fakeServer(version: string): string {
  const folder = temporaryFolder();
  const file = path.join(folder, "nats-server");
  writeFileSync(file, `#!/bin/sh\necho "nats-server: v${version}"\n`);
  chmodSync(file, 0o755);
  return folder;
}

describe("the embedded nats-server", () => {
  test("is rejected if it is configured and too old", () => {
    const named = path.join(fakeServer("2.9.10"), "nats-server");
    expect(() => findNatsServer({ named, path: "" })).toThrow(
      /is version 2\.9\.10, but 2\.10 or newer is required/,
    );
  });

  test("is rejected if it is configured and missing", () => {
    expect(() => findNatsServer({ named: "/nowhere/nats-server", path: "" })).toThrow(
      /does not run/,
    );
  });

  test("is the program on PATH only if it is new enough", () => {
    const folder = fakeServer("2.11.3");
    expect(findNatsServer({ named: undefined, path: folder })).toEqual({
      file: path.join(folder, "nats-server"),
      version: "2.11.3",
    });
    const old = fakeServer("2.9.10");
    const found = ((): string => {
      try {
        return findNatsServer({ named: undefined, path: old }).file;
      } catch (error) {
        return (error as Error).message;
      }
    })();
    expect(found).not.toBe(path.join(old, "nats-server"));
  });

  test("does not start if the streams cannot fit on the disk", async () => {
    const dataDir = temporaryFolder();
    const options = { dataDir, binary, streamBytesTotal: 2 ** 60, host: process, log: silent };
    await expect(startEmbeddedNats(options)).rejects.toThrow(
      /free: lower PENSTOCK_STREAM_BYTES_MAX/,
    );
    expect(existsSync(path.join(dataDir, "jetstream"))).toBe(false);
  });

  test("has its own error message in the gateway's error", async () => {
    const dataDir = temporaryFolder();
    const file = path.join(dataDir, "nats-server");
    writeFileSync(file, "#!/bin/sh\necho no such luck >&2\nexit 1\n");
    chmodSync(file, 0o755);
    const options = {
      dataDir,
      binary: { file, version: "0" },
      streamBytesTotal: 1,
      host: process,
      log: silent,
    };
    await expect(startEmbeddedNats(options)).rejects.toThrow(/no such luck/);
  });
});
