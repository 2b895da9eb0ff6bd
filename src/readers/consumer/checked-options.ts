import { isProjectId } from "../../platform/base/forms.ts";
import { lanes as allLanes } from "../../platform/nats/names.ts";
import { ConsumeError, type ConsumeOptions, type DeduplicationOptions } from "./types.ts";

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

const namesOfDeduplication: Readonly<Record<keyof DeduplicationOptions, true>> = {
  maxUuids: true,
  windowMs: true,
};

const waitMsMax = 2_147_483_647;

/** Returns the options. Throws a ConsumeError that names the first invalid option. */
export function checkedOptions(options: ConsumeOptions): ConsumeOptions {
  checkNames(options, names, "unknown option ");
  const { durable, nats, prefix = "penstock", projects, lanes } = options;
  if (nats === undefined)
    wrong("nats must be connection options or a function that returns connection options");
  if (!/^[A-Za-z0-9_-]{1,128}$/.test(durable ?? ""))
    wrong("durable must match [A-Za-z0-9_-]{1,128}");
  if (!/^[a-z][a-z0-9_]{0,31}$/.test(prefix)) wrong("prefix must match [a-z][a-z0-9_]{0,31}");
  if (projects !== undefined && !isListOf(projects, isProjectId))
    wrong("projects must be a non-empty array of project ids");
  if (lanes !== undefined && !isListOf(lanes, (one) => allLanes.includes(one)))
    wrong(`lanes must be a non-empty array of ${allLanes.join(" or ")}`);
  checkCount("maxAckPending", options.maxAckPending, { min: 1 });
  checkCount("maxBytes", options.maxBytes, { min: 1 });
  checkCount("ackWaitMs", options.ackWaitMs, { min: 1_000, max: waitMsMax });
  checkCount("processingTimeoutMs", options.processingTimeoutMs, { min: 1, max: waitMsMax });
  const { deduplication = {}, onNotice } = options;
  checkNames(deduplication, namesOfDeduplication, "unknown option deduplication.");
  checkCount("deduplication.maxUuids", deduplication.maxUuids, { min: 0 });
  checkCount("deduplication.windowMs", deduplication.windowMs, { min: 1 });
  if (onNotice !== undefined && typeof onNotice !== "function")
    wrong("onNotice must be a function");
  return options;
}

function wrong(what: string): never {
  throw new ConsumeError(`consume: ${what}`);
}

function checkNames(given: object, known: Readonly<Record<string, true>>, fault: string): void {
  const unknown = Object.keys(given).find((name) => !Object.hasOwn(known, name));
  if (unknown !== undefined) wrong(`${fault}${unknown}`);
}

function checkCount(
  name: string,
  value: number | undefined,
  { min, max = Number.MAX_SAFE_INTEGER }: { readonly min: number; readonly max?: number },
): void {
  if (value === undefined || (Number.isInteger(value) && value >= min && value <= max)) return;
  wrong(`${name} must be an integer between ${min} and ${max} (got ${String(value)})`);
}

function isListOf<Item>(list: readonly Item[], isOne: (item: Item) => boolean): boolean {
  return Array.isArray(list) && list.length > 0 && list.every(isOne);
}
