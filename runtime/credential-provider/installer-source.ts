/** What the installer wants of a node, asked of API server and host, and put beside the drop-in before the drop-in is. */
import { accessSync, chmodSync, constants, existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { parse } from 'yaml';
import { removeFile, replaceFile } from '../host/atomic-file.ts';
import { fileError } from '../host/file-errors.ts';
import { sha256Hex } from '../host/sha256.ts';
import type { KubeClient } from '../kube/client.ts';
import { HttpKubeClient } from '../kube/http-client.ts';
import { openTransport } from '../kube/transport.ts';
import { podConnection } from '../node/pod-connection.ts';
import type { Look } from '../node/task.ts';
import { CREDENTIAL_PROVIDER } from '../rules/credential-provider-platform.ts';
import { describeError, PullwrightError } from '../rules/errors.ts';
import { redact } from '../rules/redacted.ts';
import { ABSENT } from '../rules/rollout-journal.ts';
import { VERSION } from '../rules/version.ts';
import type { Logger } from '../telemetry/logger.ts';
import { read, readEnvironment, readUnit } from './installer-host.ts';
import { type InstallPlan, kubeletPointers, NEUTRAL, planInstall } from './installer-plan.ts';

/** How the installer runs. Times are milliseconds. */
export interface InstallerOptions {
  readonly root: string;
  readonly unit: string;
  readonly unitPath: readonly string[];
  readonly configDir: string;
  readonly dropInDir: string;
  readonly stateDir: string;
  readonly binDir: string | undefined;
  readonly executable: string;
  readonly secretAnnotation: boolean;
  readonly busSocket: string;
  readonly windowMs: number;
  readonly settleMs: number;
  readonly healthz: string;
  readonly nodeName: string;
  readonly healthPort: number | undefined;
  readonly pollMs: number;
  readonly serviceAccountDir: string;
  readonly once: boolean;
}

type Env = Readonly<Record<string, string | undefined>>;

const OWN_FILE = /^pullwright-[0-9a-f]{16}\.yaml$/;

/** What is wanted, from the API server and the host; the last good answer stays while there is none. */
export class Source {
  readonly #options: InstallerOptions;
  readonly #env: Env;
  readonly #log: Logger;
  #plan: InstallPlan | PullwrightError | undefined;
  #copiedTo = '';
  #said = '';

  constructor(options: InstallerOptions, env: Env, log: Logger) {
    this.#options = options;
    this.#env = env;
    this.#log = log;
  }

  async refresh(): Promise<void> {
    try {
      const plan = await this.#ask();
      this.#prepare(plan);
      this.#plan = plan;
    } catch (error) {
      const problem =
        error instanceof PullwrightError
          ? error
          : new PullwrightError(describeError(error), { code: 'Unknown' });
      this.#log.warn('Cannot find out what is wanted', { error: describeError(problem) });
      this.#plan ??= problem;
    }
  }

  look(present: string | undefined): Look {
    const digest = present === undefined ? ABSENT : sha256Hex(present);
    const plan = this.#plan;
    if (plan === undefined || plan instanceof PullwrightError)
      return { present: digest, wanted: undefined, ...(plan === undefined ? {} : { problem: plan }) };
    if (!plan.ok) {
      const { code, message, hint } = plan;
      return { present: digest, wanted: undefined, problem: new PullwrightError(message, { code, hint }) };
    }
    const isNothing = plan.dropIn === NEUTRAL && present === undefined;
    const wanted = isNothing ? ABSENT : sha256Hex(plan.dropIn);
    return {
      present: digest,
      from: plan.config?.path ?? '',
      entries: plan.verdicts.filter(({ verdict }) => verdict === 'Rendered').length,
      wanted: {
        digest: wanted,
        source: wanted,
        removes: plan.config === undefined,
        bytes: redact(new Uint8Array(Buffer.from(plan.dropIn))),
        ledgerDuring: {},
        ledgerAfter: {},
      },
    };
  }

  /** Files of earlier entries: once the node is in sync nothing points at them. */
  removeOld(): void {
    const plan = this.#plan;
    if (plan === undefined || plan instanceof PullwrightError || !plan.ok) return;
    const folder = this.#options.root + this.#options.configDir;
    try {
      for (const name of readdirSync(folder))
        if (OWN_FILE.test(name) && name !== basename(plan.config?.path ?? '')) removeFile(join(folder, name));
    } catch {
      // It costs a few hundred bytes; the next look tries again.
    }
  }

  async #ask(): Promise<InstallPlan> {
    const { root, unit, unitPath, nodeName, configDir, secretAnnotation } = this.#options;
    const client = await connect(this.#env, this.#options.serviceAccountDir);
    const node = await client.get({ apiVersion: 'v1', kind: 'Node', name: nodeName });
    if (node === undefined)
      throw new PullwrightError(`Cannot find Node "${nodeName}"`, {
        code: 'NodeMissing',
        hint: 'Set --node-name to the name of the Node object',
      });
    const matchImages = await readMatchImages(client);
    const files = readUnit({ root, unit, unitPath, ownDropIn: basename(CREDENTIAL_PROVIDER.dropIn) });
    const pointers = kubeletPointers([...readEnvironment(root, files), ...files.map(({ text }) => text)]);
    const present = pointers.config === undefined ? undefined : read(root, pointers.config)?.text;
    return planInstall({
      node,
      matchImages,
      ...(secretAnnotation ? { annotationKeys: ['pullwright.dev/image-pull-secrets'] } : {}),
      unit: files,
      pointers: {
        binDir: this.#options.binDir ?? pointers.binDir ?? CREDENTIAL_PROVIDER.binDir,
        ...(pointers.config === undefined ? {} : { config: pointers.config }),
      },
      ...(present === undefined ? {} : { present }),
      configDir,
      digest: sha256Hex,
      parseYaml: (text) => parse(text) as unknown,
    });
  }

  /** What the drop-in points at is there before the drop-in is. */
  #prepare(plan: InstallPlan): void {
    if (!plan.ok) return;
    this.#sayVerdicts(plan);
    if (plan.config === undefined) return;
    const { root } = this.#options;
    this.#copyExecutable(root + plan.binDir);
    const path = root + plan.config.path;
    mkdirSync(dirname(path), { recursive: true, mode: 0o755 });
    if (read('', path)?.text !== plan.config.text)
      replaceFile(path, Buffer.from(plan.config.text), { mode: 0o644 });
  }

  #copyExecutable(folder: string): void {
    const path = join(folder, CREDENTIAL_PROVIDER.name);
    if (this.#copiedTo === path && isExecutable(path)) return;
    const wanted = bytesOf(this.#options.executable);
    mkdirSync(folder, { recursive: true, mode: 0o755 });
    const isThere = existsSync(path) && Buffer.compare(bytesOf(path), wanted) === 0;
    if (!isThere) replaceFile(path, wanted, { mode: 0o755 });
    if (!isExecutable(path)) chmodSync(path, 0o755);
    this.#copiedTo = path;
  }

  #sayVerdicts(plan: InstallPlan & { ok: true }): void {
    const left = plan.verdicts.filter(({ verdict }) => verdict !== 'Rendered');
    const said = JSON.stringify(left);
    if (said === this.#said) return;
    this.#said = said;
    for (const { pattern, message } of left)
      this.#log.warn('Entry is left out', { pattern, detail: message });
  }
}

function bytesOf(path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    throw fileError('read', path, error);
  }
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

async function connect(env: Env, folder: string): Promise<KubeClient> {
  const connection = podConnection(env, folder);
  return new HttpKubeClient({
    connection,
    transport: await openTransport(connection),
    userAgent: `pullwright-installer/${VERSION}`,
  });
}

async function readMatchImages(client: KubeClient): Promise<readonly string[]> {
  const { group, kind, objectName: name } = CREDENTIAL_PROVIDER;
  for (const version of ['v1', 'v1alpha1']) {
    const object = await client.get({ apiVersion: `${group}/${version}`, kind, name });
    if (object !== undefined)
      return (
        (object as { readonly spec?: { readonly matchImages?: readonly string[] } }).spec?.matchImages ?? []
      );
  }
  return [];
}
