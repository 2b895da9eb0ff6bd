import { spawn } from "node:child_process";
import path from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import type { NetworkOfNodes, Place } from "../../faults/cluster-network.ts";
import { createClusterNetwork } from "../../faults/networks.ts";
import { freePort } from "../../kit/free-port.ts";
import { networkKindsHere } from "./network-kinds.ts";

const kinds = networkKindsHere();
const heardMsMax = 30_000;

interface Talker {
  tell(command: string): void;
  said(): readonly string[];
}

async function startTalker(
  { command, innerHost }: Place,
  ports: readonly number[],
): Promise<Talker> {
  const script = path.join(import.meta.dirname, "talker.ts");
  const node = [
    process.execPath,
    "--disable-warning=ExperimentalWarning",
    script,
    innerHost,
    ...ports.map(String),
  ];
  const [program, ...args] = [...command, ...node];
  const child = spawn(program!, args, { stdio: ["pipe", "pipe", "inherit"] });
  onTestFinished(() => void child.kill("SIGKILL"));
  let said = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => (said += text));
  const talker = {
    tell: (line: string) => void child.stdin.write(`${line}\n`),
    said: () => said.split("\n").slice(0, -1),
  };
  await received(talker, "ready");
  for (const port of ports) await received(talker, `listens on ${port}`);
  return talker;
}

async function received(talker: Talker, line: string, times = 1): Promise<void> {
  const count = (): number => talker.said().filter((one) => one === line).length;
  await expect.poll(count, { timeout: heardMsMax, message: line }).toBeGreaterThanOrEqual(times);
}

interface Ends {
  readonly network: NetworkOfNodes;
  readonly nodes: readonly [Talker, Talker, Talker];
  readonly gateway: Talker;
  dial(): void;
}

async function start(kind: (typeof kinds)[number]): Promise<Ends> {
  const routePorts = [await freePort(), await freePort(), await freePort()];
  const network = await createClusterNetwork(kind, routePorts);
  onTestFinished(() => network.close());
  const port = await freePort();
  const nodes = [
    await startTalker(network.placeOf(0), [routePorts[0]!, port]),
    await startTalker(network.placeOf(1), []),
    await startTalker(network.placeOf(2), []),
  ] as const;
  const gateway = await startTalker(network.placeOf("gateway"), []);
  const [url] = await network.openToGateway([port]);
  const dial = (): void => nodes[1].tell(`dial ${network.routeUrl(1, 0)}`);
  dial();
  nodes[2].tell(`dial ${network.routeUrl(2, 0)}`);
  gateway.tell(`dial ${url}`);
  for (const talker of [nodes[1], nodes[2], gateway]) {
    await received(talker, "connected");
    talker.tell("say begun");
  }
  await received(nodes[0], "heard begun", 3);
  return { network, nodes, gateway, dial };
}

describe("the network of the fault scenarios", () => {
  test.each(kinds)(
    "%s: a cut without a reset stops only the given nodes' traffic",
    async (kind) => {
      const { network, nodes, gateway } = await start(kind);
      network.cut(1, 0, "silent");
      nodes[1].tell("say held");
      nodes[0].tell("reply held");
      await received(nodes[2], "heard held");
      nodes[2].tell("say passed");
      gateway.tell("say passed");
      await received(nodes[0], "heard passed", 2);
      expect(nodes[0].said()).not.toContain("heard held");
      expect(nodes[1].said()).not.toContain("heard held");
      // TCP waits before it retransmits; a proxy does not.
      expect(network.heal() > 0).toBe(kind === "namespaces");
      await received(nodes[0], "heard held");
      await received(nodes[1], "heard held");
      expect(nodes[1].said()).not.toContain("ended");
    },
    60_000,
  );

  test.each(kinds)(
    "%s: a one-way cut leaves the other direction open",
    async (kind) => {
      const { network, nodes } = await start(kind);
      network.cut(1, 0, "one-way");
      nodes[1].tell("say held");
      nodes[0].tell("reply passed");
      await received(nodes[1], "heard passed");
      expect(nodes[0].said()).not.toContain("heard held");
      network.heal();
      await received(nodes[0], "heard held");
    },
    60_000,
  );

  test.each(kinds)(
    "%s: a reset closes the connections between the given nodes",
    async (kind) => {
      const { network, nodes, gateway, dial } = await start(kind);
      network.cut(0, 1, "reset");
      await received(nodes[1], "ended");
      dial();
      await received(nodes[1], "ended", 2);
      network.heal();
      dial();
      nodes[1].tell("say again");
      await received(nodes[0], "heard again");
      for (const talker of [nodes[2], gateway]) expect(talker.said()).not.toContain("ended");
    },
    60_000,
  );

  test.each(kinds)(
    "%s: connections that a middlebox has forgotten are closed",
    async (kind) => {
      const { network, nodes, dial } = await start(kind);
      network.cut(0, 1, "silent");
      nodes[1].tell("say held");
      nodes[2].tell("say passed");
      await received(nodes[0], "heard passed");
      expect(network.heal({ lost: true })).toBe(0);
      await received(nodes[1], "ended");
      dial();
      nodes[1].tell("say again");
      await received(nodes[0], "heard again");
      expect(nodes[0].said()).not.toContain("heard held");
      expect(nodes[2].said()).not.toContain("ended");
    },
    60_000,
  );

  test.each(kinds)(
    "%s: nodes that are isolated together can communicate",
    async (kind) => {
      const { network, nodes, gateway } = await start(kind);
      network.isolate([0, "gateway"], "silent");
      for (const node of [nodes[1], nodes[2]]) node.tell("say held");
      gateway.tell("say passed");
      await received(nodes[0], "heard passed");
      expect(nodes[0].said()).not.toContain("heard held");
      network.isolate([0], "reset");
      for (const talker of [nodes[1], nodes[2], gateway]) await received(talker, "ended");
      network.heal();
    },
    60_000,
  );

  test.each(kinds)(
    "%s: a slow link passes no more than its limit",
    async (kind) => {
      const { network, nodes } = await start(kind);
      const bytes = 400_000;
      network.slow(0, [1, "gateway"], { delayMs: 0, bytesPerSecond: 50_000 });
      network.slow(0, [1, "gateway"], { delayMs: 0, bytesPerSecond: 200_000 });
      const startedMs = performance.now();
      nodes[1].tell(`say ${"x".repeat(bytes)}`);
      nodes[2].tell("say passed");
      await received(nodes[0], "heard passed");
      expect(nodes[0].said()).not.toContain(`heard ${bytes}`);
      await received(nodes[0], `heard ${bytes}`);
      expect(performance.now() - startedMs).toBeGreaterThan(1_500);
      network.heal();
      nodes[1].tell(`say ${"x".repeat(4 * bytes)}`);
      await received(nodes[0], `heard ${4 * bytes}`);
    },
    60_000,
  );
});
