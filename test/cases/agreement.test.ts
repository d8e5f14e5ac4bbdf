/** The same pod, asked of every command: what one calls broken none calls in order. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { runInProcess } from '../support/in-process.ts';
import { suite } from '../support/suite.ts';

const test = suite('commands agree');
const here = import.meta.dirname;

interface Doctor {
  readonly links: readonly { readonly link: string; readonly state: string; readonly message: string }[];
}

interface Explain {
  readonly findings: readonly { readonly check?: string; readonly message: string }[];
}

interface Report {
  readonly problems: readonly {
    readonly cases: readonly { readonly object: string; readonly message: string }[];
  }[];
}

async function json<T>(args: readonly string[]): Promise<T> {
  const ran = await runInProcess([...args, '-o', 'json']);
  assert.notEqual(ran.stdout, '', `${args.join(' ')}\n${ran.stderr}`);
  return JSON.parse(ran.stdout) as T;
}

const dumps = readdirSync(here, { recursive: true, encoding: 'utf8' })
  .filter((path) => /^\d[^/]*\/(in\/)?all\.(json|yaml)$/.test(path))
  .map((path) => join(here, path));

/** Pods of a dump that name a Namespace; those of a HostedCluster are none of a guest. */
function podsIn(file: string): readonly (readonly [namespace: string, name: string])[] {
  const text = readFileSync(file, 'utf8');
  const named = /kind: Pod\b[\s\S]{0,40}?metadata:\s*\{name: ([\w-]+), namespace: ([\w-]+)/g;
  const nested = /kind: Pod\n\s+metadata:\n\s+name: ([\w.-]+)\n\s+namespace: ([\w-]+)/g;
  return [named, nested].flatMap((pattern) =>
    [...text.matchAll(pattern)].map(([, name = '', namespace = '']) => [namespace, name] as const),
  );
}

for (const file of dumps)
  for (const [namespace, name] of podsIn(file))
    test(`${file.slice(here.length + 1)} ${namespace}/${name}`, async () => {
      const where = ['-n', namespace, '--from', file];
      const { links } = await json<Doctor>(['doctor', name, ...where]);
      const broken = links.find(({ state }) => state === 'broken');
      const told = await json<Explain | readonly Explain[]>(['explain', '--pod', name, ...where]);
      for (const { findings } of [told].flat() as readonly Explain[]) {
        const found = findings.find(({ check }) => check !== undefined);
        assert.deepEqual([found?.check, found?.message], [broken?.link, broken?.message]);
      }
      const { problems } = await json<Report>(['report', '--from', file]);
      const cases = problems.flatMap((problem) => problem.cases);
      const said = cases.filter(({ object }) => object === `Pod/${namespace}/${name}`);
      assert.equal(
        said.some(({ message }) => message === broken?.message),
        broken !== undefined,
        JSON.stringify(said),
      );
    });

test.run();
