import type { ScenarioContext, TcpProxy } from "./scenario.ts";

export function proxyOf({ store }: ScenarioContext): TcpProxy {
  if (store.proxy === undefined) throw new Error("run a network scenario: the store has no proxy");
  return store.proxy;
}
