// Recognises programs that are not people, by their User-Agent.

import { Buffer } from "node:buffer";
import { isbot } from "isbot";

/** Maximum number of cached results. Clients choose the texts. */
const cachedMax = 1_024;
/** Maximum length of the text that is examined. Browsers' texts have about 120 characters. */
export const agentCharactersMax = 512;

const cached = new Map<string, boolean>();

/** Returns whether the User-Agent names a crawler, a monitor or an HTTP library. */
export function isKnownBot(userAgent: string): boolean {
  if (userAgent === "") return false;
  const agent = userAgent.slice(0, agentCharactersMax);
  const known = cached.get(agent);
  if (known !== undefined) return known;
  const isBot = isbot(agent);
  if (cached.size >= cachedMax) cached.clear();
  // A copy, because a substring would retain the whole header.
  cached.set(Buffer.from(agent).toString(), isBot);
  return isBot;
}
