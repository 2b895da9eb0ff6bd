// Messages arrive but their acknowledgements are lost. The gateway sends every frame again, and
// each frame must be stored once.

import { proxyOf } from "../proxied.ts";
import type { Scenario, ScenarioContext } from "../scenario.ts";

export const acksLost: Scenario = {
  name: "acks-lost",
  title: "network: PubAcks are lost for longer than the ack timeout, messages are not",
  topology: "proxied",
  env: { PENSTOCK_ACK_TIMEOUT_MS: "400" },
  faultMs: { short: 1_500, full: 4_000 },
  mayRefuse: true,
  mustRecover: true,
  async run(context) {
    const proxy = proxyOf(context);
    const before = await retries(context);
    proxy.dropReplies(true);
    await context.hold(context.faultMs);
    proxy.dropReplies(false);
    const sentAgain = (await retries(context)) - before;
    context.note(`${sentAgain} frames sent again`);
    if (sentAgain === 0) throw new Error("lose acks: no frame was sent again");
  },
};

async function retries({ gateway }: ScenarioContext): Promise<number> {
  const metrics = await (await fetch(`${gateway.adminUrl}/metrics`)).text();
  const total = /^penstock_frame_retries_total (\d+)$/m.exec(metrics)?.[1];
  if (total === undefined)
    throw new Error("read metrics: penstock_frame_retries_total is not there");
  return Number(total);
}
