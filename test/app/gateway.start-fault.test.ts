import { afterAll, expect, test, vi } from "vitest";
import { createLog } from "../../src/platform/base/log.ts";
import { readConfig } from "../../src/platform/settings/read-config.ts";

const cause = new Error("not built");

vi.mock("../../src/gateway/http/client/connection-id.ts", () => ({
  loadConnectionAddon: () => {
    throw cause;
  },
}));

vi.resetModules();
const { startGateway } = await import("../../src/app/gateway.ts");
afterAll(() => vi.resetModules());

/** No NATS server listens at this port. */
const nowhere = {
  PENSTOCK_NATS_URL: "nats://127.0.0.1:1",
  PENSTOCK_ADMIN_PORT: "0",
  PENSTOCK_PORT: "0",
};

test("a gateway without the connection addon exits before it waits for NATS", async () => {
  const result = readConfig(nowhere, {});
  if (!result.ok) throw new Error(result.faults.join("\n"));
  await expect(startGateway(result.config, { log: createLog("fatal") })).rejects.toBe(cause);
});
