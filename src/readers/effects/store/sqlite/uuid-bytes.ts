import { Buffer } from "node:buffer";
import type { Table, Value } from "../../../../platform/base/table.ts";

/** Converts any other text to bytes that no row has. */
export function uuidBytes(uuid: string): Uint8Array {
  return Buffer.from(uuid.replaceAll("-", ""), "hex");
}

export function uuidText(bytes: Uint8Array): string {
  const hex = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("hex");
  const [a, b, c, d] = [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20)];
  return `${a}-${b}-${c}-${d}-${hex.slice(20)}`;
}

/** Converts the uuids in a row to text, in place. */
export function uuidTextsOf({ columns, types }: Table): (row: Value[]) => Value[] {
  const isUuid = columns.map((column) => types[column]?.type === "uuid");
  const indices = [...isUuid.keys()].filter((index) => isUuid[index]);
  return (row) => {
    for (const index of indices) {
      const value = row[index];
      if (value instanceof Uint8Array) row[index] = uuidText(value);
    }
    return row;
  };
}
