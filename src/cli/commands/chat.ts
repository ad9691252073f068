/** placeholder */
import { defineCommand } from "../command-spec.ts";
export const command = defineCommand({ usage: "", options: {}, run: () => Promise.resolve(0) });
