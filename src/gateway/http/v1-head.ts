import { codingOf } from "../body/payload-form.ts";
import type { V1Request } from "./port.ts";
import type { HttpRequest } from "./uws.ts";

/** The case does not matter (RFC 9110, section 11.1). */
const bearer = /^bearer +/i;

export function readV1Head(
  request: HttpRequest,
  answerResults: V1Request["answerResults"],
): V1Request {
  const authorization = request.getHeader("authorization");
  // An Authorization of another scheme is meant for a proxy in front.
  const token = bearer.test(authorization) ? authorization.replace(bearer, "").trim() : "";
  return {
    apiKey: token === "" ? request.getHeader("posthog-api-token").trim() : token,
    requestId: request.getHeader("posthog-request-id").trim(),
    attempt: request.getHeader("posthog-attempt").trim(),
    requestTimestamp: request.getHeader("posthog-request-timestamp").trim(),
    sdkInfo: request.getHeader("posthog-sdk-info").trim(),
    answerResults,
  };
}

/** Only one coding, and only codings of HTTP. */
export function isV1Encoding(contentEncoding: string): boolean {
  const coding = codingOf(contentEncoding);
  return coding !== undefined && coding !== "lz64" && coding !== "base64";
}
