/** Returns the rows of a query. 64-bit numbers are strings. Rejects with the server's message. */
export async function askedClickHouse(
  url: string,
  sql: string,
): Promise<Record<string, unknown>[]> {
  const { origin, username, password } = new URL(url);
  const answer = await fetch(`${origin}/?output_format_json_quote_64bit_integers=1`, {
    method: "POST",
    headers: { "x-clickhouse-user": username, "x-clickhouse-key": password },
    body: /^\s*(?:SELECT|SHOW|WITH)\b/i.test(sql) ? `${sql} FORMAT JSON` : sql,
  });
  const text = await answer.text();
  if (!answer.ok) throw new Error(text);
  return text === "" ? [] : (JSON.parse(text) as { data: Record<string, unknown>[] }).data;
}
