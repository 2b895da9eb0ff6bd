// PostHog's cookieless mode, without state. The SDK stores no id on the device. The gateway gives the
// event a hash of the client's address, its browser and the site, with a secret salt of the day. So
// a visitor has one id per day. The values from which the hash is made are not stored.

import { Buffer } from "node:buffer";
import { dayMs, dayOf } from "../platform/base/day.ts";
import { judgeTime } from "../records/event-time.ts";
import {
  eventMembers,
  extraTypes,
  type ItemView,
  isObjectOrNothing,
  typeAt,
} from "../records/item-view.ts";
import { JsonMembers } from "../records/json-members.ts";
import { isEmptyArray } from "../records/property-check.ts";
import {
  Extra,
  ExtraShift,
  extraOf,
  FieldShift,
  MoreShift,
  Row,
  TokenType,
} from "../records/table.ts";
import { type RequestFacts, Verdict } from "../records/verdict.ts";
import type { SaltOf } from "./address.ts";
import { localDayOf, type ZoneLookups } from "./local-days.ts";
import type { PropertyPath } from "./rules-file.ts";
import { sipHash128, sipHashBytes } from "./siphash.ts";

export interface CookielessContext {
  readonly projectId: string;
  /** Returns the registered domain of a host. */
  readonly rootDomainOf: (host: string) => string;
}

/** What the gateway knows about the sender of a request. */
export interface Visitor {
  /** The client's address, or "". */
  readonly address: string;
  /** The User-Agent header, or "". */
  readonly userAgent: string;
  readonly request: RequestFacts;
  readonly zoneLookups: ZoneLookups;
}

/** The members of one event. A path is the number of a name. */
export interface CookielessMembers {
  /** Returns the beginning of a text; "" for any other value. */
  textOf(path: number): string;
  has(path: number): boolean;
  /** Sets a member to a JSON text. */
  set(path: number, text: string): void;
  remove(path: number): void;
}

interface CookielessIds {
  readonly distinctId: string;
  readonly deviceId: string;
  readonly sessionId: string;
}

type CookielessResult =
  | { readonly ids: CookielessIds }
  /** Why the event cannot have an id. */
  | { readonly refusal: string }
  /** The gateway does not have the salt of the day now. */
  | { readonly refusal: undefined };

const flagName = "$cookieless_mode";
/**
 * Time for which a day has a salt, from its start in UTC: from its first moment in UTC+14 to its last
 * one in UTC-12.
 */
export const saltedFromMs = -14 * 3_600_000;
export const saltedToMs = 36 * 3_600_000;
const extraCharactersMax = 100;
/** Maximum bytes of the text of a member that is read. The rest is ignored. */
export const visitorTextBytesMax = 4_096;
/** Events that would make the visitor known beyond the day. */
const refusedEvents: ReadonlySet<string> = new Set([
  "$identify",
  "$create_alias",
  "$merge_dangerously",
]);

/** The members with the values of a visitor that are not stored. */
const visitorNames = [
  "$ip",
  "$initial_ip",
  "$raw_user_agent",
  "$initial_raw_user_agent",
  "$cookieless_extra",
];
/** PostHog removes five of them. */
export const visitorPaths: readonly PropertyPath[] = ["", "$set.", "$set_once."].flatMap((object) =>
  visitorNames.map((name) => object + name),
);
const namesOfPaths = {
  flag: flagName,
  ip: "$ip",
  userAgent: "$raw_user_agent",
  host: "$host",
  url: "$current_url",
  extra: "$cookieless_extra",
  timeZone: "$timezone",
  plainId: "distinct_id",
  distinctId: "$distinct_id",
  deviceId: "$device_id",
  sessionId: "$session_id",
  personProfile: "$process_person_profile",
} as const satisfies Record<string, PropertyPath>;

export class CookielessRule {
  readonly #projectId: string;
  readonly #rootDomainOf: (host: string) => string;
  readonly #saltOf: SaltOf;
  readonly #paths: Readonly<Record<keyof typeof namesOfPaths, number>>;
  readonly #visitorPaths: readonly number[];
  readonly #verdict = new Verdict();
  /** The last hash and its input. Most requests are from one visitor. The salt must be forgotten. */
  #hashed = "";
  #salt: WeakRef<Uint8Array> | undefined = undefined;
  #hashedDay = Number.NaN;
  #startMs = Number.NaN;
  #ids: CookielessIds | undefined = undefined;
  #site = "";
  #rootDomain = "";

