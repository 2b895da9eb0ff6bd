import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, onTestFinished, test } from "vitest";
import { PortAccess } from "../../src/platform/base/port-access.ts";
import { startTestGateway, until } from "../kit/gateway.ts";
import { runCommand } from "../kit/run-command.ts";
import { effectsHttp, readerOf } from "../readers/effects/http/reader-kit.ts";
import { watch } from "./live-kit.ts";

const [admin, read] = ["an-admin-token-01", "a-read-only-token"];
const tokens = { PENSTOCK_ADMIN_TOKEN: admin, PENSTOCK_READ_TOKEN: read };

interface State {
  readonly showsEvents: boolean;
  readonly effects?: { readonly state: string; readonly reasons: readonly string[] };
}

function bearer(token: string) {
  return { headers: { Authorization: `Bearer ${token}` } };
}

async function gatewayWith(env: Record<string, string>) {
  const gateway = await startTestGateway({ env: { ...tokens, ...env } });
  onTestFinished(() => gateway.stop());
  return gateway;
}

describe("the live page of a port that needs a token", () => {
  test("is served without a token, but its data needs the admin token", async () => {
    const gateway = await gatewayWith({ PENSTOCK_ADMIN_HOST: "0.0.0.0" });
    for (const file of ["/", "/page/page.js"])
      expect((await fetch(gateway.adminUrl + file)).status).toBe(200);
    for (const path of ["/live", "/live/person?project=shop&distinct_id=a", "/live/rejected"]) {
      expect((await fetch(gateway.adminUrl + path)).status).toBe(401);
      const reading = await fetch(gateway.adminUrl + path, bearer(read));
      expect([reading.status, await reading.json()]).toMatchObject([
        403,
        { code: "read_only_token" },
      ]);
    }
    const viewer = await watch(gateway.adminUrl, bearer(admin));
    const project = await gateway.project();
    await gateway.post("/capture/", { api_key: project.key, event: "e", distinct_id: "u" });
    await until(() => viewer.events().length === 1);
    expect(viewer.said<State>("state").at(-1)?.showsEvents).toBe(true);
  });

  test("shows counts to the read-only token if events are hidden", async () => {
    const gateway = await gatewayWith({ PENSTOCK_LIVE_EVENTS: "false" });
    const viewer = await watch(gateway.adminUrl, bearer(read));
    await until(() => viewer.said<State>("state").length > 0);
    expect(viewer.said<State>("state").at(-1)?.showsEvents).toBe(false);
  });

  test("sends no token to a program that listens on the port of the effects", async () => {
    const sent: string[] = [];
    const listener = createServer((request, response) => {
      sent.push(JSON.stringify([request.url, request.headers]));
      response.end('{"status":"alive"}');
    });
    await new Promise<void>((resolve) => listener.listen(0, "127.0.0.1", resolve));
    onTestFinished(() => void listener.close());
    const { port } = listener.address() as AddressInfo;
    const gateway = await gatewayWith({ PENSTOCK_EFFECTS_PORT: String(port) });
    await watch(gateway.adminUrl, bearer(admin));
    const person = `${gateway.adminUrl}/live/person?project=shop&distinct_id=a`;
    expect((await fetch(person, bearer(admin))).status).toBe(200);
    const doctor = await runCommand({ ...tokens, PENSTOCK_NATS_URL: gateway.nats.url }, [
      "doctor",
      "--admin-port",
      String(port),
      "--effects-port",
      String(port),
    ]);
    expect(doctor.out).toContain("effects port");
    for (const path of ["/status", "/projects/shop/persons", "/livez", "/metrics"])
      expect(
        sent.some((one) => one.startsWith(`["${path}`)),
        path,
      ).toBe(true);
    for (const one of sent) for (const token of [admin, read]) expect(one).not.toContain(token);
  });

  test("queries the effects process with the gateway's token", async () => {
    const of = async (token: string) => {
      const access = new PortAccess({ admin: [token], read: [] });
      const effects = new URL(await effectsHttp(readerOf({}), { access }));
      const gateway = await gatewayWith({ PENSTOCK_EFFECTS_PORT: effects.port });
      const viewer = await watch(gateway.adminUrl, bearer(admin));
      const state = () => viewer.said<State>("state").at(-1)?.effects;
      await until(() => state() !== undefined);
      return state();
    };
    expect(await of(admin)).toMatchObject({ state: "applying" });
    expect(await of("another-token-0001")).toMatchObject({
      state: "not responding",
      reasons: [expect.stringContaining("does not accept the token")],
    });
  });
});
