// The kinds of network that this host supports. Unsupported kinds are reported once per file.

import type { NetworkKind } from "../../faults/cluster-network.ts";
import { whyNoNamespaces } from "../../faults/namespaces.ts";

export function networkKindsHere(): readonly NetworkKind[] {
  const why = whyNoNamespaces();
  if (why === undefined) return ["proxies", "namespaces"];
  process.stderr.write(`NOT RUN: no network namespaces can be made on this host: ${why}\n`);
  return ["proxies"];
}
