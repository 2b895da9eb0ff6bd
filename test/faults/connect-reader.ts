import { connect, type NatsConnection, tokenAuthenticator } from "@nats-io/transport-node";
import type { Store } from "./scenario.ts";

export async function connectReader({ readerUrl, readerToken }: Store): Promise<NatsConnection> {
  return await connect({
    servers: readerUrl.split(","),
    ...(readerToken === undefined ? {} : { authenticator: tokenAuthenticator(readerToken) }),
  });
}
