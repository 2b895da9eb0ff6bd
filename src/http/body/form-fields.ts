// Finds the fields of an application/x-www-form-urlencoded body that mean something: `data`, and
// `compression`, which says how that is packed. It decodes nothing of `data`, and reads a bounded
// number of bytes, but for the search of the end of `data`.

import { type Compression, compressionNamed } from "./codings.ts";
import { percentDecoded } from "./percent-decoded.ts";

export interface FormFields {
  /** The value of `data` stands from here to `dataEnd`, percent-encoded. */
  readonly dataStart: number;
  readonly dataEnd: number;
  readonly compression: Compression | undefined;
  /** There is another `data`, and nobody can tell which one is meant. */
  readonly isDoubled: boolean;
}

/** Other fields may have so many bytes before `data`, and are read so far behind it. */
const OTHERS_BYTES_MAX = 4_096;
const AMPERSAND = 0x26;
const DATA = "data=";

/** Finds the fields of a form with a field `data`; undefined for any other body. */
export function fieldsOf(bytes: Buffer): FormFields | undefined {
  const name = bytes.toString("latin1", 0, DATA.length);
  // A field's name has only these characters, so this tells most bodies that are not forms.
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

/** Returns what stands before `data`, with the `&` at its end, where it is fields of a form. */
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
