import type { NatsLink } from "../../src/platform/nats/link.ts";

/**
 * Returns a link that sends a message only if `pass` returns true. `pass` gets the same buffer that
 * the link sends, not a copy.
 */
export function filtered(link: NatsLink, pass: (message: Buffer) => boolean): NatsLink {
  return {
    get connection() {
      return link.connection;
    },
    get connected() {
      return link.connected;
    },
    get messageBytesMax() {
      return link.messageBytesMax;
    },
    send(message) {
      if (pass(message)) link.send(message);
    },
    refusal: (error) => link.refusal(error),
    tryAnotherServer: () => link.tryAnotherServer(),
    onDenied: (listener) => link.onDenied(listener),
    onChange: (listener) => link.onChange(listener),
    close: () => link.close(),
  };
}
