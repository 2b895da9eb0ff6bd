// Loads the connection addon, which knows of a uWS connection what the library does not show. The
// addon is built in src/gateway/http/addon, and is found from src/gateway/http/client and from dist/gateway/http/client.

import { loadNativeModule } from "../../../platform/base/native-module.ts";

/**
 * Returns the number of the connection that a response belongs to: the same for all responses of
 * one open connection, another for every other open connection of the process, and 0 when the
 * object belongs to none, as after its answer. A number comes again once its connection is closed.
 */
export type ConnectionId = (response: object) => number;

export interface ConnectionAddon {
  readonly connectionId: ConnectionId;
  /**
   * Sends `100 Continue` on the connection of a request whose head is being handled. Returns false
   * if it cannot.
   */
  readonly sendContinue: (response: object, isTls: boolean) => boolean;
  /**
   * Writes to `queue` the bytes sent on an open connection that its client has not acknowledged,
   * and, if there are some, those that it has. Returns false if the system does not say.
   */
  readonly readSendQueue: (response: object, queue: Float64Array) => boolean;
  /** Lets the close of an open connection throw away what is not acknowledged. */
  readonly resetOnClose: (response: object) => boolean;
  /** Puts off the time at which uWS closes an open connection on which nothing happens. */
  readonly keepOpen: (response: object, seconds: number) => boolean;
  /**
   * Limits what the kernel holds for each connection accepted from here on, and for how long while
   * its client acknowledges nothing.
   */
  readonly limitSends: (listenSocket: object, bytes: number, ms: number) => boolean;
}

const addonPlaces = [
  "../addon/build/Release/connection_id.node",
  "../../../../src/gateway/http/addon/build/Release/connection_id.node",
].map((place) => new URL(place, import.meta.url));

/** Throws, with the cause, if the addon is not built or is not for this Node. */
export function loadConnectionAddon(): ConnectionAddon {
  return loadNativeModule("connection addon", addonPlaces) as ConnectionAddon;
}

/** Throws as loadConnectionAddon does. */
export function loadConnectionId(): ConnectionId {
  return loadConnectionAddon().connectionId;
}
