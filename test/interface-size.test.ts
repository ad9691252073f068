/** Interfaces of the supervisor are small, as ARCHITECTURE.md says of its ports: each can be read at a glance, and faked in a test. */
import fs from "node:fs";
import { fileURLToPath } from "node:url";
import { parseAst } from "rolldown/parseAst";
import { describe, expect, test } from "vitest";

const SUPERVISOR = fileURLToPath(new URL("../src/supervisor", import.meta.url));
const MEMBERS_MAX = 6;

/** Interfaces that may have more members, with their exact number. */
const LARGER: Readonly<Record<string, number>> = {
  // The list of what every service gets; most services take only a part of it.
  Environment: 8,
  // The map of all events; a listener names the one that it hears.
  FactMap: 18,
};

/** A list of members in the text: an interface, a type in braces, or the parameters of a constructor. */
interface MemberList {
  name: string;
  members: number;
}

/** Members that are written in the list itself count; what an interface extends has a limit of its own. */
function memberLists(text: string): MemberList[] {
  const lists: MemberList[] = [];
  const visit = (node: unknown, name: string): void => {
    if (Array.isArray(node)) for (const one of node) visit(one, name);
    if (!isNode(node)) return;
    const inner = nameOf(node) ?? name;
    const members = membersOf(node);
    if (members !== undefined) lists.push({ name: inner, members });
    for (const child of Object.values(node)) visit(child, inner);
  };
  visit(parseAst(text, { lang: "ts" }), "");
  return lists;
}

type Node = Readonly<Record<string, unknown>> & { type: string };

function isNode(value: unknown): value is Node {
  return typeof value === "object" && value !== null && "type" in value;
}

function membersOf(node: Node): number | undefined {
  const { type, body, members, kind, value } = node;
  if (type === "TSInterfaceBody") return (body as unknown[]).length;
  if (type === "TSTypeLiteral") return (members as unknown[]).length;
  if (type !== "MethodDefinition" || kind !== "constructor") return undefined;
  return (value as { params: unknown[] }).params.length;
}

/** The name that a declaration gives to what is written inside it. */
function nameOf({ type, id }: Node): string | undefined {
  const isDeclaration =
    type === "TSInterfaceDeclaration" ||
    type === "TSTypeAliasDeclaration" ||
    type === "ClassDeclaration";
  return isDeclaration && isNode(id) ? String(id["name"]) : undefined;
}

function tooLarge(text: string): MemberList[] {
  return memberLists(text).filter(({ members }) => members > MEMBERS_MAX);
}

describe("the size of interfaces", () => {
  test(`no interface of src/supervisor has more than ${MEMBERS_MAX} members, but for the two that are named`, () => {
    const files = fs.readdirSync(SUPERVISOR, { recursive: true, encoding: "utf8" });
    const texts = files
      .filter((file) => file.endsWith(".ts"))
      .map((file) => fs.readFileSync(`${SUPERVISOR}/${file}`, "utf8"));
    expect(texts.flatMap(memberLists).length).toBeGreaterThan(100);
    const allowed = Object.entries(LARGER).map(([name, members]) => ({ name, members }));
    const byName = (a: MemberList, b: MemberList): number => a.name.localeCompare(b.name);
    expect(texts.flatMap(tooLarge).sort(byName)).toEqual(allowed.sort(byName));
  });

  test("seven members are found wherever they are written, and six are not", () => {
    const seven =
      "a: 1; b?: 2; readonly c: 3; d(): void; e: { f: 1 }; [key: string]: unknown; (): 1";
    const six = seven.slice(seven.indexOf("b"));
    const parameters = "a, b, c, d, e, f";
    for (const [kind, code] of [
      ["an interface", (members: string) => `export interface Made { ${members} }`],
      ["a type in braces", (members: string) => `type Made = Other & { ${members} };`],
      [
        "a bag of a constructor",
        (members: string) => `class Made { constructor(o: { ${members} }) {} }`,
      ],
    ] as const) {
      expect(tooLarge(code(seven)), kind).toEqual([{ name: "Made", members: 7 }]);
      expect(tooLarge(code(six)), kind).toEqual([]);
    }
    expect(tooLarge(`class Made { constructor(${parameters}) {} }`)).toEqual([]);
    expect(tooLarge(`class Made { constructor(${parameters}, g) {} }`)).toEqual([
      { name: "Made", members: 7 },
    ]);
  });
});
