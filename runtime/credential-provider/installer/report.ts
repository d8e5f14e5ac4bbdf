/** Reports of the installation on a node: its PullStatus and Events, and `--dry-run`. */
import { existsSync, globSync, lstatSync, readFileSync } from 'node:fs';
import type { EntryStatus } from '../../core/kubernetes/pull-status.ts';
import { isRecord } from '../../core/record.ts';
import { counted, jsonText, oneLined, someOf } from '../../core/text.ts';
import { parseYaml, toYaml } from '../../kube/yaml.ts';
import { namesIn } from '../../node/atomic-file.ts';
import { systemClock } from '../../node/clock.ts';
import { NodeEngine } from '../../node/engine.ts';
import type { NodeWords, Said } from '../../node/report.ts';
import type { Policy } from '../../node/rollout.ts';
import { StateFolder } from '../../node/state.ts';
import { type NodeState, stateConditions } from '../../node/task.ts';
import { NOTES } from '../../node/watch.ts';
import { decodeCredentialProviderConfig } from '../config.ts';
import { entryVerdict } from '../merge.ts';
import { installerStatusName, PROVIDER_FAILED } from '../platform.ts';
import { type FailureNote, MOST_NOTES } from '../plugin/journal.ts';
import type { InstallerSettings } from './command.ts';
import {
  executablePath,
  type GoodPlan,
  type InstallPlan,
  isOwnDropIn,
  NEUTRAL,
  OWN_FILE,
  ownPointers,
} from './plan.ts';
import { askWanted, digestOf, dropInFile, type Env, lookAtNode, PROGRAM, read } from './source.ts';

// Recent failures of the provider's runs on this node, read from its notes.

const MOST_BYTES = 16_384;
const TEXTS = ['namespace', 'serviceAccount', 'pod', 'podUid', 'image'] as const;

/** The notes beside the auth files, by file name. Skips invalid and unreadable files. */
export function readFailures(authDir: string): readonly FailureNote[] {
  const folder = `${authDir}/${NOTES}`;
  return globSync('*.json', { cwd: folder })
    .toSorted()
    .slice(0, MOST_NOTES)
    .flatMap((name) => noteIn(`${folder}/${name}`));
}

function noteIn(path: string): readonly FailureNote[] {
  try {
    const stat = lstatSync(path);
    if (!stat.isFile() || stat.size > MOST_BYTES) return [];
    const note: unknown = JSON.parse(readFileSync(path, 'utf8'));
    if (!isRecord(note) || typeof note['message'] !== 'string') return [];
    const known = TEXTS.flatMap((name) => (typeof note[name] === 'string' ? [[name, note[name]]] : []));
    return [{ ...Object.fromEntries(known), message: note['message'] }];
  } catch {
    // Removed just now, or truncated by a power cut.
    return [];
  }
}

/** The subject of a note: `team-a/app`, or `node`. */
export function accountOf({ namespace, serviceAccount = '' }: FailureNote): string {
  return namespace === undefined ? 'node' : `${namespace}/${serviceAccount}`;
}

/** Longer messages are in the Event only: a hundred verdicts with a Role each would be a large object. */
const MOST_VERDICT = 500;

/** Verdict for the node's PullStatus. */
export function failureVerdict(note: FailureNote): EntryStatus {
  const message = `${note.image === undefined ? '' : `image "${note.image}": `}${note.message}`;
  return {
    subject: accountOf(note),
    verdict: 'Warning',
    reason: PROVIDER_FAILED,
    message: message.length > MOST_VERDICT ? `${message.slice(0, MOST_VERDICT - 3)}...` : message,
  };
}

/** The state with the first accounts whose last run failed in its message. Such failures do not make the node not ready. */
export function withFailures(state: NodeState, notes: readonly FailureNote[]): NodeState {
  if (notes.length === 0) return state;
  const shown = someOf(notes.map(accountOf), 3);
  return { ...state, message: `${state.message}; the last run of the provider failed for ${shown}` };
}

/** Returns a filter for new notes: a pod that retries is reported once per cause. */
export function failureNews(): (notes: readonly FailureNote[]) => readonly FailureNote[] {
  let before = new Set<string>();
  return (notes) => {
    const textOf = (note: FailureNote): string => `${accountOf(note)} ${note.podUid ?? ''} ${note.message}`;
    const said = before;
    before = new Set(notes.map(textOf));
    return notes.filter((note) => !said.has(textOf(note)));
  };
}

