/** Measures a cluster from its sources against the built command line: `npm run test:cluster-speed -- [ARGS]`. */
import "../../../scripts/own-folders.mjs";
import { createJiti } from "jiti";

const jiti = createJiti(import.meta.url, { fsCache: false });
const { main } = await jiti.import("./speed/run.ts");
process.exitCode = await main(process.argv.slice(2));
process.exit();
