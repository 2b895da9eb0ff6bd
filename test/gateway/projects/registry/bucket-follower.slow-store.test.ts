import { type NatsConnection, TimeoutError } from "@nats-io/nats-core";
import { describe, expect, onTestFinished, test } from "vitest";
import { addProject } from "../../../../src/gateway/projects/registry/commands.ts";
import { openRegistry } from "../../../../src/gateway/projects/registry/registry.ts";
import { newPlace, registryRig } from "../registry-kit.ts";

const rig = registryRig();
const soon = { timeout: 30_000, interval: 10 };

interface Slowness {
  readonly isAnswered?: () => boolean;
  readonly answered?: () => Promise<void>;
}

interface SlowConnection {
  readonly connection: NatsConnection;
  readonly asked: { info: number; readings: number };
}

function slowConnection({
  isAnswered = () => true,
  answered = async () => {},
}: Slowness): SlowConnection {
  const asked = { info: 0, readings: 0 };
  const request: NatsConnection["request"] = async (subject, ...more) => {
    if (subject.startsWith("$JS.API.CONSUMER.CREATE.")) asked.readings++;
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

describe("the registry bucket on a slow store", () => {
  test("is read from the start again after three unanswered requests in a row", async () => {
    const place = newPlace();
    await addProject(rig.connection, { ...place, id: "first", key: "phc_first" });
    const answers: boolean[] = [];
    let otherwise = true;
    const { connection, asked } = slowConnection({
      isAnswered: () => answers.shift() ?? otherwise,
    });
    const log = { info: () => {}, warn: () => {}, error: () => {} };
    const registry = await openRegistry({ connection, ...place, pollMs: 10, log });
    onTestFinished(() => registry.close());
    expect(asked.readings).toBe(1);

    for (let round = 0; round < 10; round++) answers.push(false, false, true);
    await expect.poll(() => answers.length, soon).toBe(0);
    expect(asked.readings).toBe(1);
    await addProject(rig.connection, { ...place, id: "second", key: "phc_second" });
    await expect.poll(() => registry.byKey("phc_second")?.id, soon).toBe("second");
    expect(asked.readings).toBe(1);

    otherwise = false;
    const before = asked.info;
    // Three queries of the poll, and the queries that open the bucket again.
    await expect.poll(() => asked.info, soon).toBeGreaterThan(before + 4);
    expect(registry.byKey("phc_first")?.id).toBe("first");
    otherwise = true;
    await expect.poll(() => asked.readings, soon).toBe(2);
    await addProject(rig.connection, { ...place, id: "third", key: "phc_third" });
    await expect.poll(() => registry.byKey("phc_third")?.id, soon).toBe("third");
  });

  test("leaves unknown keys uncertain while a request waits for its answer", async () => {
    const place = newPlace();
    await addProject(rig.connection, { ...place, id: "first", key: "phc_first" });
    let gate: Promise<void> | undefined;
    const { connection } = slowConnection({ answered: async () => await gate });
    const log = { info: () => {}, warn: () => {}, error: () => {} };
    const registry = await openRegistry({ connection, ...place, pollMs: 10, log });
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
