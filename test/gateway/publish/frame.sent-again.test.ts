// The NATS client may send from a frame's memory until the server has answered.

import { afterEach, expect, test, vi } from "vitest";
import { filtered } from "../../kit/filtered-link.ts";
import { natsServerForFile } from "../../kit/for-file.ts";
import { type Rig, startRig, stored } from "../../kit/publisher-rig.ts";

const server = await natsServerForFile();
afterEach(() => server.thaw());

interface Handed {
  readonly message: Buffer;
  readonly text: string;
}

async function startHanding(settings: { atomicBatches: boolean }): Promise<[Rig, Handed[]]> {
  const handed: Handed[] = [];
  const rig = await startRig(server, {
    ackTimeoutMs: 25,
    pingIntervalMs: 10_000,
    settings,
    through: (link) =>
      filtered(link, (message) => handed.push({ message, text: message.toString("latin1") }) > 0),
  });
  return [rig, handed];
}

function withoutSend(text: string): string {
  return text.replace(/(_INBOX\.\w+\.)\d+-/, "$1SEND-");
}

function expectUnchanged(handed: readonly Handed[]): void {
  const changed = handed.filter(
    ({ message, text }) => withoutSend(message.toString("latin1")) !== withoutSend(text),
  );
  expect(changed.map(({ message, text }) => [message.toString("latin1"), text])).toEqual([]);
}

test("a frame of a batch keeps its bytes when it is sent again alone", async () => {
  const [rig, handed] = await startHanding({ atomicBatches: true });
  server.freeze();
  const projects = Array.from({ length: 20 }, (_, at) => `project-${at}`);
  const sends = projects.map((project) => rig.send("live", `line ${project}`, { project }));
  await vi.waitFor(() => expect(rig.heard.retries).toBeGreaterThanOrEqual(20), 5_000);
  expect(handed.filter(({ text }) => text.includes("Nats-Batch-Id"))).toHaveLength(20);
  expectUnchanged(handed);
  server.thaw();
  for (const { outcome } of await Promise.all(sends))
    expect(outcome).toMatch(/^(stored|duplicate)$/);
  await rig.close();
});

test("a frame keeps its bytes when its retry number gets longer", async () => {
  const [rig, handed] = await startHanding({ atomicBatches: false });
  expect(await rig.send("live", "before")).toEqual(stored);
  server.freeze();
  const sent = rig.send("live", "line");
  await vi.waitFor(() => expect(rig.heard.retries).toBeGreaterThanOrEqual(11), 5_000);
  expectUnchanged(handed.slice(1));
  server.thaw();
  expect((await sent).outcome).toMatch(/^(stored|duplicate)$/);
  await rig.close();
});
