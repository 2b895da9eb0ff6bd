// Loads the addon's one function, which tells a uWS connection from another. The addon is built in
// src/http/addon, and is found from src/http/client and from dist/http/client. No addresses here.

import { loadNativeModule } from "../../base/native-module.ts";

/**
 * Returns the number of the connection that a response belongs to: the same for all responses of
 * one open connection, another for every other open connection of the process, and 0 when the
 * object belongs to none, as after its answer. A number comes again once its connection is closed.
 */
export type ConnectionId = (response: object) => number;

interface Addon {
  readonly connectionId: ConnectionId;
}

const addonPlaces = [
  "../addon/build/Release/connection_id.node",
  "../../../src/http/addon/build/Release/connection_id.node",
].map((place) => new URL(place, import.meta.url));

/** Throws, with the cause, if the addon is not built or is not for this Node. */
export function loadConnectionId(): ConnectionId {
  return (loadNativeModule("connection", addonPlaces) as Addon).connectionId;
}
