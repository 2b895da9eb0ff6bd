// The connection addon, which provides data of a uWS connection that the library does not expose.

import { loadNativeModule } from "../../../platform/base/native-module.ts";

/**
 * Returns a number that differs between all open connections of the process; 0 if the object
 * belongs to no connection. The numbers of closed connections are reused.
 */
export type ConnectionId = (response: object) => number;

export interface ConnectionAddon {
  readonly connectionId: ConnectionId;
  /**
   * Sends `100 Continue` while the head is being handled. Returns false if that is not possible.
   */
  readonly sendContinue: (response: object, isTls: boolean) => boolean;
  /** Writes the numbers of unacknowledged and acknowledged bytes. Returns false if unknown. */
  readonly readSendQueue: (response: object, queue: Float64Array) => boolean;
  /** Makes the close of an open connection discard unacknowledged data. */
  readonly resetOnClose: (response: object) => boolean;
  /** Postpones the time at which uWS closes an idle connection. */
  readonly keepOpen: (response: object, seconds: number) => boolean;
  /**
   * For connections accepted from now on, limits the bytes that the kernel buffers. Also limits the
   * time for which it buffers them without an acknowledgement.
   */
  readonly limitSends: (listenSocket: object, bytes: number, ms: number) => boolean;
}

const addonFiles = [
  "../addon/build/Release/connection_id.node",
  "../../../../src/gateway/http/addon/build/Release/connection_id.node",
].map((file) => new URL(file, import.meta.url));

/** Loads the addon. Throws if the addon is not built, or is built for another Node. */
export function loadConnectionAddon(): ConnectionAddon {
  return loadNativeModule("connection addon", addonFiles) as ConnectionAddon;
}

export function loadConnectionId(): ConnectionId {
  return loadConnectionAddon().connectionId;
}
