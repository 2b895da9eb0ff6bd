// A store that does not answer how far it is says nothing against the watch: reading everything
// anew would only slow it more. After three questions in a row without an answer the watch is made
// anew all the same, once it answers again.

import { type NatsConnection, TimeoutError } from "@nats-io/nats-core";
import { describe, expect, onTestFinished, test } from "vitest";
import { addProject } from "../../../../src/gateway/projects/registry/commands.ts";
import { openRegistry, type Registry } from "../../../../src/gateway/projects/registry/registry.ts";
import { newPlace, registryRig } from "../registry-kit.ts";

const rig = registryRig();
const soon = { timeout: 30_000, interval: 10 };

interface Slowness {
  readonly isAnswered?: () => boolean;
  readonly answered?: () => Promise<void>;
}

interface SlowConnection {
  readonly connection: NatsConnection;
  readonly asked: { info: number; watches: number };
}

/**
 * The rig's connection, on which a question how a stream stands gets no answer where `isAnswered`
 * says so, and else one after `answered`.
 */
function slowConnection({
  isAnswered = () => true,
  answered = async () => {},
}: Slowness): SlowConnection {
  const asked = { info: 0, watches: 0 };
  const request: NatsConnection["request"] = async (subject, ...more) => {
    if (subject.startsWith("$JS.API.CONSUMER.CREATE.")) asked.watches++;
    if (subject.startsWith("$JS.API.STREAM.INFO.")) {
      asked.info++;
      if (!isAnswered()) throw new TimeoutError();
      const answer = await rig.connection.request(subject, ...more);
      await answered();
      return answer;
    }
    return rig.connection.request(subject, ...more);
  };
  const connection = new Proxy(rig.connection, {
    get(target, name) {
      if (name === "request") return request;
      const value: unknown = Reflect.get(target, name);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
  return { connection, asked };
}

describe("a slow store keeps the watch", () => {
  test("two questions in a row without an answer change nothing, three make the watch anew", async () => {
    const place = newPlace();
    await addProject(rig.connection, { ...place, id: "first", key: "phc_first" });
    const answers: boolean[] = [];
    let otherwise = true;
    const { connection, asked } = slowConnection({
      isAnswered: () => answers.shift() ?? otherwise,
    });
    const log = { info: () => {}, warn: () => {}, error: () => {} };
    const registry = await openRegistry({ connection, ...place, checkIntervalMs: 10, log });
    onTestFinished(() => registry.close());
    expect(asked.watches).toBe(1);

    for (let round = 0; round < 10; round++) answers.push(false, false, true);
    await expect.poll(() => answers.length, soon).toBe(0);
    expect(asked.watches).toBe(1);
    await addProject(rig.connection, { ...place, id: "second", key: "phc_second" });
    await expect.poll(() => registry.byKey("phc_second")?.id, soon).toBe("second");
    expect(asked.watches).toBe(1);

    otherwise = false;
    const before = asked.info;
    // Three of the check, and those of opening the bucket again.
    await expect.poll(() => asked.info, soon).toBeGreaterThan(before + 4);
    expect(registry.byKey("phc_first")?.id).toBe("first");
    otherwise = true;
    await expect.poll(() => asked.watches, soon).toBe(2);
    await addProject(rig.connection, { ...place, id: "third", key: "phc_third" });
    await expect.poll(() => registry.byKey("phc_third")?.id, soon).toBe("third");
  });

  test("an answer from before a change that is here already is no loss", async () => {
    const place = newPlace();
    let registry: Registry | undefined;
    let changes = 0;
    const { connection, asked } = slowConnection({
      async answered() {
        if (registry === undefined || changes === 3) return;
        const id = `change${++changes}`;
        await addProject(rig.connection, { ...place, id, key: `phc_${id}` });
        await expect.poll(() => registry?.byKey(`phc_${id}`)?.id, soon).toBe(id);
      },
    });
    registry = await openRegistry({
      connection,
      ...place,
      checkIntervalMs: 10,
      log: { info: () => {}, warn: () => {}, error: () => {} },
    });
    onTestFinished(() => registry?.close());
    await expect.poll(() => changes, soon).toBe(3);
    const before = asked.info;
    await expect.poll(() => asked.info, soon).toBeGreaterThan(before + 3);
    expect(asked.watches).toBe(1);
  });

  test("while a question waits for its answer, an unknown key is in doubt", async () => {
    const place = newPlace();
    await addProject(rig.connection, { ...place, id: "first", key: "phc_first" });
    let gate: Promise<void> | undefined;
    const { connection } = slowConnection({ answered: async () => await gate });
    const log = { info: () => {}, warn: () => {}, error: () => {} };
    const registry = await openRegistry({ connection, ...place, checkIntervalMs: 10, log });
    onTestFinished(() => registry.close());
    await expect.poll(() => registry.refusalOf("phc_other"), soon).toBe(undefined);
    let open = () => {};
    gate = new Promise((resolve) => {
      open = resolve;
    });
    await expect.poll(() => registry.refusalOf("phc_other"), soon).toBeDefined();
    expect(registry.byKey("phc_first")?.id).toBe("first");
    open();
    await expect.poll(() => registry.refusalOf("phc_other"), soon).toBe(undefined);
  });
});
