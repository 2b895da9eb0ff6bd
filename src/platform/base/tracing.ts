// The interface between the gateway and OpenTelemetry. Only sampled requests have a span.

import type { ErrorCode } from "./errors.ts";
import type { Lane } from "./lane.ts";

export interface Tracing {
  begin(head: TracedHead): RequestSpan | undefined;
}

/** The head of a traced request. It must contain neither keys nor event data. */
export interface TracedHead {
  readonly traceparent: string;
  readonly method: string;
  readonly path: string;
  readonly isRoute: boolean;
}

interface TracedDestination {
  readonly projectId: string;
  readonly lane?: Lane | undefined;
}

export interface RequestSpan {
  /** Must be called only if the project is known. */
  counted(accepted: number, dropped: number): void;
  /**
   * Links the span of a message to this request. If `message` is undefined, creates a new span.
   * Returns the span of the message. If the request is not traced, returns `message`.
   */
  publishes(message: MessageSpan | undefined, to: MessageDestination): MessageSpan | undefined;
  answered(status: number, code: ErrorCode | undefined, destination: TracedDestination): void;
  disconnected(destination: TracedDestination): void;
}

interface MessageDestination {
  readonly subject: string;
  readonly stream: { readonly name: string };
}

export interface MessageSpan {
  readonly traceparent: string;
  sequence: number;
  ended(
    outcome: string,
    code: ErrorCode | undefined,
    message: { readonly events: number; readonly length: number },
  ): void;
}
