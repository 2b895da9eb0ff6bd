// What an exchange is made with: what the head of a request says, which is gone once it has been
// handled, and where faults are told.

import type { RouteLabel } from "./exchange.ts";

export interface ExchangeHead {
  readonly label: RouteLabel;
  /** As people who watch may see it. */
  readonly path: string;
  readonly origin: string;
  /** Content-Encoding as sent, "" for none. */
  readonly contentEncoding: string;
  /** Content-Length, or -1 for none. */
  readonly bytesDeclared: number;
  readonly clientAddress: string;
  readonly senderAddress: string;
}
