/**
 * One file under several names. What a copy or a link of the executable is called decides what it does, so that the same
 * file is the `pullwright` of an image, the `crio-credential-provider` of a node and the `kubectl-pullwright` of a laptop.
 */

/** Names that stand for a subcommand. Every other name is `pullwright`, whose first argument names the subcommand. */
const COMMAND_OF_NAME: Readonly<Record<string, string>> = { 'crio-credential-provider': 'provider' };

/**
 * The arguments that `pullwright` would have been given.
 *
 * `argv0` is what the caller wrote as the program's name: the kubelet passes the full path of the plugin, a shell passes
 * what was typed. Links are not resolved: the name of the link counts.
 *
 * @example
 * ```ts
 * import { argumentsFor } from './call-name.ts';
 * import assert from 'node:assert/strict';
 *
 * assert.deepEqual(argumentsFor('/usr/libexec/kubelet-plugins/crio-credential-provider', []), ['provider']);
 * assert.deepEqual(argumentsFor('kubectl-pullwright', ['explain', '--help']), ['explain', '--help']);
 * ```
 */
export function argumentsFor(argv0: string, args: readonly string[]): readonly string[] {
  const name = argv0.slice(argv0.lastIndexOf('/') + 1);
  const command = Object.hasOwn(COMMAND_OF_NAME, name) ? COMMAND_OF_NAME[name] : undefined;
  return command === undefined ? args : [command, ...args];
}