/** Event on the pod, for its owner; on the Node when the pod is unknown. */
export function failureEvent(note: FailureNote): Said {
  const { namespace, pod, podUid, message } = note;
  const said = { type: 'Warning', reason: PROVIDER_FAILED, action: 'Pull', note: message } as const;
  if (namespace === undefined || pod === undefined) return said;
  const uid = podUid === undefined ? {} : { uid: podUid };
  return { ...said, regarding: { apiVersion: 'v1', kind: 'Pod', namespace, name: pod, ...uid } };
}

/** `plan`: the last good one; `failures`: of runs for pods. Both are called for each report. */
export function installerWords(
  plan: () => InstallPlan | undefined,
  failures: () => readonly FailureNote[],
): NodeWords {
  return {
    manager: PROGRAM,
    reporter: 'credential-provider-installer',
    metadata: (node) => ({ name: installerStatusName(node) }),
    report: (state) => {
      const known = plan();
      return {
        conditions: stateConditions(state),
        verdicts: [
          ...failures().map(failureVerdict),
          ...(known?.ok === true ? known.verdicts : []).map((entry) =>
            entryVerdict(entry, "the kubelet's file contains it"),
          ),
        ],
      };
    },
    written: ({ file, entries }) => {
      const note = `Wrote ${file} with ${counted(entries, 'entry', 'entries')}`;
      return { type: 'Normal', reason: 'CredentialProviderWritten', action: 'Write', note };
    },
    restarted: ({ unit, attempt }) => {
      const note = `${unit} runs with the new drop-in (attempt ${attempt})`;
      return { type: 'Normal', reason: 'KubeletRestarted', action: 'Restart', note };
    },
    rolledBack: ({ file }) => {
      const note = `The kubelet did not start with the credential provider: the old drop-in is restored (${file})`;
      return { type: 'Warning', reason: 'CredentialProviderRolledBack', action: 'RollBack', note };
    },
    // Events only for states that need action.
    eventOfState: ({ ready, busy, reason, message }) =>
      ready || busy === true || reason === 'Starting'
        ? undefined
        : { type: 'Warning', reason, action: 'Install', note: message },
  };
}

// `install-provider --dry-run`: what a run would do on this node. Writes nothing.

/** What `--dry-run` prints. */
type Preview = Awaited<ReturnType<typeof previewInstaller>>;

/** What `--once` prints too. */
export type InstallerReport = Pick<Preview, 'node' | 'ready' | 'reason' | 'message'> & Partial<Preview>;

/** Returns the report. Rejects with the error of the failed request. */
export async function previewInstaller(options: InstallerSettings, policy: Policy, env: Env) {
  const plan = await askWanted(options, env);
  const file = dropInFile(options);
  const stored = new StateFolder(options.root + options.stateDir).load();
  const task = {
    file,
    unit: options.unit,
    look: (present: unknown) => lookAtNode(plan, present === undefined ? undefined : read('', file)?.text),
  };
  const { state } = NodeEngine.preview({ task, clock: systemClock, policy }, stored);
  const { change } = stored.checkpoint;
  const { ready, reason, message } = state;
  const node = options.nodeName;
  const would = plan.ok ? nodeChanges(plan, options) : [];
  return {
    node,
    ready: ready && would.length === 0,
    reason,
    message,
    /** What would happen, in order. */
    would: reason === 'BreakerOpen' ? [] : would,
    /** Phase of an interrupted run, which is resumed first. */
    ...(change === undefined ? {} : { resumes: change.phase }),
    ...(plan.ok ? { entries: plan.verdicts } : {}),
  };
}

/** One planned change. */
export interface HostChange {
  readonly action: 'create' | 'replace' | 'remove' | 'reload' | 'restart';
  /** A path of the host, or a unit. */
  readonly what: string;
  /** Semantic differences. */
  readonly details: readonly string[];
}

/** Changes in order; none when the node is in sync. */
function nodeChanges(plan: GoodPlan, options: InstallerSettings): readonly HostChange[] {
  const { root, configDir } = options;
  const kept = [plan.config?.path, plan.environment?.path];
  const paths = namesIn(root + configDir)
    .filter((name) => OWN_FILE.test(name))
    .map((name) => `${configDir}/${name}`)
    .filter((path) => !kept.includes(path));
  const dropIn = read('', dropInFile(options))?.text;
  return [
    ...fileChanges(plan, options, dropIn),
    ...((dropIn ?? NEUTRAL) === plan.dropIn ? [] : dropInChanges(plan, options, dropIn)),
    ...paths.map((what) => ({ action: 'remove', what, details: ['once the kubelet is up'] }) as const),
  ];
}

