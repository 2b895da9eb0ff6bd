// Reads YAML into nodes with positions. Accepts the part of YAML 1.2 that needs no explanation:
// one document of maps, lists and scalars, without anchors, aliases, tags, merge keys and
// directives.

import {
  Composer,
  type CST,
  type ErrorCode,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  Lexer,
  LineCounter,
  type ParsedNode,
  Parser,
  type Scalar as ScalarNode,
  visit,
  type YAMLMap,
} from "yaml";
import { lettersApart, nearest, typosMax } from "../platform/base/near-name.ts";
import { ruleErrorsMax, rulesDepthMax } from "./limits.ts";
import type { Scalar } from "./rules-file.ts";

export interface RuleError {
  /** From 1. */
  readonly line: number;
  /** From 1, in UTF-16 units. */
  readonly column: number;
  readonly message: string;
}

export interface Member {
  readonly name: string;
  readonly key: ParsedNode;
  /** Null if the value is absent, as in `match:`. */
  readonly value: ParsedNode | null;
}

/** Characters that no text file has: C0 except tab, line feed and carriage return, and DEL. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are the characters to reject
const controlCharacters = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f]/;
const shownCharsMax = 60;
/** Number of lexemes that are parsed between two pauses. */
const lexemesAtOnce = 1_000;

const separator = "is a comma, a line break or a quote missing before it?";
/** What to check after an error of the library, whose messages name only the state of its parser. */
const yamlHints: { readonly [Code in ErrorCode]?: string } = {
  BLOCK_AS_IMPLICIT_KEY:
    "indent the members of a map equally, and put a text with a colon in quotes",
  BLOCK_IN_FLOW: separator,
  MISSING_CHAR: "check the indentation, the quotes, and the space after each colon",
  UNEXPECTED_TOKEN: separator,
};

/** Collects errors, and converts nodes to values. Each method returns undefined after an error. */
export class YamlReader {
  readonly #lines = new LineCounter();
  readonly #errors: RuleError[] = [];
  readonly #text: string;
  readonly #isNew: boolean;

  constructor(text: string, isNew: boolean) {
    this.#text = text;
    this.#isNew = isNew;
    for (let start = 0; start !== -1; ) {
      this.#lines.addNewLine(start);
      const end = text.indexOf("\n", start);
      start = end === -1 ? -1 : end + 1;
    }
  }

  /** The errors in the order of the text; at most `ruleErrorsMax`. */
  get errors(): RuleError[] {
    return this.#errors
      .toSorted((one, other) => one.line - other.line || one.column - other.column)
      .slice(0, ruleErrorsMax);
  }

