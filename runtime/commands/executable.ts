/** Entry point of the compiled executable: the name it is called by selects the subcommand. */
import { argumentsFor, ranAsProvider } from './provider.ts';

const args = argumentsFor(process.argv0, process.argv.slice(2));
// The kubelet waits for the provider at image pulls, so the rest of the command line is not loaded for it.
if (args[0] !== 'provider' || !(await ranAsProvider(args.slice(1))))
  await (await import('./command-line.ts')).runCommandLine(args);
