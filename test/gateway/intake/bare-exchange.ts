// What an exchange says of a request of which nothing is known but its body.

import type { Exchange } from "../../../src/gateway/http/port.ts";

export const bareExchange: Omit<Exchange, "deadlineMs" | "answerStored" | "answerProblem"> = {
  receivedAtMs: 0,
  clientAddress: "",
  senderAddress: "",
  querySentAtMs: Number.NaN,
  isEngage: false,
  bytesArrived: 1_000_000_000,
  hint: undefined,
  projectId: "",
  library: "",
  hold: () => true,
  path: "",
  client: "",
};
