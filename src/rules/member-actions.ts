// The actions of rules that change the members of an event.

import { Buffer } from "node:buffer";
import { Ascii } from "../platform/base/ascii.ts";
import type { ConstantText } from "../records/found-members.ts";
import { isString } from "../records/item-view.ts";
import { TokenType } from "../records/table.ts";
import { stringBeginning } from "../records/token-beginning.ts";
import type { CompiledRules } from "./compile.ts";
import type { CompiledAction } from "./compiled-rule.ts";
import type { EventMembers } from "./event-members.ts";
import type { ItemChanges } from "./item-edits.ts";
import type { UrlCutter } from "./url-cutter.ts";

type MemberAction = Extract<
  CompiledAction,
  { kind: "keepOnly" | "remove" | "hash" | "set" | "cut" }
>;

export class MemberActions {
  readonly #members: EventMembers;
  readonly #changes: ItemChanges;
  #rules!: CompiledRules;

  constructor(members: EventMembers, changes: ItemChanges) {
    this.#members = members;
    this.#changes = changes;
  }

  begin(rules: CompiledRules): void {
    this.#rules = rules;
  }

  /**
   * Applies an action, or, if observed, only determines its effect. Returns whether it changes a
   * member.
   */
  apply(action: MemberAction, isObserved: boolean): boolean {
    let changes = false;
    switch (action.kind) {
      case "keepOnly":
        return this.#members.keepOnly(action.paths, isObserved);
      case "remove":
        for (const path of action.paths) {
          if (!this.#members.has(path)) continue;
          changes = true;
          if (!isObserved) this.#members.remove(path);
        }
        break;
      case "hash":
        for (const path of action.paths) if (this.#hash(path, isObserved)) changes = true;
        break;
      case "set":
        for (const { path, text } of action.members)
          if (this.set(path, text, isObserved)) changes = true;
        break;
      case "cut":
        for (const { path, bytesMax } of action.members)
          if (this.#cut(path, bytesMax, isObserved)) changes = true;
        break;
    }
    return changes;
  }

  /**
   * Hashes each member of a path, unless a rule has hashed it before. Returns whether one has a value
   * that is hashed.
   */
  #hash(path: number, isObserved: boolean): boolean {
    const members = this.#members;
    let changes = false;
    for (let entry = members.entryOf(path); entry !== 0; entry = members.entryBefore(entry)) {
      const type = members.typeOf(entry);
      if (type < TokenType.Number) continue;
      const isSent = members.isSent(entry);
      // An added value is a scalar.
      if (!isSent && type >= TokenType.Object) continue;
      if (members.isHashed(entry)) continue;
      changes = true;
      if (isObserved) continue;
      if (isSent && type !== TokenType.EscapedString) members.hash(entry);
      else {
        this.#replaceBy(entry, `"${this.#rules.hash.of(this.#textOf(entry))}"`);
        members.noteHash(entry);
      }
    }
    return changes;
  }

  /** Cuts each text of a path after the last character that ends within `bytesMax`. */
  #cut(path: number, bytesMax: number, isObserved: boolean): boolean {
    const members = this.#members;
    let changes = false;
    for (let entry = members.entryOf(path); entry !== 0; entry = members.entryBefore(entry)) {
      const type = members.typeOf(entry);
      if (!isString(type) || members.endOf(entry) - members.startOf(entry) - 2 <= bytesMax)
        continue;
      const isPlainText = type === TokenType.PlainString;
      const text = isPlainText
        ? members.bodyOf(entry)
        : Buffer.from(
            stringBeginning(
              members.bodyOf(entry),
              members.startOf(entry),
              members.endOf(entry),
              escapedBytesMax(bytesMax),
            ),
          );
      const start = isPlainText ? members.startOf(entry) + 1 : 0;
      if (!isPlainText && text.length <= bytesMax) continue;
      changes = true;
      if (isObserved) continue;
      let end = start + bytesMax;
      while (end > start && (text[end]! & 0xc0) === 0x80) end--;
      if (isPlainText) this.#replaceByBytes(entry, text.subarray(start - 1, end + 1));
      else this.#replaceBy(entry, JSON.stringify(text.toString("utf8", start, end)));
    }
    return changes;
  }

  /** Sets each member of a path to a text, or adds it. Returns whether one has another text. */
  set(path: number, text: ConstantText, isObserved: boolean): boolean {
    const members = this.#members;
    const first = members.entryOf(path);
    if (first === 0) {
      if (!isObserved) members.add(path, text);
      return true;
    }
    let changes = false;
    for (let entry = first; entry !== 0; entry = members.entryBefore(entry)) {
      if (this.isText(entry, text)) continue;
      changes = true;
      if (!isObserved) members.replace(entry, text);
    }
    return changes;
  }

  #replaceBy(entry: number, json: string): void {
    const start = this.#changes.addText(json);
    this.#members.replace(entry, { start, end: this.#changes.textsEnd });
  }

  /** Replaces a value by a string without escapes. The first and the last byte become quotes. */
  #replaceByBytes(entry: number, bytes: Buffer): void {
    const changes = this.#changes;
    const start = changes.addBytes(bytes);
    const end = changes.textsEnd;
    changes.texts[end - 1] = Ascii.Quote;
    this.#members.replace(entry, { start, end });
  }

  /** Returns whether the value of an entry is written like a text of the changes. */
  isText(entry: number, { start, end }: ConstantText): boolean {
    const members = this.#members;
    const body = members.bodyOf(entry);
    const from = members.startOf(entry);
    if (members.endOf(entry) - from !== end - start) return false;
    const { texts } = this.#changes;
    for (let at = start; at < end; at++) if (texts[at] !== body[from + at - start]) return false;
    return true;
  }

  /** Returns the text of a string, and any other value as its JSON. */
  #textOf(entry: number): string {
    const members = this.#members;
    const json = members
      .bodyOf(entry)
      .toString("utf8", members.startOf(entry), members.endOf(entry));
    switch (members.typeOf(entry)) {
      case TokenType.PlainString:
      case TokenType.EmptyString:
        return json.slice(1, -1);
      case TokenType.EscapedString:
        return JSON.parse(json) as string;
      default:
        return json;
    }
  }

  /** Cuts the URLs of the event. Returns whether one changes. */
  cutUrls(urls: UrlCutter): boolean {
    const { urlPaths } = this.#rules;
    const members = this.#members;
    let changes = false;
    for (const path of urlPaths)
      for (let entry = members.entryOf(path); entry !== 0; entry = members.entryBefore(entry)) {
        if (!isString(members.typeOf(entry))) continue;
        const [start, end] = [members.startOf(entry), members.endOf(entry)];
        if (!urls.mayCut(members.bodyOf(entry), start, end)) continue;
        const url = this.#textOf(entry);
        const rest = urls.cut(url);
        if (rest === url) continue;
        changes = true;
        this.#replaceBy(entry, JSON.stringify(rest));
      }
    return changes;
  }
}

/** Returns the maximum bytes of a string that has at most `bytes` bytes without its escapes. */
function escapedBytesMax(bytes: number): number {
  // The quotes, and 6 bytes for each byte of the longest escape. One more character shows the rest.
  return 2 + 6 * (bytes + 4);
}
