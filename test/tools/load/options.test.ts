import { describe, expect, onTestFinished, test, vi } from "vitest";
import { readOptions } from "../../../bench/load/options.ts";

describe("the load test", () => {
  test.each([
    ["another machine", ["--url", "http://192.0.2.1:8000"], "--yes-i-own-this"],
    ["another machine by name", ["--url", "https://capture.example.com"], "--yes-i-own-this"],
    [
      "a name that only begins like loopback",
      ["--url", "http://127.0.0.1.example.com"],
      "--yes-i-own-this",
    ],
    ["a URL without http", ["--url", "localhost:8000"], "Not an http or https address"],
    ["a rate of 0", ["--rate", "0"], "Not a number above 0"],
    ["half a connection", ["--connections", "0.5"], "Not a whole number"],
    ["an event size below the minimum", ["--event-bytes", "10"], "too small"],
    [
      "a duration in which no request is due",
      ["--rate", "1", "--duration", "0.1", "--warm-up", "0"],
      "no request is due",
    ],
    ["two stores", ["--nats-url", "nats://127.0.0.1", "--data-dir", "data"], "give one"],
    ["an unknown flag", ["--speed", "9"], "unknown option"],
    ["an argument", ["fast"], "argument"],
  ])("rejects before it sends anything: %s", (_, args, said) => {
    const printed = vi.spyOn(process.stderr, "write").mockReturnValue(true);
    onTestFinished(() => printed.mockRestore());
    expect(() => readOptions(args)).toThrow(said);
  });
});
