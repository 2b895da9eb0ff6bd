import { expect, test } from "vitest";
import type { NatsLink } from "../../../src/platform/nats/link.ts";
import { natsServerForFile } from "../../kit/for-file.ts";
import { nextTurn, type Rig, type Settled, startRig, stored } from "../../kit/publisher-rig.ts";

const server = await natsServerForFile();
const projects = Array.from({ length: 40 }, (_, at) => `project-${at}`);
const allStored = projects.map(() => stored);

function sendEach(rig: Rig, ids = projects, withinMs = 10_000): Promise<Settled[]> {
  return Promise.all(
    ids.map((project) => rig.send("live", `line ${project}`, { project, withinMs })),
  );
}

async function startLosable() {
  const listeners: ((connected: boolean) => void)[] = [];
  let connected = true;
  const through = (link: NatsLink): NatsLink => ({
    get connection() {
      return link.connection;
    },
    get connected() {
      return connected;
    },
    get messageBytesMax() {
      return link.messageBytesMax;
    },
    send: (message) => link.send(message),
    refusal: () => undefined,
    tryAnotherServer: () => link.tryAnotherServer(),
    onDenied: (listener) => link.onDenied(listener),
    onChange: (listener) => void listeners.push(listener),
    close: () => link.close(),
  });
  const rig = await startRig(server, { through });
  const change = (isConnected: boolean): void => {
    connected = isConnected;
    for (const listener of listeners) listener(connected);
  };
  return { rig, lose: () => change(false), reconnect: () => change(true) };
}

const refused: Settled = { outcome: "refused", code: "unavailable" };

test("frames that are ready when the connection is lost wait for the reconnect", async () => {
  const { rig, lose, reconnect } = await startLosable();
  const sends = sendEach(rig);
  lose();
  await nextTurn();
  expect(rig.heard.framesSent).toBe(0);
  reconnect();
  expect(await sends).toEqual(allStored);
  await rig.close();
});

test("frames are refused if there is no reconnect by their deadline", async () => {
  const { rig, lose, reconnect } = await startLosable();
  const sends = sendEach(rig, projects, 100);
  lose();
  expect(await sends).toEqual(projects.map(() => refused));
  reconnect();
  await nextTurn();
  expect(rig.heard.framesSent).toBe(0);
  await rig.close();
});

test("a late acknowledgement on a lost connection sends no further frame", async () => {
  const { rig, lose, reconnect } = await startLosable();
  server.freeze();
  const first = sendEach(rig);
  await nextTurn();
  const others = projects.map((project) => `other-${project}`);
  const second = sendEach(rig, others);
  await nextTurn();
  lose();
  server.thaw();
  expect(await first).toEqual(allStored);
  await nextTurn();
  expect(rig.heard.framesSent).toBe(projects.length);
  reconnect();
  expect(await second).toEqual(allStored);
  expect(rig.heard.batches).toEqual([
    ["stored", projects.length],
    ["stored", projects.length],
  ]);
  await rig.close();
});
