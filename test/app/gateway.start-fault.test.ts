import { afterAll, describe, expect, test, vi } from "vitest";
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

function start(env: Record<string, string>, signal?: AbortSignal) {
  const result = readConfig({ ...nowhere, ...env }, {});
  if (!result.ok) throw new Error(result.faults.join("\n"));
  return startGateway(result.config, { log: createLog("fatal"), ...(signal && { signal }) });
}

describe("a gateway without the connection addon", () => {
  test("exits before it waits for NATS if the PROXY protocol is set", async () => {
    const starting = start({
      PENSTOCK_TRUSTED_PROXIES: "10.0.0.0/8",
      PENSTOCK_PROXY_PROTOCOL: "true",
    });
    await expect(starting).rejects.toThrow("PENSTOCK_PROXY_PROTOCOL: needs the connection addon");
    await expect(starting).rejects.toHaveProperty("cause", cause);
  });

  test("starts and waits for NATS if no setting needs the addon", async () => {
    await expect(start({}, AbortSignal.timeout(300))).rejects.toHaveProperty("name", "AbortError");
  });
});
