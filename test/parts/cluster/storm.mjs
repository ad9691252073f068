/** Runs the storm over a cluster from its sources against the built command line: `node test/parts/cluster/storm.mjs [ARGS]`. */
import "../../../scripts/own-folders.mjs";
import { createJiti } from "jiti";

const jiti = createJiti(import.meta.url, { fsCache: false });
const { main } = await jiti.import("./storm/run.ts");
process.exitCode = await main(process.argv.slice(2));
