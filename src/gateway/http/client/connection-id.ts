// Loads the connection addon, which provides data of a uWS connection that the library does not
// expose. The addon is built in src/gateway/http/addon, and is found from src/gateway/http/client
// and from dist/gateway/http/client.

import { loadNativeModule } from "../../../platform/base/native-module.ts";

/**
 * Returns the number of the connection of a response. The number is the same for all responses of
 * one open connection, and different for every other open connection of the process. Returns 0 if
 * the object belongs to no connection, for example after its answer. A number is reused once its
 * connection is closed.
 */
export type ConnectionId = (response: object) => number;

export interface ConnectionAddon {
  readonly connectionId: ConnectionId;
  /**
   * Sends `100 Continue` on the connection of a request whose head is being handled. Returns false
   * if this is not possible.
   */
  readonly sendContinue: (response: object, isTls: boolean) => boolean;
  /**
   * Writes to `queue` the number of bytes sent on an open connection that its client has not
   * acknowledged. If that number is above 0, also writes the number of acknowledged bytes. Returns
   * false if the system does not report these numbers.
   */
  readonly readSendQueue: (response: object, queue: Float64Array) => boolean;
  /** Sets an open connection to discard unacknowledged data when it closes. */
  readonly resetOnClose: (response: object) => boolean;
  /** Postpones the time at which uWS closes an idle open connection. */
  readonly keepOpen: (response: object, seconds: number) => boolean;
  /**
   * Limits the bytes that the kernel buffers for each connection accepted from now on, and the time
   * for which it buffers them while the client acknowledges nothing.
   */
  readonly limitSends: (listenSocket: object, bytes: number, ms: number) => boolean;
}

const addonPlaces = [
  "../addon/build/Release/connection_id.node",
  "../../../../src/gateway/http/addon/build/Release/connection_id.node",
].map((place) => new URL(place, import.meta.url));

/** Loads the addon. Throws, with the cause, if the addon is not built or is not for this Node. */
export function loadConnectionAddon(): ConnectionAddon {
  return loadNativeModule("connection addon", addonPlaces) as ConnectionAddon;
}

/** Loads the addon's function that identifies connections. Throws like loadConnectionAddon. */
export function loadConnectionId(): ConnectionId {
  return loadConnectionAddon().connectionId;
}
