// Reads the dynamic symbols of a 64-bit little-endian ELF file (System V ABI, chapters 4 and 5).

import { readFileSync } from "node:fs";

interface DynamicSymbol {
  readonly name: string;
  readonly defined: boolean;
}

const dynamicSymbolTable = 11;

export function dynamicSymbolsOf(path: string): DynamicSymbol[] {
  const file = readFileSync(path);
  if (file.readUInt32BE(0) !== 0x7f454c46 || file[4] !== 2 || file[5] !== 1) {
    throw new Error(`Reading dynamic symbols: ${path} is no 64-bit little-endian ELF file`);
  }
  const word64 = (at: number): number => Number(file.readBigUInt64LE(at));
  const [sectionsStart, sectionBytes, sectionCount] = [
    word64(40),
    file.readUInt16LE(58),
    file.readUInt16LE(60),
  ];
  const section = (index: number) => {
    const at = sectionsStart + index * sectionBytes;
    return {
      type: file.readUInt32LE(at + 4),
      start: word64(at + 24),
      bytes: word64(at + 32),
      link: file.readUInt32LE(at + 40),
    };
  };
  const symbols = Array.from({ length: sectionCount }, (_, index) => section(index)).find(
    ({ type }) => type === dynamicSymbolTable,
  );
  if (symbols === undefined) throw new Error(`Reading dynamic symbols: ${path} has none`);
  const names = section(symbols.link);
  const found: DynamicSymbol[] = [];
  for (let at = symbols.start + 24; at < symbols.start + symbols.bytes; at += 24) {
    const nameStart = names.start + file.readUInt32LE(at);
    const name = file.toString("latin1", nameStart, file.indexOf(0, nameStart));
    found.push({ name, defined: file.readUInt16LE(at + 6) !== 0 });
  }
  return found;
}
