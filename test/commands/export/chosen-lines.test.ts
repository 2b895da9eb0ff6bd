import { expect, test } from "vitest";
import { type Choice, ChosenLines } from "../../../src/commands/export/chosen-lines.ts";
import { storedLine } from "../../kit/stored-events.ts";

const all = { project: "shop", from: undefined, to: undefined };
const second = 1_000;

function line(uuid: string, receivedAtMs: number, projectId = "shop", event = "seen"): string {
  return `${storedLine({ uuid, distinctId: "d", receivedAtMs, event }, projectId, "live")}\n`;
}

function chosenLines(subject: string, text: string, choice: Choice) {
  const { bytes, ...rest } = new ChosenLines(choice).choose({ subject, data: Buffer.from(text) });
  return { text: bytes.toString(), ...rest };
}

test("export writes lines as they are stored", () => {
  const text = line("a", 0) + line("b", second);
  expect(chosenLines("penstock.live.0.shop", text, all)).toEqual({
    text,
    events: 2,
    unreadable: 0,
  });
});

test("export writes only the project's lines of a shared message", () => {
  const text = line("a", 0) + line("b", 0, "other") + line("c", 0);
  const chosen = chosenLines("penstock.live.0.~", text, all);
  expect(chosen).toEqual({ text: line("a", 0) + line("c", 0), events: 2, unreadable: 0 });
});

test("export selects by time of receipt, --from inclusive and --to exclusive", () => {
  const text = [0, 1, 2, 3].map((at) => line(`${at}`, at * second)).join("");
  const choice = { ...all, from: "1970-01-01T00:00:01.000Z", to: "1970-01-01T00:00:03.000Z" };
  const chosen = chosenLines("penstock.live.0.shop", text, choice);
  expect(chosen.text).toBe(line("1", second) + line("2", 2 * second));
});

test("export does not mistake text in an event name for a field", () => {
  const event = 'received_at":"2099-01-01T00:00:00.000Z","project_id":"shop';
  const text = line("a", 0, "other", event);
  expect(chosenLines("penstock.live.0.~", text, all).events).toBe(0);
  const later = { ...all, from: "2000-01-01T00:00:00.000Z" };
  expect(chosenLines("penstock.live.0.shop", line("a", 0, "shop", event), later).events).toBe(0);
});

test("export counts a line that is not a record", () => {
  const text = `no JSON\n${line("a", 0)}{"uuid":\n`;
  const chosen = chosenLines("penstock.live.0.shop", text, all);
  expect(chosen).toEqual({ text: line("a", 0), events: 1, unreadable: 2 });
});
