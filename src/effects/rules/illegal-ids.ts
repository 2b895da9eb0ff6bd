// Ids that cannot be somebody's: what programs send in place of an id that they do not have. They
// may be a person, but they are never merged with one, because all users of a broken program would
// become one person. The list is PostHog's, and what else comes of the same mistakes.

const inAnyCase: ReadonlySet<string> = new Set([
  ...["anonymous", "guest", "distinctid", "distinct_id", "id", "not_authenticated", "email"],
  ...["undefined", "true", "false"],
]);

const inThisCase: ReadonlySet<string> = new Set([
  ...["[object Object]", "NaN", "None", "none", "null", "0"],
]);

/** posthog-js sends it for every visitor while it may not keep an id for them: it is nobody. */
export const cookielessId = "$posthog_cookieless";

/** The longest text that can be one of the ids, in quotes; a longer one is no id of the lists. */
const listedLengthMax = 32;

const quotes = new Set(['"', "'", "`"]);

/**
 * Whether the id is never merged with another. That goes for an id with U+0000, and for one with
 * U+FFFD, which takes the place of all damage: two damaged ids may be one text by accident.
 */
export function isIllegalId(id: string): boolean {
  if (id.includes("\0") || id.includes("\ufffd")) return true;
  const text = id.trim();
  if (text === "") return true;
  if (text.length > listedLengthMax) return false;
  return isListed(text) || (isQuoted(text) && isListedOrBlank(text.slice(1, -1).trim()));
}

function isListedOrBlank(text: string): boolean {
  return text === "" || isListed(text);
}

function isListed(text: string): boolean {
  return inThisCase.has(text) || text === cookielessId || inAnyCase.has(text.toLowerCase());
}

function isQuoted(text: string): boolean {
  return text.length >= 2 && quotes.has(text[0]!) && text.at(-1) === text[0];
}
