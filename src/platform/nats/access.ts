// The options of the connection to NATS. Files are read at every connect, so that a reconnect uses
// renewed files.

import { readFileSync } from "node:fs";
import type { Socket } from "node:net";
import { checkServerIdentity, type PeerCertificate } from "node:tls";
import type { Authenticator, ConnectionOptions, TlsOptions } from "@nats-io/nats-core";
import {
  credsAuthenticator,
  tokenAuthenticator,
  usernamePasswordAuthenticator,
} from "@nats-io/nats-core";

export interface NatsAccess {
  /**
   * The servers, separated by commas. If the URL of one server begins with `tls://`, TLS is
   * required for all servers.
   */
  readonly natsUrl: string;
  readonly natsToken?: string | undefined;
  readonly natsCreds?: string | undefined;
  readonly natsCa?: string | undefined;
  readonly natsCert?: string | undefined;
  readonly natsKey?: string | undefined;
}

export function accessOptions(access: NatsAccess): ConnectionOptions {
  const { places, userInfo } = splitUrls(access.natsUrl);
  const authenticator = authenticatorOf(access, userInfo);
  const tls = tlsOptionsOf(access);
  return {
    servers: places,
    ...(authenticator === undefined ? {} : { authenticator }),
    ...(tls === undefined ? {} : { tls }),
  };
}

/** Returns undefined if this process has no credentials. */
export function signsInBy({
  natsUrl,
  natsToken,
  natsCreds,
}: NatsAccess): { readonly what: string; readonly setting: string } | undefined {
  if (natsCreds !== undefined) return { what: "the credentials", setting: "PENSTOCK_NATS_CREDS" };
  if (natsToken !== undefined) return { what: "the token", setting: "PENSTOCK_NATS_TOKEN" };
  const { userInfo } = splitUrls(natsUrl);
  if (userInfo === undefined) return undefined;
  const what = userInfo.includes(":") ? "the user and password" : "the token";
  return { what: `${what} in the URL`, setting: "PENSTOCK_NATS_URL" };
}

export function tlsSettings({ natsUrl, natsCa, natsCert }: NatsAccess): string {
  return [
    ...(asksForTls(natsUrl) ? ["PENSTOCK_NATS_URL"] : []),
    ...(natsCa === undefined ? [] : ["PENSTOCK_NATS_CA"]),
    ...(natsCert === undefined ? [] : ["PENSTOCK_NATS_CERT"]),
  ].join(", ");
}

export function shownUrls(natsUrl: string): string {
  return natsUrl
    .split(",")
    .map((url) => url.trim().replace(/^([a-z]+:\/\/)?.*@/i, "$1"))
    .join(",");
}

function splitUrls(natsUrl: string): { places: string[]; userInfo: string | undefined } {
  const parts = natsUrl
    .split(",")
    .map((url) => /^(?:[a-z]+:\/\/)?(?:(.*)@)?(.*)$/i.exec(url.trim()) ?? []);
  return {
    places: parts.map((part) => part[2] ?? ""),
    userInfo: parts.find((part) => part[1] !== undefined)?.[1],
  };
}

function authenticatorOf(
  { natsToken, natsCreds }: NatsAccess,
  userInfo: string | undefined,
): Authenticator | undefined {
  if (natsCreds !== undefined) return credsFrom(natsCreds);
  if (natsToken !== undefined) return tokenAuthenticator(natsToken);
  if (userInfo === undefined) return undefined;
  const colon = userInfo.indexOf(":");
  if (colon < 0) return tokenAuthenticator(unescaped(userInfo));
  return usernamePasswordAuthenticator(
    unescaped(userInfo.slice(0, colon)),
    unescaped(userInfo.slice(colon + 1)),
  );
}

function unescaped(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/**
 * Reads the credentials file at each connect. If the file cannot be used, the previous credentials
 * are used. An error here would close the connection permanently.
 */
function credsFrom(file: string): Authenticator {
  const read = (): Authenticator => credsAuthenticator(readFileSync(file));
  let last = read();
  return (nonce) => {
    try {
      const current = read();
      const answer = current(nonce);
      last = current;
      return answer;
    } catch {
      return last(nonce);
    }
  };
}

function asksForTls(natsUrl: string): boolean {
  return natsUrl.split(",").some((url) => /^tls:\/\//i.test(url.trim()));
}

function tlsOptionsOf(access: NatsAccess): TlsOptions | undefined {
  if (tlsSettings(access) === "") return undefined;
  const { natsCa, natsCert, natsKey } = access;
  return {
    ...(natsCa === undefined ? {} : { caFile: natsCa }),
    ...(natsCert === undefined ? {} : { certFile: natsCert }),
    ...(natsKey === undefined ? {} : { keyFile: natsKey }),
    checkServerIdentity: checkServer,
  } as TlsOptions;
}

/**
 * If the URL contains an IP address, Node would compare the certificate with the name "localhost".
 * `this` is the options object of the TLS connection.
 */
function checkServer(
  this: { readonly servername?: string; readonly socket?: Socket } | undefined,
  name: string,
  certificate: PeerCertificate,
): Error | undefined {
  const address = this?.servername === "" ? this.socket?.remoteAddress : undefined;
  return checkServerIdentity(address ?? name, certificate);
}
