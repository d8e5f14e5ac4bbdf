/** Entry point of the compiled executable: finds the subcommand by the name it was called by. */
import { argumentsFor, ranAsProvider } from './provider.ts';

const args = argumentsFor(process.argv0, process.argv.slice(2));
// The provider is part of every container's start, so that nothing of the command line is loaded for it.
if (args[0] !== 'provider' || !(await ranAsProvider(args.slice(1))))
  await (await import('./command-line.ts')).runCommandLine(args);
