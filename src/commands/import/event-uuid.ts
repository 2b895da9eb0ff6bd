// Deterministic uuids, version 8 of RFC 9562.

import { hash } from "node:crypto";
import { isBlankUuidText, isUuid } from "../../platform/base/forms.ts";

/** The digits that start with the variant of RFC 9562. */
const variants = "89ab";

/**
 * Builds a uuid from the first 32 hexadecimal digits of a hash. Six of its bits are replaced by
 * version and variant.
 */
export function uuidOfHash(hex: string): string {
  const variant = variants[Number.parseInt(hex[17]!, 16) & 0x03]!;
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-${variant}${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}

export function uuidOfSource(parts: readonly unknown[]): string {
  return uuidOfHash(hash("sha256", `penstock import ${JSON.stringify(parts)}`, "hex"));
}

export function isUuidText(value: unknown): value is string {
  return typeof value === "string" && isUuid(value) && !isBlankUuidText(value);
}

/**
 * Returns whether the value is the nil or the max UUID, which some clients send instead of an id.
 */
export function isBlankId(value: unknown): boolean {
  return typeof value === "string" && isUuid(value) && isBlankUuidText(value);
}
