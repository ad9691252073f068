/** victim.js OPERATION DIR: the process that is killed, stopped or lied to. Its preloaded hook decides when. */
import { openTrays } from "../../../src/mailbox/trays.ts";
import { brokenStorage } from "./controls.ts";
import { OPERATIONS } from "./operations.ts";
import { placeAt, quickSettings } from "./place.ts";
import { PLANNING } from "./planning.ts";
import { STEERING } from "./steering.ts";

const [name, dir] = process.argv.slice(2);
const place = placeAt(dir ?? "");
if (name === "recovery") {
  const { recoverTree } = await import("./recover-tree.ts");
  await recoverTree(place, { settings: quickSettings("process") });
} else {
  const operation = [...OPERATIONS, ...STEERING, ...PLANNING].find((o) => o.name === name);
  if (operation === undefined) throw new Error(`no operation ${name}`);
  const durability = operation.durability ?? "process";
  const storage = brokenStorage(process.env["MAILCHUTE_CRASH_BREAK"]);
  const options = { durability, storage };
  await operation.act({
    place,
    durability,
    trays: openTrays(place.tree.mailbox, options),
    control: openTrays(place.tree.control, options),
  });
}
// Whatever still looks for something to do: the operation is over.
process.exit(0);
