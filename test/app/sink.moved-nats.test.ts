import { rmSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { ended, penstock, temporaryFolder } from "../kit/processes.ts";

const start = ["--stream-bytes-max", "8388608", "--port", "0", "--admin-port", "0"];
const within = { timeout: 30_000 };

test("a sink continues when the embedded nats-server has a different address", async () => {
  const dataDir = temporaryFolder();
  const begin = async () => {
    const gateway = penstock("up", "--data-dir", dataDir, ...start);
    await expect.poll(() => gateway.said.out, within).toContain("./penstock tail");
    return gateway;
  };
  const first = await begin();
  const folder = path.join(temporaryFolder(), "warehouse");
  const where = ["--data-dir", dataDir, "--sink-port", "0"];
  const sink = penstock("sink", "parquet", folder, ...where);
  const times = (text: string) => `${sink.said.out}${sink.said.err}`.split(text).length - 1;
  await expect.poll(() => times('"sink writing events"'), within).toBe(1);
  first.kill("SIGTERM");
  expect(await ended(first)).toBe(0);
  rmSync(path.join(dataDir, "nats"), { recursive: true });
  const second = await begin();
  await expect.poll(() => times('"sink writing events"'), within).toBe(2);
  expect(times("nats-server restarted")).toBe(1);
  sink.kill("SIGTERM");
  expect(await ended(sink)).toBe(0);
  second.kill("SIGTERM");
  expect(await ended(second)).toBe(0);
});
