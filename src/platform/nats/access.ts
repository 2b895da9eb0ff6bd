// How a connection to NATS is made, by the gateway and by the commands on the side: to which
// servers, as whom, and by what certificates. Files are read at every connect, so that a file that
// was renewed on disk counts from the next reconnect on. Says nothing of how long to wait or how
// often to try.

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
   * One url or several, with commas between. If one begins with `tls://`, TLS is asked of all of
   * them.
   */
  readonly natsUrl: string;
  readonly natsToken?: string | undefined;
  /**
   * This and the next three are files. A certificate authority (`natsCa`) asks for TLS too, as does
   * a certificate of our own (`natsCert`).
   */
  readonly natsCreds?: string | undefined;
  readonly natsCa?: string | undefined;
  readonly natsCert?: string | undefined;
  readonly natsKey?: string | undefined;
}

/**
 * The client's options that say which servers to connect to and as whom. Throws when the
 * credentials file cannot be read now.
 */
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

/** How this process signs in, and the setting that says so; undefined without credentials. */
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

/** The settings that ask for TLS; empty if none does. */
export function tlsSettings({ natsUrl, natsCa, natsCert }: NatsAccess): string {
  return [
    ...(asksForTls(natsUrl) ? ["PENSTOCK_NATS_URL"] : []),
    ...(natsCa === undefined ? [] : ["PENSTOCK_NATS_CA"]),
    ...(natsCert === undefined ? [] : ["PENSTOCK_NATS_CERT"]),
  ].join(", ");
}

/** The urls without the user, password or token in them, to be shown. */
export function shownUrls(natsUrl: string): string {
  return natsUrl
    .split(",")
    .map((url) => url.trim().replace(/^([a-z]+:\/\/)?.*@/i, "$1"))
    .join(",");
}

/**
 * The `host:port` of each url, which is all that the client uses of it, and the first
 * `user:password` or token in any of them.
 */
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
  // NATS reads it so too: one word before the @ is a token.
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
 * The client closes for good when its authenticator throws. So while the file cannot be used, as
 * when it is half written, the credentials stay as they were.
 */
function credsFrom(file: string): Authenticator {
  const read = (): Authenticator => {
    const bytes = readFileSync(file);
    return credsAuthenticator(bytes);
  };
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
 * Checks the server's certificate against its address where the url has an address. The client then
 * gives Node no name to check, and Node would take "localhost". `this` are the options of the TLS
 * connection; without them the check is Node's own, which then refuses.
 */
function checkServer(
  this: { readonly servername?: string; readonly socket?: Socket } | undefined,
  name: string,
  certificate: PeerCertificate,
): Error | undefined {
  const address = this?.servername === "" ? this.socket?.remoteAddress : undefined;
  return checkServerIdentity(address ?? name, certificate);
}