/** Changes of the executable and the kubelet's file. */
function fileChanges(plan: GoodPlan, { root, executable }: InstallerSettings, dropIn: string | undefined) {
  const { config } = plan;
  if (config === undefined) return [];
  const program = executablePath(plan.binDir);
  const isThere = existsSync(root + program);
  const isSame = isThere && digestOf(root + program) === digestOf(executable);
  const present = read(root, config.path)?.text;
  const used = (dropIn === undefined ? undefined : ownPointers(dropIn).config) ?? plan.pointedAt;
  const details = (): readonly string[] =>
    providerChanges(used === undefined ? undefined : read(root, used)?.text, config.text);
  return [
    ...(isSame ? [] : [put(program, isThere, ['a copy of this program, mode 0755'])]),
    ...(present === config.text ? [] : [put(config.path, present !== undefined, details())]),
  ];
}

function put(what: string, isThere: boolean, details: readonly string[]): HostChange {
  return { action: isThere ? 'replace' : 'create', what, details };
}

/** Changes of the drop-in, with the reload and restart that apply it. */
function dropInChanges(
  plan: GoodPlan,
  options: InstallerSettings,
  dropIn: string | undefined,
): readonly HostChange[] {
  const isForeign = dropIn !== undefined && !isOwnDropIn(dropIn);
  const details = [
    ...(isForeign ? ['another program wrote the current one'] : []),
    ...flagChanges(dropIn ?? '', plan.dropIn),
  ];
  return [
    put(dropInFile(options).slice(options.root.length), dropIn !== undefined, details),
    { action: 'reload', what: 'systemd', details: [] },
    {
      action: 'restart',
      what: options.unit,
      details: ['after three failed starts, the old drop-in is restored'],
    },
  ];
}

/** Providers that are added, removed, or match other images. */
function providerChanges(before: string | undefined, after: string): readonly string[] {
  const [old, next] = [providersOf(before), providersOf(after)];
  return [...new Set([...old.keys(), ...next.keys()])].map((name) => {
    const [was, is] = [old.get(name), next.get(name)];
    if (was === undefined) return `provider ${name}: added for ${(is ?? []).join(', ')}`;
    if (is === undefined) return `provider ${name}: removed`;
    const added = is.filter((image) => !was.includes(image)).map((image) => `+${image}`);
    const removed = was.filter((image) => !is.includes(image)).map((image) => `-${image}`);
    return `provider ${name}: ${[...added, ...removed].join(' ') || 'kept'}`;
  });
}

function providersOf(text: string | undefined): ReadonlyMap<string, readonly string[]> {
  const decoded = text === undefined ? undefined : decodeCredentialProviderConfig(text, parseYaml);
  const providers = decoded?.ok === true ? (decoded.config.providers ?? []) : [];
  return new Map(providers.map(({ name = '', matchImages = [] }) => [name, matchImages]));
}

function flagChanges(before: string, after: string): readonly string[] {
  const [old, next] = [ownPointers(before), ownPointers(after)];
  const flags = [
    ['--image-credential-provider-config', old.config, next.config],
    ['--image-credential-provider-bin-dir', old.binDir, next.binDir],
  ] as const;
  const changed = flags
    .filter(([, was, is]) => was !== is)
    .map(([flag, was, is]) => `${flag}: ${was ?? 'none'} -> ${is ?? 'none'}`);
  return changed.length > 0 ? changed : ["the variable's other flags, unchanged"];
}

// The report of `install-provider` as text, JSON or YAML.

/** The text for stdout, with a final newline. */
export function renderReport(report: InstallerReport, output: 'text' | 'json' | 'yaml'): string {
  if (output === 'json') return jsonText(report);
  if (output === 'yaml') return toYaml(report);
  const { reason, message, would, resumes, entries = [] } = oneLined(report);
  return [
    `${reason}: ${message}`,
    ...(resumes === undefined ? [] : [`resumes an interrupted run first (${resumes})`]),
    ...(would?.length === 0 ? ['no changes'] : []),
    ...(would ?? []).flatMap(({ action, what, details }) => [
      `would ${action.padEnd(7)} ${what}`,
      ...details.map((detail) => `              ${detail}`),
    ]),
    ...entries
      .filter(({ verdict }) => verdict !== 'Rendered')
      .map((entry) => `ignored: ${entry.pattern}: ${entry.message}`),
    '',
  ].join('\n');
}
