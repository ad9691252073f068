/** victim.js OPERATION DIR [STATE]: the process that is killed, stopped or lied to. Its preloaded hook decides when. */
import { openTrays } from "../../../src/mailbox/files/trays.ts";
import { brokenStorage } from "./controls.ts";
import { OPERATIONS, type Operation, WORKER_OPERATION } from "./operations.ts";
import { type Durability, placeAt, quickSettings } from "./place.ts";

const [name, dir, state] = process.argv.slice(2);
const place = placeAt(dir ?? "", state);
const asked = process.env["MAILCHUTE_CRASH_DURABILITY"] as Durability | undefined;
if (name === "recovery") {
  const { recoverTree } = await import("./recover-tree.ts");
  await recoverTree(place, { settings: quickSettings(asked ?? "process") });
} else {
  const operation = await findOperation();
  if (operation === undefined) throw new Error(`no operation ${name}`);
  const durability = asked ?? operation.durability ?? "process";
  const storage = brokenStorage(process.env["MAILCHUTE_CRASH_BREAK"]);
  const options = { durability, storage };
  await operation.act({
    place,
    durability,
    trays: openTrays(place.tree.mailbox, options),
    control: openTrays(place.tree.control, options),
  });
}
/** Most are among the first, and need not load the larger parts of the others. */
async function findOperation(): Promise<Operation | undefined> {
  const isIt = (operation: Operation): boolean => operation.name === name;
  return (
    [...OPERATIONS, WORKER_OPERATION].find(isIt) ??
    (await import("./power-operations.ts")).POWER_OPERATIONS.find(isIt) ??
    (await import("./steering.ts")).STEERING.find(isIt) ??
    (await import("./planning.ts")).PLANNING.find(isIt)
  );
}

// Whatever still looks for something to do: the operation is over.
process.exit(0);
