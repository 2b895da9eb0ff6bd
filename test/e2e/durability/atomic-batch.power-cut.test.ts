import path from "node:path";
import { connect } from "@nats-io/transport-node";
import { describe, expect, onTestFinished, test } from "vitest";
import { readFrames } from "../../kit/gateway.ts";
import { startNatsServer } from "../../kit/nats-server.ts";
import { type Rig, startRig } from "../../kit/publisher-rig.ts";
import { cutPower, missing, onDisk, type PowerCut } from "./durability-kit.ts";

const projects = Array.from({ length: 60 }, (_, at) => `project-${at}`);
const cutsMax = 4;
const wavesBetween = 3;

class Load {
  readonly acknowledged = new Set<string>();
  waves = 0;
  readonly #rig: Rig;
  #isOver = false;
  readonly #running: Promise<void>;

  constructor(rig: Rig) {
    this.#rig = rig;
    this.#running = this.#run();
  }

  async #run(): Promise<void> {
    for (; !this.#isOver; this.waves++)
      await Promise.all(projects.map((project) => this.#send(project, this.waves)));
  }

  async #send(project: string, wave: number): Promise<void> {
    const id = `${project} ${wave}`;
    const line = JSON.stringify({ properties: { id } });
    const { outcome } = await this.#rig.send("live", line, { project });
    if (outcome === "stored") this.acknowledged.add(id);
  }

  async end(): Promise<void> {
    this.#isOver = true;
    await this.#running;
  }
}

async function idsIn({ storeDir }: PowerCut, { settings }: Rig): Promise<string[]> {
  const server = await startNatsServer({ storeDir });
  const connection = await connect({ servers: server.url });
  try {
    const frames = await readFrames(connection, `${settings.subjectPrefix}.live.*.*`);
    return frames.flatMap(({ events }) => events.map(({ properties }) => String(properties["id"])));
  } finally {
    await connection.close();
    await server.remove();
  }
}

describe("a power cut during atomic batches", () => {
  test("leaves every acknowledged event on disk once", async () => {
    const cache = onDisk();
    const server = await startNatsServer({ storeDir: path.join(cache.folder, "store") });
    onTestFinished(() => server.remove());
    const rig = await startRig(server, { ackTimeoutMs: 20_000 });
    const load = new Load(rig);
    const cuts: [PowerCut, ReadonlySet<string>][] = [];
    while (cuts.length < cutsMax) {
      const until = load.waves + wavesBetween;
      await expect.poll(() => load.waves, { timeout: 20_000, interval: 1 }).toBeGreaterThan(until);
      // The copy takes one turn of the event loop, so no event is acknowledged meanwhile.
      const acknowledged = new Set(load.acknowledged);
      cuts.push([cutPower(server, cache), acknowledged]);
    }
    await load.end();
    expect(rig.heard.batches.filter(([outcome]) => outcome === "stored").length).toBeGreaterThan(
      cutsMax * wavesBetween - 1,
    );
    for (const [cut, acknowledged] of cuts) {
      const ids = await idsIn(cut, rig);
      expect(missing(acknowledged, new Set(ids))).toEqual([]);
      expect(new Set(ids).size).toBe(ids.length);
    }
    await rig.close();
  });
});
