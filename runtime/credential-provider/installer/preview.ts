/** `install-provider --dry-run`: what a run would do on this node. Reads, and writes nothing. */

import { existsSync, readdirSync } from 'node:fs';
import { systemClock } from '../../host/clock.ts';
import { parseYaml } from '../../kube/yaml.ts';
import { NodeEngine } from '../../node/engine.ts';
import { StateFolder } from '../../node/state-folder.ts';
import type { Policy } from '../../rules/rollout/rollout.ts';
import { executablePath, type HostChange, nodeChanges, type PresentState } from './changes.ts';
import { read } from './host.ts';
import { OWN_FILE } from './managed.ts';
import { type InstallPlan, ownPointers } from './plan.ts';
import { digestOf, lookAtNode, type SourceOptions } from './source.ts';
import { askWanted, dropInFile, type Env } from './wanted.ts';

/** What `--dry-run` and `--once` print. */
export interface InstallerReport {
  readonly node: string;
  readonly ready: boolean;
  readonly reason: string;
  readonly message: string;
  /** With `--dry-run`: what would happen, in order. */
  readonly would?: readonly HostChange[];
  /** With `--dry-run`: what the journal says is to be done first, when a run was interrupted. */
  readonly resumes?: string;
  readonly entries?: readonly {
    readonly pattern: string;
    readonly verdict: string;
    readonly message: string;
  }[];
}

/** Gives the report. Rejects with what could not be asked. */
export async function previewInstaller(
  options: SourceOptions,
  policy: Policy,
  env: Env,
): Promise<InstallerReport> {
  const plan = await askWanted(options, env);
  const file = dropInFile(options);
  const { journal, ledger } = new StateFolder(options.root + options.stateDir).load();
  const task = {
    name: 'credential-provider',
    file,
    unit: options.unit,
    look: (present: unknown) => lookAtNode(plan, present === undefined ? undefined : read('', file)?.text),
  };
  const { state } = NodeEngine.preview({ task, clock: systemClock, policy }, { journal, ledger });
  const resumes = journal.change === undefined ? {} : { resumes: journal.change.phase };
  const { ready, reason, message } = state;
  const node = options.nodeName;
  if (!plan.ok) return { node, ready, reason, message, would: [], ...resumes };
  const would = nodeChanges(plan, presentState(plan, options), {
    unit: options.unit,
    parseYaml,
  });
  const isHeld = state.reason === 'BreakerOpen';
  return {
    node,
    ready: ready && would.length === 0,
    reason,
    message,
    would: isHeld ? [] : would,
    ...resumes,
    entries: plan.verdicts.map(({ pattern, verdict, message }) => ({ pattern, verdict, message })),
  };
}

function presentState(plan: InstallPlan & { ok: true }, options: SourceOptions): PresentState {
  const { root, configDir } = options;
  const file = dropInFile(options);
  const dropIn = read('', file)?.text;
  const pointed = dropIn === undefined ? undefined : ownPointers(dropIn).config;
  const path = executablePath(plan);
  return {
    dropInPath: file.slice(root.length),
    dropIn,
    config: textOf(root, pointed ?? plan.pointedAt),
    executablePath: path,
    executable: executableState(root + path, options.executable),
    configFiles: namesIn(root + configDir).map((name) => `${configDir}/${name}`),
    plannedConfig: plan.config === undefined ? undefined : read(root, plan.config.path)?.text,
  };
}

function textOf(root: string, path: string | undefined): string | undefined {
  return path === undefined ? undefined : read(root, path)?.text;
}

function executableState(path: string, program: string): PresentState['executable'] {
  if (!existsSync(path)) return 'absent';
  return digestOf(path) === digestOf(program) ? 'same' : 'foreign';
}

function namesIn(folder: string): readonly string[] {
  return existsSync(folder) ? readdirSync(folder).filter((name) => OWN_FILE.test(name)) : [];
}
