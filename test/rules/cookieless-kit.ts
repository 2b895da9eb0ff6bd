// Cookieless events as posthog-js sends them, and rules for them.

import { createHash } from "node:crypto";
import type { CompiledRules } from "../../src/rules/compile.ts";
import { cookielessHash } from "../../src/rules/cookieless.ts";
import { rootDomainOf } from "../../src/rules/root-domain.ts";
import type { Privacy, Rule } from "../../src/rules/rules-file.ts";
import { compiled } from "./compiled-rules.ts";

export const browser =
  "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36";
export const clientAddress = "203.0.113.9";

export const saltOf = (day: number): Uint8Array =>
  createHash("sha256").update(`salt of day ${day}`).digest();

/** Compiles rules with `cookieless: true` for the project `p`. */
export function cookielessRules(
  rules: readonly Omit<Rule, "name">[] = [],
  privacy: Partial<Privacy> = {},
  saltOfDay: (day: number) => Uint8Array | undefined = saltOf,
): CompiledRules {
  return compiled(
    rules,
    { cookieless: true, ...privacy },
    { saltOf: saltOfDay, cookieless: { projectId: "p", rootDomainOf } },
  );
}

/** Returns an event with the members that posthog-js sends with `cookieless_mode: "always"`. */
export function cookielessEvent(properties: object = {}, members: object = {}) {
  return {
    event: "$pageview",
    timestamp: "2026-06-15T11:59:00.000Z",
    properties: {
      token: "key_a",
      distinct_id: "$posthog_cookieless",
      $cookieless_mode: true,
      $device_id: null,
      $session_id: null,
      $window_id: null,
      $raw_user_agent: browser,
      $host: "shop.example.com",
      $current_url: "https://shop.example.com/cart",
      $timezone: "Europe/Berlin",
      $lib: "web",
      ...properties,
    },
    ...members,
  };
}

/** Returns the hash in the ids of a visitor: base64 without padding. */
export function hashFor(day: number, text: string): string {
  return cookielessHash(saltOf(day), text).toString("base64").replace(/=+$/, "");
}
