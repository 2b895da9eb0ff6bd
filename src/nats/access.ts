// How a connection to NATS is asked for, by the gateway and by the commands on the side: which
// servers, who we are, and by what certificates. Files are read at every connect, so that what was
// renewed on disk counts from the next reconnect on. Says nothing of how long to wait or how often
// to try.

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
   * One or several, with commas between. One that begins with `tls://` asks for TLS with all of
   * them.
   */
  readonly natsUrl: string;
  readonly natsToken?: string | undefined;
  /** Files. A certificate authority asks for TLS too, as does a certificate of our own. */
  readonly natsCreds?: string | undefined;
  readonly natsCa?: string | undefined;
  readonly natsCert?: string | undefined;
  readonly natsKey?: string | undefined;
}

/**
 * What of the client's options says where to and as whom. Throws when the credentials file cannot
 * be read now.
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

/** Why a connect failed, in words for whoever set it up. */
export function connectFault(error: unknown, access: NatsAccess): string {
  const { message } = error as Error;
  // By TLS 1.3 a server looks at our certificate when we are done already, and the client does not
  // pass on what it said then.
  if (message !== "timeout" || tlsOptionsOf(access) === undefined) return message;
  const shown =
    access.natsCert === undefined ? "a client certificate" : "another client certificate than ours";
  return `timeout: if the server ended it after the TLS handshake, it asks for ${shown}`;
}

/** The urls without what is secret in them, to be shown. */
export function shownUrls(natsUrl: string): string {
  return natsUrl
    .split(",")
    .map((url) => url.trim().replace(/^([a-z]+:\/\/)?.*@/i, "$1"))
    .join(",");
}

/**
 * `host:port` of each, which is all that the client uses of a url, and the first `user:password` or
 * token in them.
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
  // As NATS has it: one word before the @ is a token.
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
 * An authenticator that throws closes the client for good, so a file that is half written leaves
 * the credentials as they were.
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

function tlsOptionsOf({ natsUrl, natsCa, natsCert, natsKey }: NatsAccess): TlsOptions | undefined {
  const isAsked = natsUrl.split(",").some((url) => /^tls:\/\//i.test(url.trim()));
  if (!isAsked && natsCa === undefined && natsCert === undefined) return undefined;
  return {
    ...(natsCa === undefined ? {} : { caFile: natsCa }),
    ...(natsCert === undefined ? {} : { certFile: natsCert }),
    ...(natsKey === undefined ? {} : { keyFile: natsKey }),
    checkServerIdentity: checkServer,
  } as TlsOptions;
}

/**
 * The client gives Node no name to hold the certificate against when a url has an address, and Node
 * then takes "localhost". `this` are the options of the TLS connection; without them the check is
 * Node's own, which then refuses.
 */
function checkServer(
  this: { readonly servername?: string; readonly socket?: Socket } | undefined,
  name: string,
  certificate: PeerCertificate,
): Error | undefined {
  const address = this?.servername === "" ? this.socket?.remoteAddress : undefined;
  return checkServerIdentity(address ?? name, certificate);
}
