import { describe, expect, test } from "vitest";
import { loadConnectionAddon } from "../../../src/gateway/http/client/connection-id.ts";
import { HttpServer } from "../../../src/gateway/http/server.ts";
import { Admission } from "../../../src/gateway/intake/admission.ts";
import { startTestServer } from "../../kit/http-server.ts";

function another() {
  return new HttpServer({
    config: {
      bodyBytesMax: 1_024,
      inflatedBytesMax: 1_024,
      requestTimeoutMs: 1_000,
      recordIp: false,
    },
    intake: () => {},
    admission: new Admission(1_024),
    metrics: { requestFinished: () => {}, problemAnswered: () => {}, requestAborted: () => {} },
    log: { error: () => {} },
    clock: { wallMs: () => 0, monotonicMs: () => 0 },
    random: () => 0,
    connection: loadConnectionAddon(),
  });
}

describe("the listener", () => {
  test.each(["127.0.0.1", "0.0.0.0", "::"])("rejects a port in use on %s", async (host) => {
    const { port } = await startTestServer();
    await expect(another().listen(host, port)).rejects.toThrow(
      `cannot listen on ${host} port ${port}: the port is taken`,
    );
  });

  test("does not share a port with another gateway", async () => {
    const first = another();
    const port = await first.listen("127.0.0.1", 0);
    first.close();
    const second = another();
    expect(await second.listen("127.0.0.1", port)).toBe(port);
    await expect(another().listen("127.0.0.1", port)).rejects.toThrow("the port is taken");
    second.close();
  });

  test("rejects an address that the host does not have", async () => {
    await expect(another().listen("192.0.2.1", 0)).rejects.toThrow(
      "this host does not have this address",
    );
  });
});
