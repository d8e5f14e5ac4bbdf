/** The Action, the template and the hooks for pull requests: their own commands, run over a repository with a change. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { runInProcess } from '../support/in-process.ts';
import { runProcess } from '../support/process.ts';
import { test } from '../support/suite.ts';
import { tempFolder } from '../support/temp-folder.ts';

const root = new URL('../..', import.meta.url).pathname;
const folder = tempFolder();
const command = `${process.execPath} ${root}main.ts`;
const git = (...args: readonly string[]): string =>
  execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@example.com', ...args], {
    cwd: folder,
    encoding: 'utf8',
  }).trim();

interface Step {
  readonly name: string;
  readonly if?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly run: string;
}

interface Action {
  readonly inputs: Readonly<Record<string, { readonly default: string }>>;
  readonly runs: { readonly steps: readonly Step[] };
}

const readYaml = (path: string): unknown => parse(readFileSync(join(root, path), 'utf8'));
const action = readYaml('.github/actions/check/action.yml') as Action;

/** Replaces the expressions of the CI runner: an input, or an input with a fallback. */
function filled(text: string, inputs: Readonly<Record<string, string>>): string {
  return text.replace(/\$\{\{ inputs\.([\w-]+).*?\}\}/g, (_, name: string) => inputs[name] ?? '');
}

const reports = (name: string): string => readFileSync(join(folder, 'pullwright-reports', name), 'utf8');

/** The steps with commands whose input is given, one after the other. Gives their exit codes by name. */
async function runAction(
  given: Readonly<Record<string, string>>,
): Promise<Readonly<Record<string, number | null>>> {
  const defaults = Object.fromEntries(
    Object.entries(action.inputs).map(([name, input]) => [name, input.default]),
  );
  const inputs = { ...defaults, ...given };
  const codes: Record<string, number | null> = {};
  for (const step of action.runs.steps) {
    const wants = [...(step.if ?? '').matchAll(/inputs\.([\w-]+) != ''/g)].map(([, name = '']) => name);
    if (wants.length === 0 || step.run.startsWith('gh ') || wants.some((name) => inputs[name] === ''))
      continue;
    const env = Object.fromEntries(
      Object.entries(step.env ?? {}).map(([name, value]) => [name, filled(value, inputs)]),
    );
    const ran = await runProcess(['bash', '-e', '-o', 'pipefail', '-c', step.run], {
      cwd: folder,
      env: { ...process.env, ...env, GITHUB_STEP_SUMMARY: join(folder, 'summary.md') },
    });
    codes[step.name] = ran.code;
  }
  return codes;
}

const GIVEN = {
  command,
  files: 'fleet.yaml tests/stand-ins',
  tests: 'tests/shop.test.yaml',
  fleet: 'fleet.yaml',
  manifests: 'tests',
};

test('a repository whose files are in order passes', async () => {
  cpSync(join(root, 'examples/fleet/fleet.yaml'), join(folder, 'fleet.yaml'));
  cpSync(join(root, 'examples/credential-tests'), join(folder, 'tests'), { recursive: true });
  execFileSync(process.execPath, [`${root}main.ts`, 'synth', '--fleet', 'fleet.yaml', '--to', 'manifests'], {
    cwd: folder,
  });
  git('init', '-q');
  git('add', '-A');
  git('commit', '-qm', 'base');
  assert.deepEqual(await runAction(GIVEN), {
    Validate: 0,
    Test: 0,
    'Compare the rendered files': 0,
    Report: 0,
  });
  assert.deepEqual(sarif('validate.sarif').results, []);
  assert.match(reports('comment.md'), /./);
});

test('a change that breaks them is told in SARIF, JUnit and Markdown', async () => {
  const secrets = join(folder, 'tests/stand-ins/secrets.yaml');
  writeFileSync(
    secrets,
    readFileSync(secrets, 'utf8').replaceAll(/(\.dockerconfigjson: ).*/g, '$1bm90IGpzb24='),
  );
  writeFileSync(join(folder, 'manifests/stage/kustomization.yaml'), '# Rendered by pullwright\n', {
    flag: 'a',
  });
  assert.deepEqual(await runAction(GIVEN), {
    Validate: 1,
    Test: 1,
    'Compare the rendered files': 1,
    Report: 0,
  });
  const { results, rules } = sarif('validate.sarif');
  assert.ok(results.length > 0);
  for (const { locations, level } of results) {
    assert.equal(level, 'error');
    assert.equal(locations[0]?.physicalLocation.artifactLocation.uri, 'tests/stand-ins/secrets.yaml');
  }
  assert.ok(rules.length > 0);
  assert.deepEqual(
    sarif('synth.sarif').results.map(({ ruleId }) => ruleId),
    ['ManifestDiffers'],
  );
  assert.match(reports('test.xml'), /<testsuites tests="\d+" failures="[1-9]\d*">/);
  assert.match(reports('comment.md'), /broken/i);
  assert.equal(readFileSync(join(folder, 'summary.md'), 'utf8').endsWith(reports('comment.md')), true);
});

