/** One run of the provider on a node double with an API double, and its results. */
import { statSync } from 'node:fs';
import { type ApiState, startApi } from './api-double.ts';
import {
  authFiles,
  makeNode,
  type NodeDouble,
  type NodeFiles,
  type PullSecretObject,
  pullSecret,
  type RunResult,
  requestFor,
  runOn,
  tokenFor,
} from './node-double.ts';

export const IMAGE = 'docker.io/library/nginx';
export const CONF =
  '[[registry]]\nlocation = "docker.io"\n\n[[registry.mirror]]\nlocation = "mirror.example.com/hub"\n';

export function auth(pair: string): { auth: string } {
  return { auth: Buffer.from(pair).toString('base64') };
}

export const SECRET: PullSecretObject = pullSecret('mirror', { 'mirror.example.com': auth('u:p') });
/** The auth file of the image in namespace team-a. */
export const LEFT = 'team-a-7e59ad64326bc321517fb6fc6586de5ee149178394d9edfa2a877176cdf6fad5.json';

export interface Setup {
  readonly api?: Partial<ApiState>;
  readonly files?: NodeFiles;
  readonly stdin?: string;
  readonly prepare?: (node: NodeDouble) => void;
  readonly options?: Parameters<typeof runOn>[2];
}

export interface Seen extends RunResult {
  readonly auths: Readonly<Record<string, { auth?: string }>>;
  readonly names: readonly string[];
  readonly paths: readonly string[];
  readonly node: NodeDouble;
}

/** Runs once and returns the result of `judge`, which inspects the node before it is removed. */
export async function run<T>(setup: Setup, judge: (seen: Seen) => T): Promise<T> {
  const api = await startApi({ secrets: [SECRET], ...setup.api });
  const node = makeNode({
    registriesConf: CONF,
    apiServerEnv: `KUBERNETES_SERVICE_HOST=127.0.0.1\nKUBERNETES_SERVICE_PORT=${api.port}\n`,
    ca: api.ca,
    ...setup.files,
  });
  try {
    setup.prepare?.(node);
    const ran = await runOn(node, setup.stdin ?? requestFor(IMAGE, tokenFor('team-a')), setup.options);
    const files =
      statSync(node.options.authDir, { throwIfNoEntry: false })?.isFile() === true ? {} : authFiles(node);
    const [text] = Object.values(files).map((file) => file.text);
    const auths = text === undefined ? {} : JSON.parse(text).auths;
    return judge({
      ...ran,
      auths,
      names: Object.keys(files),
      paths: api.requests.map(({ path }) => path),
      node,
    });
  } finally {
    node.remove();
    await api.close();
  }
}
