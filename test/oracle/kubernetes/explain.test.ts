// deadline: 300 s
// needs: Go
/** `pullwright explain` over a folder, as a user runs it, against the keyring that the kubelet makes of the same secrets. */
import assert from 'node:assert/strict';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { parseImageReference } from '../../../runtime/core/image-reference.ts';
import { runMain } from '../../support/process.ts';
import { test } from '../../support/suite.ts';
import { tempFolder } from '../../support/temp-folder.ts';
import { LOOKUP, type Question } from './keyring-questions.ts';
import { type Answer, askKubernetes, caseCount, SEED, textOf } from './oracle.ts';

const cases = caseCount(12);

type Lookup = Extract<Question, { Ask: 'lookup' }>;

interface Explained {
  readonly kubelet: {
    readonly tried: readonly { readonly source: string; readonly key: string; readonly username: string }[];
    readonly blockedBy?: object;
  };
}

/** Generated look-ups of images that can be named, without plugins: those are not in a folder. */
function lookups(): readonly Lookup[] {
  return fc
    .sample(LOOKUP, { numRuns: cases * 60, seed: SEED })
    .flatMap(({ Plugin: _plugin, ...question }) => (parseImageReference(question.Text).ok ? [question] : []))
    .filter(({ Secrets }) => Secrets.length > 0);
}

type Told = readonly [Lookup, Answer];

/** Few random keys meet a random image: half of the pods have a credential, a quarter is blocked, a quarter has none. */
function chosen(): readonly Told[] {
  const questions = lookups();
  const told = askKubernetes(questions).map((answer, index): Told => [questions[index] as Lookup, answer]);
  const some = ([, answer]: Told): boolean => credentialsOf(answer).length > 0;
  const blocked = ([, answer]: Told): boolean => textOf(answer, 'error') !== '';
  const none = (one: Told): boolean => !some(one) && !blocked(one);
  const picked = [
    ...told.filter(some).slice(0, Math.ceil(cases / 2)),
    ...told.filter(blocked).slice(0, Math.ceil(cases / 4)),
    ...told.filter(none).slice(0, Math.ceil(cases / 4)),
  ];
  assert.ok(picked.length >= cases, `${picked.length} questions, expected ${cases}`);
  return picked;
}

function credentialsOf(answer: Answer): readonly { readonly Username: string; readonly Secret: string }[] {
  return (answer['credentials'] ?? []) as readonly { Username: string; Secret: string }[];
}

function manifests({ Secrets, Text }: Lookup): object {
  const namespace = 'team';
  const secrets = Secrets.map(({ Name, Type, Key, Data }) => ({
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: Name, namespace },
    type: Type,
    data: { [Key]: Buffer.from(Data).toString('base64') },
  }));
  const spec = {
    imagePullSecrets: Secrets.map(({ Name }) => ({ name: Name })),
    containers: [{ name: 'app', image: Text }],
  };
  const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'web', namespace }, spec };
  return { apiVersion: 'v1', kind: 'List', items: [...secrets, pod] };
}

async function explained(question: Lookup, folder: string): Promise<Explained['kubelet']> {
  const from = mkdtempSync(join(folder, 'from-'));
  writeFileSync(join(from, 'dump.json'), JSON.stringify(manifests(question)));
  const node = join(folder, 'config.json');
  writeFileSync(node, question.Node ?? '{}');
  const ran = await runMain(
    ['explain', question.Text, '--pod', 'web', '-n', 'team', '--from', from].concat([
      '--node-config',
      node,
      '--output',
      'json',
    ]),
  );
  assert.ok(ran.code === 0 || ran.code === 1, `${JSON.stringify(question)}\n${ran.stderr}`);
  return (JSON.parse(ran.stdout) as [Explained])[0].kubelet;
}

/** Who is tried, from which secret. Equal keys of one source come in random order from Go: sorted within their group. */
function compare(question: Lookup, ours: Explained['kubelet'], answer: Answer): void {
  const about = JSON.stringify(question);
  assert.equal(ours.blockedBy !== undefined, textOf(answer, 'error') !== '', about);
  const groups = ours.tried.map(({ source, key }) => `${source} ${folded(key)}`);
  const grouped = (list: readonly (readonly string[])[]): unknown =>
    list
      .map((pair, index) => ({ group: groups.indexOf(groups[index] ?? ''), text: pair.join(' ') }))
      .toSorted((a, b) => a.group - b.group || (a.text < b.text ? -1 : 1));
  const shortName = (source: string): string =>
    source.startsWith('Secret/team/') ? source.slice('Secret/team/'.length) : '';
  assert.deepEqual(
    grouped(ours.tried.map(({ source, username }) => [shortName(source), username])),
    grouped(credentialsOf(answer).map(({ Secret, Username }) => [Secret, Username])),
    about,
  );
}

/** The kubelet keeps host and path of a key alone, so that two spellings are one key to it. */
function folded(key: string): string {
  return key.replace(/^[a-z]+:\/\//i, '').replace(/[?#].*$/, '');
}

test(`${cases} random pods are told what the kubelet tries`, async () => {
  const folder = tempFolder();
  for (const [question, answer] of chosen()) compare(question, await explained(question, folder), answer);
});