interface Run {
  readonly tool: {
    readonly driver: { readonly name: string; readonly rules: readonly { readonly id: string }[] };
  };
  readonly results: readonly {
    readonly ruleId: string;
    readonly ruleIndex: number;
    readonly level: string;
    readonly message: { readonly text: string };
    readonly locations: readonly {
      readonly physicalLocation: {
        readonly artifactLocation: { readonly uri: string };
        readonly region: { readonly startLine: number; readonly startColumn?: number };
      };
    }[];
  }[];
}

/** A log, held against what the schema of SARIF 2.1.0 requires and GitHub wants. */
function sarif(name: string): Pick<Run, 'results'> & { readonly rules: readonly { readonly id: string }[] } {
  const log = JSON.parse(reports(name)) as { readonly version: string; readonly runs: readonly Run[] };
  assert.equal(log.version, '2.1.0');
  assert.equal(log.runs.length, 1);
  const [run] = log.runs;
  assert.ok(run !== undefined);
  const { name: tool, rules } = run.tool.driver;
  assert.equal(tool, 'pullwright');
  for (const { ruleId, ruleIndex, level, message, locations } of run.results) {
    assert.equal(rules[ruleIndex]?.id, ruleId);
    assert.ok(['error', 'warning'].includes(level), level);
    assert.notEqual(message.text, '');
    assert.equal(locations.length, 1);
    for (const { physicalLocation } of locations) {
      assert.match(physicalLocation.artifactLocation.uri, /^[\w%./~-]+$/);
      assert.ok(physicalLocation.region.startLine >= 1);
      assert.ok((physicalLocation.region.startColumn ?? 1) >= 1);
    }
  }
  return { results: run.results, rules };
}

test("GitLab's job says the same, and fails at its end", async () => {
  const template = readYaml('.gitlab/pullwright.yml') as {
    readonly variables: Readonly<Record<string, string>>;
    readonly pullwright: { readonly script: readonly string[] };
  };
  const env = {
    ...process.env,
    ...template.variables,
    PULLWRIGHT: command,
    PULLWRIGHT_FILES: GIVEN.files,
    PULLWRIGHT_TESTS: GIVEN.tests,
    PULLWRIGHT_FLEET: GIVEN.fleet,
    PULLWRIGHT_MANIFESTS: GIVEN.manifests,
  };
  const ran = await runProcess(['bash', '-e', '-c', template.pullwright.script.join('\n')], {
    cwd: folder,
    env,
  });
  assert.equal(ran.code, 1, ran.stderr);
  for (const name of ['validate.xml', 'test.xml', 'synth.xml']) {
    const [, tests, failures] = /<testsuites tests="(\d+)" failures="(\d+)">/.exec(reports(name)) ?? [];
    assert.ok(Number(failures) > 0, name);
    assert.equal([...reports(name).matchAll(/<testcase /g)].length, Number(tests), name);
    assert.equal([...reports(name).matchAll(/<failure /g)].length, Number(failures), name);
  }
  assert.match(ran.stdout, /#/);
});

test('the hooks of pre-commit take every changed file, and judge those that they know', async () => {
  const hooks = readYaml('.pre-commit-hooks.yaml') as readonly {
    readonly id: string;
    readonly entry: string;
  }[];
  const entry = (id: string): readonly string[] => {
    const [program, ...args] = hooks.find((hook) => hook.id === id)?.entry.split(' ') ?? [];
    assert.equal(program, 'pullwright');
    return args;
  };
  writeFileSync(join(folder, 'compose.yaml'), 'services: {web: {image: a}}\n');
  writeFileSync(join(folder, 'template.yaml'), 'kind: Deployment\nname: {{ .Values.name }}\n');
  writeFileSync(join(folder, 'broken.yaml'), 'kind: Secret\nmetadata: {{\n');
  const validate = (...files: readonly string[]) =>
    runInProcess([...entry('pullwright-validate'), ...files.map((file) => join(folder, file))]);
  assert.equal((await validate('compose.yaml', 'template.yaml', 'fleet.yaml')).code, 0);
  assert.equal((await validate('compose.yaml', 'broken.yaml')).code, 1);
  assert.equal((await validate('tests/stand-ins/secrets.yaml')).code, 1);
  const synth = await runInProcess(
    [...entry('pullwright-synth'), '--fleet', 'fleet.yaml', '--to', 'manifests'],
    { cwd: folder },
  );
  assert.equal(synth.code, 1);
  assert.match(synth.stdout, /changed stage\/kustomization\.yaml/);
});

test('SARIF and JUnit of synth tell what --check found, and nothing else', async () => {
  const ran = await runInProcess(['synth', '--fleet', 'fleet.yaml', '--to', 'out', '-o', 'sarif'], {
    cwd: folder,
  });
  assert.equal(ran.code, 2);
  assert.match(ran.stderr, /expected --check/);
});
