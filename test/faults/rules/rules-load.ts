// The load `rules`: requests of one project, whose rules change every second or two.

import { setTimeout as delay } from "node:timers/promises";
import { addProject } from "../../../src/gateway/projects/registry/commands.ts";
import { connectReader } from "../connect-reader.ts";
import { keyOf } from "../event-kinds.ts";
import { known } from "../known-project.ts";
import type { Random } from "../random.ts";
import type { GatewayProcess, Scenario, Store } from "../scenario.ts";
import { RuleChanger } from "./rule-changer.ts";
import { ruledProject } from "./ruled-events.ts";
import { RuledSenders } from "./ruled-senders.ts";
import { RulesLedger, type RulesTotals } from "./rules-ledger.ts";
import { probeEvent, probeId } from "./rules-texts.ts";

interface RulesLoadOptions {
  readonly store: Store;
  readonly gateway: GatewayProcess;
  readonly scenario: Pick<Scenario, "mayRefuse" | "mayLoseConnections">;
  readonly form: "short" | "full";
  readonly random: Random;
}

interface RulesResult {
  readonly totals: RulesTotals;
  readonly faults: readonly string[];
  readonly note: string;
}

const changePauseMs = { short: 400, full: 1_000 };
const requestPauseMs = { short: 60, full: 15 };
const inUseMsMax = 10_000;
const drainMsMax = 10_000;
const pollMs = 50;
/** In this time, the requests must use the last version. */
const afterLastMs = 500;

export class RulesLoad {
  readonly #options: RulesLoadOptions;
  readonly #changer: RuleChanger;
  readonly #senders: RuledSenders;
  readonly #faults: string[] = [];
  #pids: readonly number[] = [];
  #last: { readonly version: number; readonly fromMs: number } | undefined;
  #inUseMs = 0;
  #metrics = "";

  constructor(options: RulesLoadOptions) {
    const { store, gateway, form, random } = options;
    this.#options = options;
    this.#changer = new RuleChanger({ store, random, pauseMs: changePauseMs[form] });
    this.#senders = new RuledSenders({ gateway, pauseMs: requestPauseMs[form] });
  }

  async start(): Promise<void> {
    const { store, gateway } = this.#options;
    const connection = await connectReader(store);
    try {
      const place = { prefix: "penstock", replicas: store.replicas };
      await addProject(connection, { ...place, id: ruledProject, key: keyOf(ruledProject) });
      await this.#changer.start();
    } finally {
      await connection.close();
    }
    await known(gateway, ruledProject);
    await this.#untilAnyVersion();
    this.#pids = pidsOf(gateway);
    this.#senders.start();
  }

  /** Ends the changes in calm: the gateway must use the last version soon. */
  async end(): Promise<void> {
    const version = await this.#changer.stop();
    const startedMs = performance.now();
    while (!(await this.#isFiltered(probeEvent))) {
      if (performance.now() - startedMs > inUseMsMax) {
        this.#faults.push(`rules: version ${version} was not in use after ${inUseMsMax} ms`);
        break;
      }
      await delay(pollMs);
    }
    this.#inUseMs = performance.now() - startedMs;
    if (this.#faults.length === 0) this.#last = { version, fromMs: Date.now() };
    await delay(afterLastMs);
  }

  async stop(): Promise<void> {
    this.#changer.abort();
    await this.#senders.stop();
  }

  /** Waits until the gateway holds no rejected event any more. Call it before the gateway ends. */
  async takeMetrics(): Promise<void> {
    const { adminUrl } = this.#options.gateway;
    const deadline = performance.now() + drainMsMax;
    do {
      this.#metrics = await (await fetch(`${adminUrl}/metrics`)).text();
      if (this.#sumOf("penstock_rejected_held_bytes") === 0) return;
      await delay(pollMs);
    } while (performance.now() < deadline);
  }

  async settle(store: Store): Promise<RulesResult> {
    const { gateway } = this.#options;
    const { versions, secret, applied, rolledBack, failed } = this.#changer;
    const { requests } = this.#senders;
    const isOneProcess = gateway.workers().length === 0;
    const ledger = new RulesLedger({ requests, versions, secret, last: this.#last, isOneProcess });
    await ledger.read(store);
    ledger.settle();
    const { totals } = ledger;
    const faults = [...this.#faults, ...ledger.faults, ...this.#strange(), ...this.#counts(totals)];
    const figures = Object.entries(totals);
    const changes = `${applied} files applied, ${rolledBack} rollbacks, ${failed} changes failed`;
    const note = `rules: ${changes}; ${figures.map(([name, count]) => `${name} ${count}`).join(", ")}; the last version was in use after ${Math.round(this.#inUseMs)} ms`;
    return { totals, faults, note };
  }

  /** The gateway learns of the first version later than of the project. */
  async #untilAnyVersion(): Promise<void> {
    const deadline = performance.now() + inUseMsMax;
    while (!(await this.#isFiltered("never"))) {
      if (performance.now() > deadline) throw new Error("start rules: no version is in use");
      await delay(pollMs);
    }
  }

  async #isFiltered(event: string): Promise<boolean> {
    const item = { event, distinct_id: probeId };
    const response = await fetch(`${this.#options.gateway.url}/batch/`, {
      method: "POST",
      body: JSON.stringify({ api_key: keyOf(ruledProject), batch: [item] }),
    });
    return ((await response.json()) as { filtered?: number }).filtered === 1;
  }

  /** Returns the answers that the scenario does not allow. */
  #strange(): string[] {
    const { mayRefuse, mayLoseConnections = false } = this.#options.scenario;
    const labels = new Set(
      this.#senders.requests.flatMap(({ attempts }) => attempts.map(({ label }) => label)),
    );
    const isAllowed = (label: string): boolean =>
      label === "200" ||
      (mayRefuse && /^(503 |200 in part)/.test(label)) ||
      (mayLoseConnections && /^error (ECONNREFUSED|ECONNRESET|EPIPE|UND_ERR_SOCKET)$/.test(label));
    return [...labels].filter((one) => !isAllowed(one)).map((one) => `rules: an answer ${one}`);
  }

  /** Compares the counts of a gateway that ran from start to end with the ledger. */
  #counts({ dropped, quarantined, notInLane }: RulesTotals): string[] {
    if (pidsOf(this.#options.gateway).join() !== this.#pids.join()) return [];
    const lost = this.#sumOf("penstock_rejected_lost_total{");
    const unknown = this.#senders.requests.flatMap(({ attempts, count }) =>
      attempts.filter(({ verdict }) => verdict === "unknown").map(() => count),
    );
    const mayBeCounted = unknown.reduce((sum, count) => sum + count, 0);
    const probes = this.#last === undefined ? 1 : 2;
    const rows = [
      ["dropped_by_rule", dropped + probes],
      ["quarantined", quarantined],
    ] as const;
    return [
      ...rows.flatMap(([reason, counted]) => {
        const metric = this.#sumOf("penstock_events_total{", `reason="${reason}"`);
        return metric >= counted && metric <= counted + mayBeCounted
          ? []
          : [`rules: the metric has ${metric} events ${reason}, the ledger ${counted}`];
      }),
      ...(notInLane > lost
        ? [`rules: ${notInLane} quarantined events are not stored, and ${lost} counted as lost`]
        : []),
    ];
  }

  #sumOf(name: string, label = ""): number {
    return this.#metrics
      .split("\n")
      .filter((line) => line.startsWith(name) && line.includes(label))
      .reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(" ") + 1)), 0);
  }
}

function pidsOf(gateway: GatewayProcess): readonly number[] {
  return [gateway.pid, ...gateway.workers()];
}
