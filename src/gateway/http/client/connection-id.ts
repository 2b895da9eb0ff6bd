import { loadNativeModule } from "../../../platform/base/native-module.ts";

/**
 * Returns a number that is different for each open connection of the process. Returns 0 if the
 * object belongs to no connection. The numbers of closed connections are reused.
 */
export type ConnectionId = (response: object) => number;

export interface ConnectionAddon {
  readonly connectionId: ConnectionId;
  readonly sendContinue: (response: object, isTls: boolean) => boolean;
  readonly readSendQueue: (response: object, queue: Float64Array) => boolean;
  readonly resetOnClose: (response: object) => boolean;
  readonly keepOpen: (response: object, seconds: number) => boolean;
  readonly limitSends: (listenSocket: object, bytes: number, ms: number) => boolean;
}

const addonFiles = [
  "../addon/build/Release/connection_id.node",
  "../../../../src/gateway/http/addon/build/Release/connection_id.node",
].map((file) => new URL(file, import.meta.url));

export function loadConnectionAddon(): ConnectionAddon {
  return loadNativeModule("connection addon", addonFiles) as ConnectionAddon;
}
