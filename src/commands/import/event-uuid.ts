// Creates deterministic uuids (version 8 of RFC 9562) from ids of a source or lines of a file.

import { createHash, type Hash, hash } from "node:crypto";
import { isBlankUuidText, isUuid } from "../../platform/base/forms.ts";

const variants = "89ab";

function uuidOfHash(hex: string): string {
  const variant = variants[Number.parseInt(hex[17]!, 16) & 0x03]!;
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-${variant}${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}

export function uuidOfSource(parts: readonly unknown[]): string {
  return uuidOfHash(hash("sha256", `penstock import ${JSON.stringify(parts)}`, "hex"));
}

/** Returns true if the gateway accepts the value as the uuid of an event. */
export function isUuidText(value: unknown): value is string {
  return typeof value === "string" && isUuid(value) && !isBlankUuidText(value);
}

/** Returns true for the nil UUID and the max UUID. Some clients send them if they have no id. */
export function isBlankId(value: unknown): boolean {
  return typeof value === "string" && isUuid(value) && isBlankUuidText(value);
}

/**
 * Number of bytes that are collected before the hash is updated. A call of the hash takes as long
 * as hashing some hundred bytes.
 */
const stagedBytes = 262_144;
const separator = 0x0a;

/**
 * The running hash of the lines of a file. It identifies the file when an import resumes. It also
 * determines the uuids of lines without a uuid.
 */
export class LineHash {
  readonly #hash: Hash = createHash("sha256");
  readonly #staged = Buffer.allocUnsafe(stagedBytes);
  #length = 0;

  add(line: Buffer): void {
    if (this.#length + line.length + 1 > stagedBytes) this.#flush();
    if (line.length + 1 > stagedBytes) {
      this.#hash.update(line).update("\n");
      return;
    }
    this.#length += line.copy(this.#staged, this.#length);
    this.#staged[this.#length++] = separator;
  }

  uuid(): string {
    return uuidOfHash(this.#digest("hex"));
  }

  fingerprint(): string {
    return this.#digest("base64url");
  }

  #digest(encoding: "hex" | "base64url"): string {
    this.#flush();
    return this.#hash.copy().digest(encoding);
  }

  #flush(): void {
    if (this.#length > 0) this.#hash.update(this.#staged.subarray(0, this.#length));
    this.#length = 0;
  }
}
