/**
 * Objects of a cluster, as folders hold them: whatever is in them, reconcilers and commands answer. An API server would refuse most
 * of it; a folder is written by people.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import type { CommandIo } from '../../runtime/cli/command.ts';
import { runMain } from '../../runtime/commands/main.ts';
import { parseFacts } from '../../runtime/commands/reconcile/offline.ts';
import { loadReconcilers } from '../../runtime/commands/reconcile/reconcilers.ts';
import { allScopes, LOCAL_SCOPE } from '../../runtime/commands/reconcile/scopes.ts';
import { planUninstall } from '../../runtime/commands/uninstall/plan.ts';
import { judgeManifests } from '../../runtime/diagnose/checks/documents.ts';
import { parsePodName } from '../../runtime/diagnose/model/pull.ts';
import { folderOf } from '../../runtime/engine/offline/manifests.ts';
import { runOffline } from '../../runtime/engine/offline/offline.ts';
import { digestObject } from '../../runtime/kube/decode.ts';
import { findPlanted } from '../support/canary.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { listOf, MADE, MANAGEMENT, PLATFORM, STANDALONE } from './corpus-cluster.ts';
import { holds, type Parser } from './parser.ts';

const NOW = new Date(Date.UTC(2026, 5, 1));
const UNIT = '{"apiVersion":"v1","kind":"Node","metadata":{"name":"x"}},';
const DUMPS = [STANDALONE, PLATFORM, MANAGEMENT, MADE].map(listOf);

const reconcilers = await loadReconcilers({
  'global-pull-secret': {},
  'pull-secret-injection': {},
  'registry-overrides': {},
  'credential-provider': {},
});

/** What stands in a Secret is wrapped; a credential that a mutation carried elsewhere is any text. */
function isFair(text: string): boolean {
  const { manifests, problems } = folderOf([{ file: 'a.yaml', text }]);
  return findPlanted(JSON.stringify([manifests.map(({ object }) => object), problems])) === undefined;
}

function reconciled(text: string, rest: string): unknown {
  const folder = (part: string) =>
    folderOf([
      { file: 'a.yaml', text: part },
      { file: 'b.yaml', text: rest },
    ]);
  const store = folder(text).store;
  const scope = allScopes(store)[0] ?? LOCAL_SCOPE;
  const stores = { hosted: store, management: store };
  const { reports, objects } = runOffline({ reconcilers, scope, stores, now: NOW });
  for (const { after } of objects) if (after !== undefined) digestObject(after);
  return isFair(text) ? [reports, objects] : undefined;
}

const folder = tempFolder();

/** Runs the command as its user would, and gives all that it says. */
async function command(text: string, args: readonly string[], rest: string): Promise<unknown> {
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'a.yaml'), text);
  writeFileSync(join(folder, 'b.yaml'), rest);
  const said: string[] = [];
  const sink = { write: (part: string) => said.push(part) };
  const io: CommandIo = {
    stdin: Readable.from([]),
    stdout: sink,
    stderr: sink,
    env: {},
    cwd: folder,
    signal: new AbortController().signal,
  };
  const code = await runMain(
    args.map((one) => (one === 'DIR' ? folder : one)),
    io,
  );
  holds(Number.isInteger(code) && code >= 0 && code <= 2, 'the exit code');
  const whole = said.join('');
  // What nobody foresaw is said so, with the name of the error.
  holds(
    !/\b(?:Type|Range|Reference)Error\b|Cannot read properties|is not a function|not iterable/.test(whole),
    `"${args[0] ?? ''}" (${whole.slice(0, 200)})`,
  );
  return isFair(text) ? whole : undefined;
}

function offline(name: string, args: readonly string[], corpus: readonly string[], rest = ''): Parser {
  return { name, corpus, unit: UNIT, run: (text) => command(text, args, rest) };
}

const IMAGE = 'quay.io/team/app:1.2';

const PARSERS_OF_OBJECTS: readonly Parser[] = [
  {
    name: 'objects of a stand-alone cluster',
    corpus: [DUMPS[0] ?? ''],
    unit: UNIT,
    run: (text) => reconciled(text, DUMPS[3] ?? ''),
  },
  {
    name: 'mirrors, pools and the credential provider',
    corpus: [DUMPS[1] ?? ''],
    unit: UNIT,
    run: (text) => reconciled(text, DUMPS[0] ?? ''),
  },
  {
    name: 'objects of a management cluster',
    corpus: [DUMPS[2] ?? ''],
    unit: UNIT,
    run: (text) => reconciled(text, DUMPS[1] ?? ''),
  },
  {
    name: 'objects of earlier runs',
    corpus: [DUMPS[3] ?? ''],
    unit: UNIT,
    run: (text) => reconciled(text, DUMPS[0] ?? ''),
  },
  {
    name: 'objects to uninstall',
    corpus: DUMPS,
    unit: UNIT,
    run: (text) => {
      const { manifests } = folderOf([{ file: 'a.yaml', text }]);
      const { stages } = planUninstall(manifests.map(({ object }) => object));
      return stages.map(({ name, removals }) => [name, removals.length]);
    },
  },
  {
    name: 'objects to validate',
    corpus: DUMPS,
    unit: UNIT,
    run: (text) => {
      const problems = judgeManifests(folderOf([{ file: 'a.yaml', text }]).manifests);
      return isFair(text) ? problems : undefined;
    },
  },
  offline(
    'explain',
    ['explain', IMAGE, '-n', 'web', '--pod', 'web-1', '--from', 'DIR'],
    DUMPS.slice(0, 2),
    DUMPS[3],
  ),
  offline('status', ['status', '--from', 'DIR'], [DUMPS[0] ?? '', DUMPS[2] ?? '', DUMPS[3] ?? '']),
  offline('doctor', ['doctor', 'web-1', '-n', 'web', '--from', 'DIR'], DUMPS.slice(0, 2), DUMPS[3]),
  offline('mirrors', ['mirrors', IMAGE, '--from', 'DIR'], DUMPS.slice(1, 3)),
  {
    name: 'facts',
    corpus: ['registry-digest: { "quay.io/a:1": "sha256:ab" }\n', 'registry-digest:\n', '{}'],
    unit: 'a: [',
    run: (text) => parseFacts(text)({ kind: 'registry-digest', image: 'quay.io/a:1' } as never),
  },
  {
    name: 'name of a pod',
    corpus: ['deploy/web', 'pod-1', 'statefulset/a', 'cronjob/b'],
    unit: '/',
    run: (text) => parsePodName(text),
  },
];

export const CLUSTER_PARSERS: readonly Parser[] = PARSERS_OF_OBJECTS.map((one) => ({
  ...one,
  slow: one.unit === UNIT,
}));
