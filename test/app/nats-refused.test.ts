import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { natsServerForFile } from "../kit/for-file.ts";
import { ended, penstockWith, temporaryFolder } from "../kit/processes.ts";

const server = await natsServerForFile({ token: "right" });

test.each([
  ["serve"],
  ["serve", "--workers", "2"],
  ["effects"],
  ["sink", "parquet"],
  ["project", "list"],
  ["tail"],
  ["export", "shop"],
])("penstock %s %s %s fails if NATS rejects the token", async (...args) => {
  const dataDir = temporaryFolder();
  const target = args[0] === "sink" ? [path.join(dataDir, "files")] : [];
  const started = penstockWith(
    {
      PENSTOCK_NATS_URL: server.url,
      PENSTOCK_NATS_TOKEN: "wrong",
      PENSTOCK_DATA_DIR: dataDir,
      PENSTOCK_PORT: "0",
      PENSTOCK_ADMIN_PORT: "0",
      PENSTOCK_SINK_PORT: "0",
    },
    ...args,
    ...target,
  );
  onTestFinished(() => void started.kill("SIGKILL"));
  expect(await ended(started)).toBe(1);
  const lines = started.said.err
    .trim()
    .split("\n")
    .filter((line) => !line.includes('"level":30'));
  expect(lines).toEqual([
    `penstock: cannot connect to NATS at 127.0.0.1:${server.port}: the server rejects the token (Authorization Violation). Fix: correct PENSTOCK_NATS_TOKEN`,
  ]);
});
