// What a program gives to `consume`, looked at before anything is begun: programs without types can
// give anything, and what is misspelt would be as if it were not there.

import { isProjectId } from "../base/forms.ts";
import { lanes as allLanes } from "../nats/names.ts";
import { ConsumeError } from "./consume-error.ts";
import type { ConsumeOptions } from "./types.ts";

const names: Readonly<Record<keyof ConsumeOptions, true>> = {
  nats: true,
  durable: true,
  prefix: true,
  projects: true,
  lanes: true,
  maxAckPending: true,
  maxBytes: true,
  ackWaitMs: true,
  processingTimeoutMs: true,
  deduplication: true,
  onNotice: true,
};

/** Throws a ConsumeError that says what is wrong. */
export function checkedOptions(options: ConsumeOptions): ConsumeOptions {
  const { durable, nats, projects, lanes, maxAckPending = 1, ackWaitMs = 1_000 } = options;
  const wrong = (what: string): never => {
    throw new ConsumeError(`consume: ${what}`);
  };
  const unknown = Object.keys(options).find((name) => !Object.hasOwn(names, name));
  if (unknown !== undefined) wrong(`there is no option ${unknown}`);
  if (nats === undefined) wrong("nats says how NATS is reached");
  if (!/^[A-Za-z0-9_-]{1,128}$/.test(durable ?? "")) wrong("durable matches [A-Za-z0-9_-]{1,128}");
  if (projects !== undefined && !isListOf(projects, isProjectId))
    wrong("projects is an array of ids, at least one");
  if (lanes !== undefined && !isListOf(lanes, (one) => allLanes.includes(one)))
    wrong(`lanes is an array of ${allLanes.join(" and ")}, at least one`);
  if (!(Number.isInteger(maxAckPending) && maxAckPending > 0)) wrong("maxAckPending is a number");
  if (!(ackWaitMs >= 1_000)) wrong("ackWaitMs is at least 1,000");
  return options;
}

function isListOf<Item>(list: readonly Item[], isOne: (item: Item) => boolean): boolean {
  return Array.isArray(list) && list.length > 0 && list.every(isOne);
}
