/** Entry point of the compiled executable: finds the subcommand by the name it was called by, then goes on as `main.ts`. */
import { runMain } from '../commands/main.ts';
import { argumentsFor } from './call-name.ts';
import { quietenFor } from './quiet.ts';
import { tuneFor } from './tuning.ts';

const args = argumentsFor(process.argv0, process.argv.slice(2));
quietenFor(args);
tuneFor(args[0]);
process.exitCode = await runMain(args);
