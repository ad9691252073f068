/** Runs the soak from its sources against the built command line: `node test/soak/soak.mjs [ARGS]`. */
import "../../scripts/own-folders.mjs";
import { createJiti } from "jiti";

const jiti = createJiti(import.meta.url, { fsCache: false });
const { main } = await jiti.import("./run.ts");
process.exitCode = await main(process.argv.slice(2));
