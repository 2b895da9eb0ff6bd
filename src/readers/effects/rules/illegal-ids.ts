// Detects ids that programs send in place of a missing id. Each may be a person but is never merged
// with another person, because all users of a broken program would become one person. The list
// contains PostHog's ids and the texts that other languages and libraries write for "no value".

/**
 * The id that posthog-js sends for visitors for whom it must not store an id. It never identifies a
 * person.
 */
export const cookielessId = "$posthog_cookieless";

const zeros = "00000000-0000-0000-0000-000000000000";

/** The illegal ids in lower case, without surrounding white space and quotes. */
const illegalIds: ReadonlySet<string> = new Set([
  ...["anonymous", "guest", "distinctid", "distinct_id", "id", "not_authenticated", "email"],
  ...["undefined", "true", "false", "null", "none", "nil", "nan", "n/a", "0", "-0", "0.0", "-1"],
  ...["[object object]", "[object null]", "[object undefined]", "[]", "{}", cookielessId],
  ...["(null)", "<null>", "(nil)", "<nil>", "%!s(<nil>)", "(none)", "<none>"],
  ...["(undefined)", "<undefined>", "nullptr", "\\n", "<no value>", "na", "#n/a", "<anonymous>"],
  ...["unknown", "(unknown)", "<unknown>", "(not set)", "--", "-", "?", "0x0", "00000000"],
  ...[zeros, zeros.replaceAll("0", "f")].flatMap((uuid) => [
    ...[uuid, uuid.replaceAll("-", ""), `{${uuid}}`, `(${uuid})`, `urn:uuid:${uuid}`],
  ]),
]);

const quotes = new Set(['"', "'", "`"]);

/**
 * Returns whether the id must not be merged. An id with U+0000 or U+FFFD is also illegal: U+FFFD
 * replaces damaged bytes, so two different damaged ids may have become the same text.
 */
export function isIllegalId(id: string): boolean {
  if (id.includes("\0") || id.includes("\ufffd")) return true;
  let text = id.trim();
  while (isQuoted(text)) text = text.slice(1, -1).trim();
  return text === "" || illegalIds.has(text.toLowerCase());
}

function isQuoted(text: string): boolean {
  return text.length >= 2 && quotes.has(text[0]!) && text.at(-1) === text[0];
}
