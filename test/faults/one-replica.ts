// Changes the store of a cluster node so that a server without a cluster can read it: the
// description of each stream gets one replica and a new checksum.

import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { highwayHash } from "./highway-hash.ts";

export function makeSingle(storeDir: string): void {
  const streams = path.join(storeDir, "jetstream", "$G", "streams");
  if (!existsSync(streams)) return;
  for (const stream of readdirSync(streams)) {
    const description = path.join(streams, stream, "meta.inf");
    const checksum = path.join(streams, stream, "meta.sum");
    const key = createHash("sha256").update(stream).digest();
    const before = readFileSync(description);
    const said = readFileSync(checksum, "latin1").trim();
    if (highwayHash(key, before).toString("hex") !== said) {
      throw new Error(
        `read the description of ${stream}: its checksum is not the one known of nats-server`,
      );
    }
    const after = Buffer.from(
      before.toString("utf8").replace(/"num_replicas":\d+/, '"num_replicas":1'),
    );
    writeFileSync(description, after);
    writeFileSync(checksum, highwayHash(key, after).toString("hex"));
  }
}
