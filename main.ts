#!/usr/bin/env node
/** The one entry point: picks a subcommand, imports only that one, and turns its result into an exit code. */
import { enableCompileCache } from 'node:module';
import { join } from 'node:path';

// Types are stripped and modules compiled once a checkout, not once a run. The folder is as trusted as the code beside it.
enableCompileCache(join(import.meta.dirname, 'node_modules/.cache/pullwright'));
const { runMain } = await import('./runtime/commands/main.ts');
process.exitCode = await runMain(process.argv.slice(2));
