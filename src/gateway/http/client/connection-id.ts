// Loads the connection addon, which provides data of a uWS connection that the library does not
// expose. The addon is built in src/gateway/http/addon, and is found from src/gateway/http/client
// and from dist/gateway/http/client.

import { loadNativeModule } from "../../../platform/base/native-module.ts";

/**
 * Returns the number of the connection that a response belongs to: the same for all responses of
 * one open connection, different for every other open connection of the process, and 0 if the
 * object belongs to none, for example after its answer. A number is reused once its connection is
 * closed.
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
   * Writes to `queue` the number of bytes sent on an open connection that its client has not
   * acknowledged and, if there are some, of those that it has. Returns false if the system does not
   * report them.
   */
  readonly readSendQueue: (response: object, queue: Float64Array) => boolean;
  /** Makes the close of an open connection discard unacknowledged data. */
  readonly resetOnClose: (response: object) => boolean;
  /** Postpones the time at which uWS closes an idle open connection. */
  readonly keepOpen: (response: object, seconds: number) => boolean;
  /**
   * Limits what the kernel buffers for each connection accepted from now on, and for how long while
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

/** Throws like loadConnectionAddon. */
export function loadConnectionId(): ConnectionId {
  return loadConnectionAddon().connectionId;
}
