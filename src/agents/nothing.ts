/** Nothing: imported so that Node makes its loader of modules ready before there is one to load (module-agent.ts). */
export {};
