/** The command line from its sources, with bridges that are broken as MAILCHUTE_STORM_BREAK says. */
import { createJiti } from "jiti";

const jiti = createJiti(import.meta.url, { fsCache: false });
const { breakStorm } = await jiti.import("./broken.ts");
breakStorm(process.env.MAILCHUTE_STORM_BREAK);
const { main } = await jiti.import("../../../../src/cli/main.ts");
process.exitCode = await main(process.argv.slice(2));
