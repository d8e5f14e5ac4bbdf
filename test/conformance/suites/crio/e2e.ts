/** The provider's end-to-end cases: one secret, one pod image, three states of registries.conf, and the version flag. */
import { command } from '../../../../runtime/credential-provider/plugin/command.ts';
import { pullSecret, requestFor, tokenFor } from '../../../credential-provider/support/node-double.ts';
import { run } from '../../../credential-provider/support/one-run.ts';
import type { ConformanceSuite } from '../../suite.ts';

interface Case {
  readonly name: string;
  readonly conf?: string | null;
  readonly wantAuthFile?: string | null;
  readonly wantEntries?: number;
  readonly wantLogLast?: string;
  readonly wantLog?: readonly string[];
  readonly args?: readonly string[];
  readonly stdoutHas?: string;
}

interface Input extends Case {
  readonly secret: { readonly namespace: string; readonly name: string; readonly auths: unknown };
  readonly image: string;
}

interface Outcome {
  readonly file?: string | null;
  readonly entries?: number;
  readonly lastLine?: string;
  readonly lines?: readonly string[];
  readonly stdoutHas?: boolean;
}

const AUTH_DIR = '/etc/crio/auth';
const CONF = '/etc/containers/registries.conf';

export const suite: ConformanceSuite<Input, Outcome> = {
  cases(document) {
    const { secret, pod, cases } = document as Pick<Input, 'secret'> & {
      pod: { image: string };
      cases: readonly Case[];
    };
    // The kubelet names the repository in full.
    const image = pod.image.replace(/^docker\.io\/(?=[^/]+$)/, 'docker.io/library/');
    return cases.map((one) => ({
      name: one.name,
      input: { ...one, secret, image },
      expected: expectedOf(one),
    }));
  },
  answer: (input) => (input.args === undefined ? provided(input) : flag(input)),
  mutation: {
    file: 'runtime/credential-provider/plugin/decide.ts',
    replace: 'files.length === 0',
    by: 'files.length === 1',
  },
};

function expectedOf(one: Case): Outcome {
  const wanted: Outcome = {
    ...(one.wantAuthFile === undefined ? {} : { file: one.wantAuthFile }),
    ...(one.wantEntries === undefined ? {} : { entries: one.wantEntries }),
    ...(one.wantLogLast === undefined ? {} : { lastLine: one.wantLogLast }),
    ...(one.wantLog === undefined ? {} : { lines: one.wantLog }),
    ...(one.stdoutHas === undefined ? {} : { stdoutHas: true }),
  };
  if (Object.keys(wanted).length === 0) throw new Error(`nothing is wanted of "${one.name}"`);
  return wanted;
}

function provided({ secret, conf, image, ...input }: Input): Promise<Outcome> {
  const setup = {
    api: { secrets: [pullSecret(secret.name, secret.auths)] },
    files: { registriesConf: conf ?? undefined },
    stdin: requestFor(image, tokenFor(secret.namespace)),
  };
  return run(setup, ({ log, auths, names: [name], node }) => {
    const asOnNode = log.map((line) => line.replaceAll(node.options.registriesConf, CONF));
    return {
      ...(input.wantAuthFile === undefined
        ? {}
        : { file: name === undefined ? null : `${AUTH_DIR}/${name}` }),
      ...(input.wantEntries === undefined ? {} : { entries: Object.keys(auths).length }),
      ...(input.wantLogLast === undefined ? {} : { lastLine: asOnNode.at(-1) ?? '' }),
      ...(input.wantLog === undefined ? {} : { lines: asOnNode }),
    };
  });
}

async function flag(input: Input): Promise<Outcome> {
  let stdout = '';
  await command.run(input.args ?? [], {
    stdin: process.stdin,
    stdout: { write: (text) => (stdout += text) },
    stderr: process.stderr,
    env: {},
    cwd: '/',
    signal: new AbortController().signal,
  });
  return { stdoutHas: stdout.includes(input.stdoutHas ?? '(nothing wanted)') };
}
