/**
 * The real programs that tests run against, each by the module that finds or builds it: a test file that leads to one of them is
 * not part of `npm test` but of `npm run test:all`.
 */
import { readFileSync } from 'node:fs';
import { basePackages } from '../../build/image/base.ts';
import { installPackages } from '../../site/build.ts';
import { missingRabbitMq } from '../brokers/rabbitmq-node.ts';
import { controlPlaneBinaries, missingControlPlane } from '../control-plane/build.ts';
import {
  argoDefinitions,
  argoPrograms,
  fluxDefinition,
  fluxProgram,
  missingArgo,
  missingFlux,
} from '../gitops/build.ts';
import { helmProgram, missingHelm } from '../helm/build.ts';
import { missingNode, nodeBinaries } from '../node/machine/build.ts';
import { missingJudge } from '../olm/build.ts';
import { missingPods } from '../pull-secret-adapter/container.ts';
import { missingTool } from '../registry/docker-registry.ts';
import { missingPromtool } from './alert-rules.ts';
import { executable } from './executable.ts';
import { missingGo } from './go-program.ts';
import { closureOf } from './reach.ts';
import { missingSystemd } from './systemd.ts';

/** Modules and packages that lead to a real program, with the name of the suite that they make. */
const PARTS: Readonly<Record<string, string>> = {
  'test/control-plane/build.ts': 'control plane',
  'test/node/machine/build.ts': 'node',
  'test/gitops/build.ts': 'GitOps',
  'test/helm/build.ts': 'Helm',
  'test/olm/build.ts': 'OLM',
  'test/brokers/pubsub-node.ts': 'brokers',
  'test/brokers/rabbitmq-node.ts': 'brokers',
  'test/conformance/conformance.test.ts': 'conformance against Go',
  'test/pull-secret-adapter/container.ts': 'containers',
  'test/registry/docker-registry.ts': 'registry',
  'test/support/alert-rules.ts': 'Prometheus',
  'test/support/go-program.ts': 'Go oracles',
  'test/support/go-tools.ts': 'Go oracles',
  'test/support/systemd.ts': 'systemd',
  'playwright-core': 'browsers',
  'site/build.ts': 'site',
};

/** Why a part that a test file names in its line `// needs: …` is not to be had on this machine, if so. */
const MISSING: Readonly<Record<string, () => string | undefined>> = {
  'Argo CD': missingArgo,
  'control plane': missingControlPlane,
  Flux: missingFlux,
  Go: missingGo,
  Helm: missingHelm,
  node: missingNode,
  'operator-verify': missingJudge,
  pods: missingPods,
  promtool: missingPromtool,
  RabbitMQ: missingRabbitMq,
  registry: missingTool,
  systemd: missingSystemd,
};

const NEEDS = /^\/\/ needs: (.+)$/m;

/** Why the test file `file` that starts with `head` cannot run on this machine; undefined when it can. */
export function missingOf(file: string, head: string): string | undefined {
  const needs = NEEDS.exec(head)?.[1]?.split(', ') ?? [];
  for (const part of needs) {
    const missing = MISSING[part];
    if (missing === undefined)
      throw new Error(`${file} has "needs: ${part}": expected one of ${Object.keys(MISSING).join(', ')}`);
    const reason = missing();
    if (reason !== undefined) return reason;
  }
  return undefined;
}

type Progress = (line: string) => void;

/** Build that runs once, before or during the tests, because it would exceed a test file's deadline. */
interface Build {
  readonly name: string;
  /** A test file that leads to this module waits for the build. */
  readonly module: string;
  readonly missing: () => string | undefined;
  readonly run: (progress: Progress) => Promise<unknown>;
}

const BUILDS: readonly Build[] = [
  {
    name: 'control plane',
    module: 'test/control-plane/build.ts',
    missing: missingControlPlane,
    run: controlPlaneBinaries,
  },
  {
    name: 'node',
    module: 'test/node/machine/build.ts',
    missing: missingNode,
    run: async (progress) => {
      await nodeBinaries(progress);
      for (const arch of ['x64', 'arm64'] as const) {
        await executable(arch);
        // A machine of the tests has no network.
        basePackages(arch);
      }
    },
  },
  { name: 'Helm', module: 'test/helm/build.ts', missing: missingHelm, run: helmProgram },
  {
    name: 'Flux',
    module: 'test/gitops/build.ts',
    missing: missingFlux,
    run: async (progress) => {
      await fluxProgram(progress);
      // Inside a test machine there is no network to fetch it from.
      fluxDefinition();
    },
  },
  {
    name: 'Argo CD',
    module: 'test/gitops/build.ts',
    missing: missingArgo,
    run: async (progress) => {
      await argoPrograms(progress);
      argoDefinitions();
    },
  },
  {
    // Two files that install into one folder at the same time would take each other's packages away.
    name: 'site',
    module: 'site/build.ts',
    missing: () => undefined,
    run: async () => installPackages(),
  },
];

/**
 * Starts the builds that `files` need, one after the other.
 *
 * @returns by file: ends when what it needs is built, or has failed, which the file's own tests then report
 */
export function startBuilds(
  files: readonly string[],
  progress: Progress,
): ReadonlyMap<string, Promise<void>> {
  const ready = new Map<string, Promise<void>>();
  let last = Promise.resolve();
  for (const { name, module, missing, run } of BUILDS) {
    const waiting = files.filter((file) => closureOf(file).has(module));
    if (waiting.length === 0 || missing() !== undefined) continue;
    last = last
      .then(() => run(progress))
      .then(
        () => undefined,
        (error: unknown) => progress(error instanceof Error ? error.message : `${name}: build failed`),
      );
    for (const file of waiting) ready.set(file, last);
  }
  return ready;
}

/** The members of `files` that run a real program, each with the name of its suite. */
export function realOf(files: readonly string[]): ReadonlyMap<string, string> {
  const real = new Map<string, string>();
  for (const file of files) {
    const part = [...closureOf(file)].find((name) => Object.hasOwn(PARTS, name));
    const [needed] = NEEDS.exec(readFileSync(file, 'utf8'))?.[1]?.split(', ') ?? [];
    const suite = part === undefined ? needed : PARTS[part];
    if (suite !== undefined) real.set(file, suite);
  }
  return real;
}
