import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { checkAdminPort, checkPublicPort } from "../../../src/commands/doctor/ports.ts";
import { AdminServer } from "../../../src/gateway/admin/server.ts";
import { frontPage } from "../../../src/gateway/http/pages/pages.ts";
import { PortAccess } from "../../../src/platform/base/port-access.ts";
import { silent } from "../../kit/processes.ts";

const mine = {
  nats: "nats://nats-1:4222,nats-2",
  subject_prefix: "penstock",
  data_folder: "/a",
  stream_created: "2026-01-01T00:00:00.000000001Z",
};

async function found(instance: object | undefined) {
  const open = createServer((_, answer) => answer.end(frontPage.body));
  open.listen(0, "127.0.0.1");
  await once(open, "listening");
  onTestFinished(() => void open.close());
  const publicPort = (open.address() as AddressInfo).port;
  const admin = new AdminServer({
    access: new PortAccess({ admin: [], read: [] }),
    metrics: { contentType: "text/plain", text: async () => "" },
    readiness: async () => [],
    publicPort: () => publicPort,
    log: silent,
    monotonicMs: () => performance.now(),
    ...(instance && { instance }),
  });
  const port = await admin.listen("127.0.0.1", 0);
  onTestFinished(() => admin.close());
  const asked = { host: "127.0.0.1", timeoutMs: 1_500 };
  const answered = await checkAdminPort({ ...asked, port }, async () => mine);
  const ofPublic = { ...asked, port: publicPort, isTls: false };
  return { admin: answered.finding, open: await checkPublicPort(ofPublic, answered), ofPublic };
}

test("doctor accepts a gateway that writes the same NATS addresses differently", async () => {
  for (const nats of [mine.nats, "tls://NATS-2:4222", "nats-1,nats-9"]) {
    const { admin, open } = await found({ ...mine, nats, data_folder: "/b", stream_created: null });
    expect([admin.level, open.level]).toEqual(["ok", "ok"]);
  }
});

test("doctor accepts a gateway that reaches the streams by another host name", async () => {
  const { admin, open } = await found({ ...mine, nats: "nats://10.0.0.7:4222", data_folder: "/b" });
  expect([admin.level, open.level]).toEqual(["ok", "ok"]);
});

test("doctor fails if the gateway has different NATS servers or another prefix", async () => {
  for (const other of [
    { ...mine, nats: "nats://127.0.0.1:15000", data_folder: "/b", stream_created: null },
    { ...mine, nats: "nats://127.0.0.1:15000", stream_created: "2026-01-02T00:00:00Z" },
    { ...mine, subject_prefix: "staging" },
    { ...mine, nats: null, data_folder: "/b", stream_created: null },
  ]) {
    for (const { level, found: said } of Object.values(await found(other)).slice(0, 2) as never[]) {
      expect(level).toBe("fail");
      expect(said).toContain("another installation");
      expect(said).toContain(other.subject_prefix);
    }
  }
});

test("doctor warns if the gateway does not report its installation", async () => {
  const { admin, ofPublic } = await found(undefined);
  expect(admin).toMatchObject({ level: "warn", found: expect.stringContaining("does not report") });
  const unknown = { publicPort: undefined, other: undefined, finding: admin };
  expect(await checkPublicPort(ofPublic, unknown)).toMatchObject({
    level: "warn",
    found: expect.stringContaining("it may not be the gateway of these settings"),
  });
});
