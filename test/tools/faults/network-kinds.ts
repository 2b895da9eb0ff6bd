// The kinds of network that can be made on this host. What cannot is said, once for each file that
// asks.

import type { NetworkKind } from "../../faults/cluster-network.ts";
import { whyNoNamespaces } from "../../faults/namespaces.ts";

export function networkKindsHere(): readonly NetworkKind[] {
  const why = whyNoNamespaces();
  if (why === undefined) return ["proxies", "namespaces"];
  process.stderr.write(`NOT RUN: no network namespaces can be made on this host: ${why}\n`);
  return ["proxies"];
}
