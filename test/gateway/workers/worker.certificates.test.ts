import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { request } from "node:https";
import { connect } from "node:tls";
import { describe, expect, test } from "vitest";
import { createAuthority } from "../../kit/certificates.ts";
import { ended } from "../../kit/processes.ts";
import { key, natsWithProject, storedIds, workersOn } from "../../kit/workers.ts";

const expiry = "penstock_tls_certificate_expiry_seconds";
const connections = 16;
const daysMs = 86_400_000;

describe("several workers", () => {
  test("serve the certificate and renew it", async () => {
    const nats = await natsWithProject();
    const authority = await createAuthority();
    const [soon, later] = [5, 50].map(
      (days) => new Date(Math.floor((Date.now() + days * daysMs) / 1_000) * 1_000),
    );
    const first = await authority.server({ name: "first", notAfter: soon! });
    const second = await authority.server({ name: "second", notAfter: later! });
    const tls = ["--tls-cert", first.certFile, "--tls-key", first.keyFile];
    const patience = ["--request-timeout-ms", "30000", "--drain-timeout-ms", "40000"];
    const gateway = await workersOn(nats, "--workers", "2", ...tls, ...patience);
    const { port } = gateway;
    const shown = async () =>
      new Set(
        await Promise.all(Array.from({ length: connections }, () => shownAt(port, authority.ca))),
      );
    const expires = async () => (await gateway.metrics()).get(expiry);
    expect(await expires()).toBe(soon!.getTime() / 1_000);
    expect(await shown()).toEqual(new Set(["first"]));
    expect(await post(port, authority.ca, "before")).toBe(200);

    writeFileSync(first.certFile, second.cert);
    writeFileSync(first.keyFile, second.key);
    // The metric is the minimum of all workers. If it is the new expiry, all workers have the
    // certificate.
    await expect.poll(expires, { timeout: 30_000 }).toBe(later!.getTime() / 1_000);
    expect(await shown()).toEqual(new Set(["second"]));

    nats.freeze();
    const ids = Array.from({ length: connections }, (_, place) => `inflight ${place}`);
    const answers = ids.map((id) => post(port, authority.ca, id));
    const inflight = async () => (await gateway.metrics()).get("penstock_requests_inflight");
    await expect.poll(inflight, { timeout: 30_000 }).toBe(ids.length);
    gateway.process.kill("SIGTERM");
    await expect.poll(async () => (await gateway.readyz())[0], { timeout: 30_000 }).toBe(503);
    nats.thaw();
    expect(new Set(await Promise.all(answers))).toEqual(new Set([200]));
    expect(await ended(gateway.process)).toBe(0);
    expect(await storedIds(nats)).toEqual(new Set(["before", ...ids]));
  });

  test("have no certificate gauge without TLS", async () => {
    const gateway = await workersOn(await natsWithProject(), "--workers", "2");
    expect((await gateway.metrics()).has(expiry)).toBe(false);
  });
});

async function shownAt(port: number, ca: string): Promise<string> {
  const socket = connect({ host: "127.0.0.1", port, ca });
  try {
    await once(socket, "secureConnect");
    return String(socket.getPeerCertificate().subject.CN);
  } finally {
    socket.destroy();
  }
}

function post(port: number, ca: string, id: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const options = {
      host: "127.0.0.1",
      port,
      ca,
      agent: false,
      method: "POST",
      path: "/capture/",
    };
    const sent = request(options, (response) => {
      response.on("error", reject).on("end", () => resolve(response.statusCode ?? 0));
      response.resume();
    });
    sent.on("error", reject).end(JSON.stringify({ api_key: key, event: "hello", distinct_id: id }));
  });
}