  constructor(
    { projectId, rootDomainOf }: CookielessContext,
    saltOf: SaltOf,
    pathOf: (path: PropertyPath) => number,
  ) {
    this.#projectId = projectId;
    this.#rootDomainOf = rootDomainOf;
    this.#saltOf = saltOf;
    const paths = Object.entries(namesOfPaths).map(([key, name]) => [key, pathOf(name)]);
    this.#paths = Object.fromEntries(paths) as Record<keyof typeof namesOfPaths, number>;
    this.#visitorPaths = visitorPaths.map(pathOf);
  }

  get flagPath(): number {
    return this.#paths.flag;
  }

  /** Returns the ids of a cookieless event, which is a plain item. */
  idsOf(
    { item, event }: { readonly item: ItemView; readonly event: string },
    members: CookielessMembers,
    visitor: Visitor,
  ): CookielessResult {
    if (refusedEvents.has(event)) return refused(`${event} has no effect in cookieless mode`);
    const { ip, userAgent, host, url, extra, timeZone } = this.#paths;
    const address = members.textOf(ip) || visitor.address;
    if (address === "") return refused("it has no $ip, and the client's address is not known");
    const agent = members.textOf(userAgent) || visitor.userAgent;
    if (agent === "") return refused("it has no $raw_user_agent, and the request no User-Agent");
    const site = members.textOf(host) || originOf(members.textOf(url));
    if (site === "") return refused("it has no $host, and $current_url has no host");
    const { request } = visitor;
    const verdict = this.#verdict;
    verdict.replaced = "";
    judgeTime(item, request, verdict);
    const { timestampMs } = verdict;
    const isNear = Math.abs(timestampMs - request.receivedAtMs) <= saltedToMs - saltedFromMs;
    const { day, startMs } = localDayOf(
      timestampMs,
      isNear ? members.textOf(timeZone) : "",
      visitor.zoneLookups,
    );
    const sinceDayMs = request.receivedAtMs - day * dayMs;
    if (sinceDayMs < saltedFromMs || sinceDayMs >= saltedToMs)
      return refused(
        `there is no salt for its day, ${dayOf(day * dayMs)}: no time zone is in that day`,
      );
    const salt = this.#saltOf(day);
    if (salt === undefined) return { refusal: undefined };
    const more = members.textOf(extra).slice(0, extraCharactersMax);
    if (this.#site !== site) {
      this.#site = site;
      this.#rootDomain = this.#rootDomainOf(site);
    }
    const text = `${this.#projectId}-${address}-${this.#rootDomain}-${agent}-0-${more}`;
    const isKnown =
      this.#hashed === text && this.#salt?.deref() === salt && this.#hashedDay === day;
    if (!isKnown || this.#startMs !== startMs) {
      this.#ids = idsOfHash(cookielessHash(salt, text), startMs);
      this.#hashed = text;
      this.#salt = new WeakRef(salt);
      this.#hashedDay = day;
      this.#startMs = startMs;
    }
    return { ids: this.#ids! };
  }

  /**
   * Writes the ids into the properties. The event then is no cookieless event any more, so that it
   * keeps its ids if it is sent again.
   */
  setIds(members: CookielessMembers, { distinctId, deviceId, sessionId }: CookielessIds): void {
    const paths = this.#paths;
    if (members.has(paths.plainId)) members.set(paths.plainId, `"${distinctId}"`);
    members.set(paths.distinctId, `"${distinctId}"`);
    members.set(paths.deviceId, `"${deviceId}"`);
    members.set(paths.sessionId, `"${sessionId}"`);
    members.set(paths.personProfile, "false");
    members.remove(paths.flag);
    this.removeVisitor(members);
  }

  /** Removes the values from which the hash is made. */
  removeVisitor(members: CookielessMembers): void {
    for (const path of this.#visitorPaths) members.remove(path);
  }
}

/** Returns PostHog's hash. Of a longer salt, the first 16 bytes are used. */
export function cookielessHash(salt: Uint8Array, text: string): Buffer {
  const hash = sipHash128(salt, Buffer.from(text));
  // PostHog writes the words of the hash in reverse.
  const reversed = Buffer.allocUnsafe(sipHashBytes);
  for (let at = 0; at < sipHashBytes; at += 4)
    hash.copy(reversed, sipHashBytes - 4 - at, at, at + 4);
  return reversed;
}

function idsOfHash(hash: Buffer, startMs: number): CookielessIds {
  const text = hash.toString("base64").replace(/=+$/, "");
  return {
    distinctId: `cookieless_${text}`,
    deviceId: `cookielessd_${text}`,
    sessionId: sessionIdOf(startMs, hash),
  };
}

/** Returns a UUID of version 7 with the first bytes of the hash in place of random bits. */
function sessionIdOf(startMs: number, hash: Buffer): string {
  const bytes = Buffer.alloc(16);
  bytes.writeUIntBE(startMs, 0, 6);
  hash.copy(bytes, 6, 0, 10);
  bytes[6] = 0x70 | (bytes[6]! & 0x0f);
  bytes[8] = 0x80 | (bytes[8]! & 0x3f);
  const hex = bytes.toString("hex");
  const parts = [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20)];
  return [...parts, hex.slice(20)].join("-");
}

function refused(why: string): { readonly refusal: string } {
  return { refusal: `The cookieless event is not stored: ${why}` };
}

/** Returns the beginning of a URL up to the end of its host; "" if it has no host. */
function originOf(url: string): string {
  return /^[a-z][a-z\d+.-]*:\/\/[^/?#\\]+/i.exec(url)?.[0] ?? "";
}

/**
 * Returns whether the item is an object whose parts with members are objects or absent. An array or
 * a string may contain the values of a visitor.
 */
export function hasReadableParts(item: ItemView): boolean {
  const { body, table, row } = item;
  const [fields, more] = [table[row + Row.FieldTypes]!, table[row + Row.MoreTypes]!];
  const [extra, extras] = [extraOf(table, row), extraTypes(item)];
  const isReadable = (type: TokenType, at: number): boolean =>
    isObjectOrNothing(type) ||
    (type === TokenType.Array && isEmptyArray(body, table[at]!, table[at + 1]!));
  return (
    typeAt(more, MoreShift.Item) === TokenType.Object &&
    isReadable(typeAt(fields, FieldShift.Properties), row + Row.PropertiesStart) &&
    isReadable(typeAt(fields, FieldShift.Set), row + Row.SetStart) &&
    isReadable(typeAt(fields, FieldShift.SetOnce), row + Row.SetOnceStart) &&
    isReadable(typeAt(extras, ExtraShift.PropertiesSet), extra + Extra.PropertiesSetStart) &&
    isReadable(
      typeAt(extras, ExtraShift.PropertiesSetOnce),
      extra + Extra.PropertiesSetOnceStart,
    ) &&
    isReadable(typeAt(extras, ExtraShift.Options), extra + Extra.OptionsStart)
  );
}

/** The members of a rejected event that are retained. The properties have the options. */
const retainedMembers: ReadonlySet<string> = new Set(
  eventMembers.filter((name) => name !== "options"),
);

/**
 * Returns the text of a rejected item in normal form. Of a cookieless event, other members than
 * those that the gateway reads are not in it, and of any event those that may be about the visitor
 * of a cookieless event.
 */
export function retainedText({ body, table, row }: ItemView, isCookieless: boolean): Buffer {
  const members = new JsonMembers(body);
  members.begin(body, table[row + Row.ItemStart]!, table[row + Row.ItemEnd]!);
  const texts: string[] = [];
  while (members.next()) {
    const { nameStart, nameEnd, valueEnd } = members;
    const text = body.toString("utf8", nameStart - 1, valueEnd);
    const isHidden = isCookieless || text.includes(flagName);
    if (!isHidden || retainedMembers.has(body.toString("utf8", nameStart, nameEnd)))
      texts.push(text);
  }
  return Buffer.from(`{${texts.join(",")}}`);
}

const flagBytes = Buffer.from(`"${flagName}"`);

/** Finds the plain items of a slice that have the flag, in one pass over their text. */
export class FlagSearch {
  #text: Buffer = Buffer.alloc(0);
  /** The offset of the next flag, from the last item on; Infinity if there is none. */
  #next = -1;

  /** `end`: the end of the last item. */
  begin(body: Buffer, end: number): void {
    this.#text = body.subarray(0, end);
    this.#next = -1;
  }

  /** The items must be given in the order of the text. */
  isIn({ table, row }: ItemView): boolean {
    const start = table[row + Row.ItemStart]!;
    if (this.#next < start) {
      const found = this.#text.indexOf(flagBytes, start);
      this.#next = found === -1 ? Number.POSITIVE_INFINITY : found;
    }
    return this.#next < table[row + Row.ItemEnd]!;
  }
}
