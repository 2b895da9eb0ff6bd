// The PROXY protocol needs the connection addon: without it the gateway does not start, with the
// cause, and does not wait for NATS to say so. Where nothing needs the addon, it starts and waits.

import { afterAll, describe, expect, test, vi } from "vitest";
import { createLog } from "../../src/platform/base/log.ts";
import { readConfig } from "../../src/platform/settings/read-config.ts";

const cause = new Error("not built");

vi.mock("../../src/gateway/http/client/connection-id.ts", () => ({
  loadConnectionAddon: () => {
    throw cause;
  },
}));

// Another file of this process may have loaded the gateway with the addon, and another may yet.
vi.resetModules();
const { startGateway } = await import("../../src/app/gateway.ts");
afterAll(() => vi.resetModules());

/** There is no NATS at that port. */
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

describe("what cannot start says so before it waits", () => {
  test("with the PROXY protocol", async () => {
    const starting = start({
      PENSTOCK_TRUSTED_PROXIES: "10.0.0.0/8",
      PENSTOCK_PROXY_PROTOCOL: "true",
    });
    await expect(starting).rejects.toThrow("PENSTOCK_PROXY_PROTOCOL: needs the connection addon");
    await expect(starting).rejects.toHaveProperty("cause", cause);
  });

  test("without it", async () => {
    await expect(start({}, AbortSignal.timeout(300))).rejects.toHaveProperty("name", "AbortError");
  });
});
