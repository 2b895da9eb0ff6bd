import type { Exchange } from "../../../src/gateway/http/port.ts";

export const bareExchange: Omit<Exchange, "deadlineMs" | "answerStored" | "answerProblem"> = {
  receivedAtMs: 0,
  clientAddress: "",
  senderAddress: "",
  querySentAtMs: Number.NaN,
  isEngage: false,
  isReplay: false,
  bytesArrived: 1_000_000_000,
  hint: undefined,
  projectId: "",
  library: "",
  hold: () => true,
  path: "",
  client: "",
};
