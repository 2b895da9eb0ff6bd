import { expect, test } from "vitest";
import { isIllegalId } from "../../../../src/readers/effects/rules/ids.ts";

const zeros = "00000000-0000-0000-0000-000000000000";
const ones = "ffffffff-ffff-ffff-ffff-ffffffffffff";

test.each([
  ...["anonymous", "guest", "distinctid", "distinct_id", "id", "not_authenticated", "email"],
  ...["undefined", "true", "false", "Anonymous", "GUEST", "Distinct_Id", "ID", "TRUE"],
  ...["[object Object]", "NaN", "None", "none", "null", "0", "-0", "nan", "NONE", "Null", "NULL"],
  ...["<nil>", "nil", "Nil", "NIL", "<NIL>", "(null)", "(NULL)", "<null>", "N/A", "n/a", "-1"],
  ...["NA", "#N/A", "<no value>", "nullptr", "\\N", "-", "--", "?", "<anonymous>", "unknown"],
  ...["Unknown", "(none)", "(not set)", "00000000", "0x0", "'0x0'", "<unknown>"],
  ...["%!s(<nil>)", "[]", "{}", "[object Null]", "[object Undefined]"],
  ...[zeros, ones, ones.toUpperCase(), zeros.replaceAll("-", ""), `{${ones}}`, `urn:uuid:${zeros}`],
  ...['"undefined"', "'null'", "'Guest'", '"[object Object]"', "`NaN`", '" 0 "', "''guest''"],
  ...[" nil ", "'<nil>'", `"${zeros}"`, ` ${ones}\n`, `"'N/A'"`, '" -1 "'],
  ...["", " ", "\t\n\u00a0", '""', "' '", " undefined ", "$posthog_cookieless"],
  ...["\0", "a\0b", "a\ufffdb"],
])("the distinct id %j is never merged", (id) => {
  expect(isIllegalId(id)).toBe(true);
});

test.each([
  ...["user-1", "00", "1", "-2", "10", "anonymous2", "ids", "nilsson", "null@example.org"],
  ...["guest@example.org", "'", '"', "'guest", 'guest"', "é", "$posthog_cookieless2"],
  ...["undefined".padEnd(40, "x"), `"${"0".repeat(40)}"`, "00000000-0000-0000-0000-000000000001"],
  ...["ffffffff-ffff-ffff-ffff-fffffffffff0", "(guest)", "<user>", "nan0", "0x1", "000", "a-b"],
])("the distinct id %j may be merged", (id) => {
  expect(isIllegalId(id)).toBe(false);
});
