// The hash of distinct ids, by which rules sample events. The C++ side (addon/plan_rows.h) has the
// same function. Loading the addon compares both.

import { Buffer } from "node:buffer";

/**
 * Returns a hash of 32 bits over a distinct id in UTF-8. It is the same in all gateways, projects
 * and versions, so that the samples of several rules have the same people.
 */
export function sampleHash(bytes: Buffer, start: number, end: number): number {
  let hash = 0x811c_9dc5;
  for (let at = start; at < end; at++) hash = Math.imul(hash ^ bytes[at]!, 0x0100_0193);
  // FNV-1a alone hardly mixes the last bytes into the high bits. This is the end of MurmurHash3.
  hash = Math.imul(hash ^ (hash >>> 16), 0x85eb_ca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2_ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}

export const SampleHash = {
  /** Maximum bytes of a simple distinct id whose stored text is always the id itself. */
  IdBytesMax: 400,
  /** The hash of a sample. */
  Sample: sampleHash(Buffer.from("user-1"), 0, 6),
} as const;
