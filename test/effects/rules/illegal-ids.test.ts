// The ids that are never merged, and their like that are.

import { expect, test } from "vitest";
import { isIllegalId } from "../../../src/effects/rules/illegal-ids.ts";

test.each([
  ...["anonymous", "guest", "distinctid", "distinct_id", "id", "not_authenticated", "email"],
  ...["undefined", "true", "false", "Anonymous", "GUEST", "Distinct_Id", "ID", "TRUE"],
  ...["[object Object]", "NaN", "None", "none", "null", "0"],
  ...['"undefined"', "'null'", "'Guest'", '"[object Object]"', "`NaN`", '" 0 "'],
  ...["", " ", "\t\n\u00a0", '""', "' '", " undefined ", "$posthog_cookieless"],
  ...["\0", "a\0b", "a\ufffdb"],
])("%j never merges", (id) => {
  expect(isIllegalId(id)).toBe(true);
});

test.each([
  ...["user-1", "00", "1", "-0", "nan", "NONE", "Null", "[object object]", "anonymous2", "ids"],
  ...["guest@example.org", "'", '"', "'guest", 'guest"', "''guest''", "é", "$posthog_cookieless2"],
  ...["undefined".padEnd(40, "x"), `"${"0".repeat(40)}"`],
])("%j may merge", (id) => {
  expect(isIllegalId(id)).toBe(false);
});
