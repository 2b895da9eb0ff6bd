// Finds the fields of an application/x-www-form-urlencoded body that mean something: `data`, and
// `compression`, which says how `data` is packed. It decodes nothing of `data`, and reads a bounded
// number of bytes, apart from the search for the end of `data`.

import { percentDecoded } from "../http/percent-decoded.ts";
import { type Compression, compressionNamed } from "./codings.ts";

export interface FormFields {
  /** The value of `data` stands from here to `dataEnd`, percent-encoded. */
  readonly dataStart: number;
  readonly dataEnd: number;
  readonly compression: Compression | undefined;
  /** The form has a second field `data`, and nobody can tell which one is meant. */
  readonly isDoubled: boolean;
}

/**
 * The fields before `data` may have so many bytes together. Behind `data`, as many bytes are
 * searched for fields.
 */
const OTHERS_BYTES_MAX = 4_096;
const AMPERSAND = 0x26;
const DATA = "data=";

/** Finds the fields of a form with a field `data`; undefined for any other body. */
export function fieldsOf(bytes: Buffer): FormFields | undefined {
  const name = bytes.toString("latin1", 0, DATA.length);
  // A form begins with only these characters, so most bodies that are no forms are told apart here.
  if (!/^[\w.$%&=-]+$/.test(name)) return undefined;
  const before = name === DATA ? "" : othersBefore(bytes);
  if (before === undefined) return undefined;
  const dataStart = before.length + DATA.length;
  const ampersand = bytes.indexOf(AMPERSAND, dataStart);
  const dataEnd = ampersand < 0 ? bytes.length : ampersand;
  const behind = bytes.toString(
    "latin1",
    dataEnd,
    Math.min(bytes.length, dataEnd + OTHERS_BYTES_MAX),
  );
  return {
    dataStart,
    dataEnd,
    compression: compressionIn(`&${before}`) ?? compressionIn(behind),
    isDoubled: behind.includes(`&${DATA}`),
  };
}

/**
 * Returns the fields before `data`, with the `&` behind them; undefined where what stands there is
 * not a list of fields.
 */
function othersBefore(bytes: Buffer): string | undefined {
  const text = bytes.toString("latin1", 0, Math.min(bytes.length, OTHERS_BYTES_MAX));
  const at = text.indexOf(`&${DATA}`);
  if (at < 0) return undefined;
  const before = text.slice(0, at + 1);
  return /^(?:[^=&{}"\s]+(?:=[^&{}"\s]*)?&)+$/.test(before) ? before : undefined;
}

function compressionIn(fields: string): Compression | undefined {
  const [, value] = /&compression=([^&]{1,40})/.exec(fields) ?? [];
  return value === undefined ? undefined : compressionNamed(percentDecoded(value));
}
