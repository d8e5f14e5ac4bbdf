/** Every subcommand of the compiled executable, as `main.ts` runs them on Node. */
import { runMain } from '../commands/main.ts';
import { quietenFor } from './quiet.ts';
import { tuneFor } from './tuning.ts';

/** Runs `args` as the program `pullwright` would. */
export async function runCommandLine(args: readonly string[]): Promise<void> {
  quietenFor(args);
  tuneFor(args[0]);
  process.exitCode = await runMain(args);
}
