#!/usr/bin/env node
/** The one entry point: picks a subcommand, imports only that one, and turns its result into an exit code. */
import { runMain } from './runtime/commands/main.ts';

process.exitCode = await runMain(process.argv.slice(2));
