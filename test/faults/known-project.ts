import { setTimeout as delay } from "node:timers/promises";
import { keyOf } from "./event-kinds.ts";
import type { GatewayProcess } from "./scenario.ts";

const projectMsMax = 10_000;
const pollMs = 20;

/**
 * Resolves when the gateway knows the project, whose key is `keyOf(project)`. Rejects after 10 s.
 */
export async function known(gateway: GatewayProcess, project: string): Promise<void> {
  const deadline = performance.now() + projectMsMax;
  // Each worker has its own registry, and the kernel chooses the worker that answers. So several
  // answers in a row are required for each worker.
  const body = JSON.stringify({ api_key: keyOf(project), batch: [] });
  for (let answered = 0; answered < Math.max(1, gateway.workers().length * 8); ) {
    const { status } = await fetch(`${gateway.url}/batch/`, {
      method: "POST",
      body,
      headers: { connection: "close" },
    });
    answered = status === 200 ? answered + 1 : 0;
    if (performance.now() > deadline)
      throw new Error(`add project ${project}: still answered with ${status}`);
    if (status !== 200) await delay(pollMs);
  }
}