  /**
   * Returns the root node of the document; undefined if the text is not acceptable YAML. Yields when
   * the caller may pause.
   */
  *root(): Generator<void, ParsedNode | undefined> {
    const control = controlCharacters.exec(this.#text);
    if (control !== null) {
      const code = control[0].charCodeAt(0).toString(16).toUpperCase().padStart(4, "0");
      return this.fail(
        control.index,
        `control character U+${code}: a rules file is text in YAML, and this may be a binary file`,
      );
    }
    const tokens = yield* this.#tokens();
    if (tokens === undefined) return undefined;
    const composer = new Composer({
      strict: true,
      stringKeys: true,
      merge: false,
      schema: "core",
      resolveKnownTags: false,
      // The library compares all pairs of keys, which takes long for a large map.
      uniqueKeys: false,
      prettyErrors: false,
      logLevel: "silent",
    });
    const [document, other] = [...composer.compose(tokens, true, this.#text.length)];
    yield;
    if (document === undefined) return undefined;
    const [error] = document.errors;
    // The others are mostly its consequences.
    if (error !== undefined) {
      const hint = yamlHints[error.code];
      return this.fail(
        error.pos[0],
        hint === undefined ? error.message : `${error.message}: ${hint}`,
      );
    }
    if (other !== undefined)
      return this.fail(
        other.range[0],
        "a second document begins here (---): a rules file has one document",
      );
    if (document.directives?.yaml.explicit === true)
      return this.fail(0, "a %YAML directive is not supported: remove it");
    visit(document, {
      Alias: (_, { range }) =>
        void this.fail(range![0], "aliases (*name) are not supported: repeat the value"),
      Value: (_, { range, anchor, tag }) => {
        const offset = range![0];
        if (anchor !== undefined)
          this.fail(offset, `anchors (&${shown(anchor)}) are not supported: remove it`);
        if (tag !== undefined)
          this.fail(offset, `tags (${shownTag(tag)}) are not supported: remove it`);
      },
    });
    if (this.#errors.length > 0) return undefined;
    return (document.contents as ParsedNode | null) ?? undefined;
  }

  /** Lexes the text. Deep nesting would exhaust the stack of the composer, which recurses. */
  *#tokens(): Generator<void, CST.Token[] | undefined> {
    const parser = new Parser();
    const tokens: CST.Token[] = [];
    let lexemes = 0;
    for (const lexeme of new Lexer().lex(this.#text)) {
      for (const token of parser.next(lexeme)) tokens.push(token);
      // The stack has the document, the open maps and lists, and a scalar.
      if (parser.stack.length > rulesDepthMax + 2)
        return this.fail(
          parser.offset,
          `maps and lists are nested more than ${rulesDepthMax} levels deep`,
        );
      if (++lexemes % lexemesAtOnce === 0) yield;
    }
    for (const token of parser.end()) tokens.push(token);
    yield;
    return tokens;
  }

  /** Records an error at a node or at an offset of the text. */
  fail(at: { readonly range?: readonly [number, number, number] } | number, message: string) {
    const offset = typeof at === "number" ? at : (at.range?.[0] ?? 0);
    const { line, col } = this.#lines.linePos(offset);
    this.#errors.push({ line: Math.max(line, 1), column: Math.max(col, 1), message });
    return undefined;
  }

  /**
   * Records an error of a new file. Stored files with it are used: they were applied by a release
   * that accepted them.
   */
  failNew(at: Parameters<YamlReader["fail"]>[0], message: string): void {
    if (this.#isNew) this.fail(at, message);
  }

  /** Returns the members of a map by name. `known` are the allowed names; undefined: all. */
  map(
    node: ParsedNode | null,
    at: { readonly what: string; readonly key: ParsedNode; readonly known?: readonly string[] },
  ): Map<string, Member> | undefined {
    const { what, key, known } = at;
    if (node === null || !isMap(node))
      return this.fail(node ?? key, `${what} must be a map (got ${this.shown(node)})`);
    const members = new Map<string, Member>();
    for (const { key: keyNode, value } of (node as YAMLMap<ParsedNode, ParsedNode | null>).items) {
      const name = String(isScalar(keyNode) ? keyNode.value : "");
      if (name === "<<" && isScalar(keyNode) && keyNode.type === "PLAIN")
        this.fail(keyNode, "merge keys (<<) are not supported: repeat the members");
      else if (members.has(name)) this.fail(keyNode, `${shown(name)} is a duplicate key`);
      else if (known !== undefined && !known.includes(name))
        this.fail(keyNode, `${what} has no member ${shown(name)}${suggestion(name, known)}`);
      else members.set(name, { name, key: keyNode, value });
    }
    return members;
  }

  list(node: ParsedNode | null, what: string, key: ParsedNode): ParsedNode[] | undefined {
    if (node === null || !isSeq(node))
      return this.fail(node ?? key, `${what} must be a list (got ${this.shown(node)})`);
    return node.items as ParsedNode[];
  }

  /** Returns a text. Numbers and booleans are errors, because YAML changes them: 1.10 is 1.1. */
  text({ name, key, value }: Member, charsMax: number): string | undefined {
    if (value === null || !isScalar(value) || typeof value.value !== "string") {
      const hint = isScalar(value) && value.value !== null ? ": put it in quotes" : "";
      return this.fail(value ?? key, `${name} must be a text (got ${this.shown(value)})${hint}`);
    }
    const text = value.value;
    if (text === "") return this.fail(value, `${name} must not be empty`);
    if (text.length > charsMax)
      return this.fail(value, `${name} has ${text.length} characters; the maximum is ${charsMax}`);
    return text;
  }

  boolean({ name, key, value }: Member): boolean | undefined {
    if (value !== null && isScalar(value) && typeof value.value === "boolean") return value.value;
    const is11 = isOldBoolean(value);
    const hint = is11 ? ": YAML 1.2 has only true and false" : "";
    return this.fail(
      value ?? key,
      `${name} must be true or false (got ${this.shown(value)})${hint}`,
    );
  }

  number({ name, key, value }: Member): number | undefined {
    if (value !== null && isScalar(value) && typeof value.value === "number") {
      if (Number.isFinite(value.value)) return value.value;
    }
    return this.fail(value ?? key, `${name} must be a number (got ${this.shown(value)})`);
  }

  scalar({ name, key, value }: Member, charsMax: number): { value: Scalar } | undefined {
    if (value === null)
      return this.fail(key, `${name} has no value: write null, or a value after the colon`);
    if (!isScalar(value))
      return this.fail(
        value,
        `${name} must be a text, a number, true, false or null (got ${this.shown(value)})`,
      );
    const found = value.value as Scalar;
    if (isOldBoolean(value))
      return this.fail(
        value,
        `${name} is ${value.source}, which YAML 1.1 reads as a boolean and YAML 1.2 as a text: write true, false, or "${value.source}" in quotes`,
      );
    if (typeof found === "string" && found.length > charsMax)
      return this.fail(value, `${name} has ${found.length} characters; the maximum is ${charsMax}`);
    if (found === null && value.source === "")
      return this.fail(value, `${name} has no value: write null, or a value after the colon`);
    if (
      typeof found === "number" &&
      !(Number.isFinite(found) && Math.abs(found) <= Number.MAX_SAFE_INTEGER)
    )
      return this.fail(
        value,
        `${name} must be a number of at most ${Number.MAX_SAFE_INTEGER} (got ${this.shown(value)})`,
      );
    return { value: found };
  }

  /** Returns how a node is named in a message. */
  shown(node: ParsedNode | null): string {
    if (node === null) return "nothing";
    if (isMap(node)) return "a map";
    if (isSeq(node)) return "a list";
    if (isAlias(node)) return "an alias";
    const { value, source } = node as ScalarNode & { source?: string };
    if (typeof value === "string") return `the text ${shown(value)}`;
    if (value === null) return source === "" ? "nothing" : "null";
    return `${typeof value === "number" ? "the number " : ""}${shownPlain(source ?? String(value))}`;
  }
}

function isOldBoolean(node: ParsedNode | null): boolean {
  return (
    isScalar(node) &&
    node.type === "PLAIN" &&
    typeof node.value === "string" &&
    /^(?:y|yes|n|no|on|off)$/i.test(node.value)
  );
}

export function shown(text: string): string {
  return `"${shownPlain(text)}"`;
}

function shownPlain(text: string): string {
  return text.length > shownCharsMax ? `${text.slice(0, shownCharsMax)}…` : text;
}

function shownTag(tag: string): string {
  return shownPlain(tag.replace(/^tag:yaml\.org,2002:/, "!!"));
}

function suggestion(name: string, known: readonly string[]): string {
  const near = nearestName(name, known);
  return near === undefined ? `: it may have ${known.join(", ")}` : `: did you mean ${near}?`;
}

/** Returns the known name of which the name may be a typo. */
export function nearestName(name: string, known: readonly string[]): string | undefined {
  const short = name.slice(0, shownCharsMax).toLowerCase();
  const most = typosMax(short);
  return nearest(known, (one) => lettersApart(short, one.toLowerCase(), most), most);
}
