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
import { planUninstall } from '../../runtime/commands/uninstall/plan.ts';
import { judgeManifests } from '../../runtime/diagnose/checks/documents.ts';
import { parsePodName } from '../../runtime/diagnose/model/pull.ts';
import { folderOf } from '../../runtime/engine/offline/manifests.ts';
import { digestObject } from '../../runtime/kube/decode.ts';
import { findPlanted } from '../support/canary.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { IMAGE, MADE, MANAGEMENT, PLATFORM, POD, reconcileDumps, STANDALONE } from './corpus-cluster.ts';
import { holds, type Parser } from './parser.ts';

const UNIT = '{"apiVersion":"v1","kind":"Node","metadata":{"name":"x"}},';
const DUMPS = [STANDALONE, PLATFORM, MANAGEMENT, MADE];

/** What stands in a Secret is wrapped; a credential that a mutation carried elsewhere is any text. */
function isFair(text: string): boolean {
  const { manifests, problems } = folderOf([{ file: 'a.yaml', text }]);
  return findPlanted(JSON.stringify([manifests.map(({ object }) => object), problems])) === undefined;
}

function reconciled(text: string, rest: string): unknown {
  const { reports, objects } = reconcileDumps(text, rest);
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
  // An unexpected error must be reported as such, with its name.
  holds(
    !/\b(?:Type|Range|Reference)Error\b|Cannot read properties|is not a function|not iterable/.test(whole),
    `"${args[0] ?? ''}" (${whole.slice(0, 200)})`,
  );
  return isFair(text) ? whole : undefined;
}

function offline(name: string, args: readonly string[], corpus: readonly string[], rest = ''): Parser {
  return { name, corpus, unit: UNIT, run: (text) => command(text, args, rest) };
}

function objects(name: string, corpus: string, rest: string): Parser {
  return { name, corpus: [corpus], unit: UNIT, run: (text) => reconciled(text, rest) };
}

const PARSERS_OF_OBJECTS: readonly Parser[] = [
  objects('objects of a stand-alone cluster', STANDALONE, MADE),
  objects('mirrors, pools and the credential provider', PLATFORM, STANDALONE),
  objects('objects of a management cluster', MANAGEMENT, PLATFORM),
  objects('objects of earlier runs', MADE, STANDALONE),
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
    ['explain', IMAGE, '-n', POD.namespace, '--pod', POD.name, '--from', 'DIR'],
    [STANDALONE, PLATFORM],
    MADE,
  ),
  offline('status', ['status', '--from', 'DIR'], [STANDALONE, MANAGEMENT, MADE]),
  offline('doctor', ['doctor', POD.name, '-n', POD.namespace, '--from', 'DIR'], [STANDALONE, PLATFORM], MADE),
  offline('mirrors', ['mirrors', IMAGE, '--from', 'DIR'], [PLATFORM, MANAGEMENT]),
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
