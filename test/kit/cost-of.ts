import type {
  MeterRefusal,
  ProjectMeter,
  RequestCost,
  Taken,
} from "../../src/gateway/projects/project.ts";

export function costOf(events: number, bytes: number, expansion = 0): RequestCost {
  return { events, bytes, expansion };
}

export function refusalOf(
  meter: Pick<ProjectMeter, "take">,
  cost: RequestCost,
): MeterRefusal | undefined {
  const taken = meter.take(cost);
  return "waitMs" in taken ? taken : undefined;
}

export function waitMsOf(meter: Pick<ProjectMeter, "take">, cost: RequestCost): number {
  return refusalOf(meter, cost)?.waitMs ?? 0;
}

export function takenOf(meter: Pick<ProjectMeter, "take">, cost: RequestCost): Taken {
  const taken = meter.take(cost);
  if ("waitMs" in taken) throw new Error(`take cost: refused for ${taken.what}`);
  return taken;
}
