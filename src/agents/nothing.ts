/** An empty module. It is imported so that Node prepares its module loader before the first handler is loaded (module-agent.ts). */
export {};
