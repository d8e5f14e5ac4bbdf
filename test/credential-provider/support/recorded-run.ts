/** One run of the provider over a recorded input, and its externally visible results. */
import { startApi } from './api-double.ts';
import { oracleLookup } from './crio-oracle.ts';
import { authFiles, makeNode, PATIENT_MS, runOn } from './node-double.ts';
import { fileNameOf, filesOf, type Input, imageOf } from './recorded-input.ts';

export interface Observed {
  readonly exitCode: number;
  /** Per pull source the `user:password` that CRI-O sends, `(none)` for none. */
  readonly credentials: Readonly<Record<string, string>>;
  readonly fileName: string | null;
  /** Bytes, where the recorded ones are correct. */
  readonly fileText?: string | undefined;
  readonly response: string;
  readonly lastLogLine: string;
  readonly firstRequest: string;
}

/** Runs the provider. @param sources pull sources of the image */
export async function observe(input: Input, sources: readonly string[]): Promise<Observed> {
  const api = await startApi(
    { secrets: input.secrets, mode: input.api, ignoresSelector: input.apiIgnoresFieldSelector },
    { host: (input.apiserverUrlEnv ?? '').includes('::1') ? '::1' : '127.0.0.1' },
  );
  if (input.api === 'down') await api.close();
  const node = makeNode({ ...filesOf(input, api.port), ca: api.ca });
  try {
    const override = input.env['CONTAINERS_REGISTRIES_CONF_OVERRIDE'];
    const isSlow = input.api === 'hang' || input.api === 'slow';
    const options = { budgetMs: isSlow ? 600 : PATIENT_MS };
    const ran = await runOn(node, input.stdin, override === undefined ? { options } : { override, options });
    const paths = api.requests.map(({ path }) => path);
    return seen(input, { ...ran, files: authFiles(node), paths, name: fileNameOf(input), sources });
  } finally {
    node.remove();
    if (input.api !== 'down') await api.close();
  }
}

interface Seen {
  readonly exitCode: number;
  readonly stdout: string;
  readonly log: readonly string[];
  readonly files: ReturnType<typeof authFiles>;
  readonly paths: readonly string[];
  readonly name: string;
  readonly sources: readonly string[];
}

function seen(input: Input, { exitCode, stdout, log, files, paths, name, sources }: Seen): Observed {
  const file = files[name];
  refuseCarelessness(files, name, log);
  return {
    exitCode,
    credentials: lookups(authsIn(file?.text ?? '{}'), sources),
    fileName: file === undefined ? null : name,
    fileText: file === undefined ? undefined : withoutRecord(file.text),
    response: responseKind(stdout, imageOf(input)),
    lastLogLine: exitCode === 0 ? 'fine' : (log.at(-1)?.split(':')[0] ?? ''),
    firstRequest: paths[0] ?? '(none)',
  };
}

/** The bytes without our record; unexpected bytes stay unchanged, so that they differ. */
function withoutRecord(text: string): string {
  try {
    const { 'pullwright.dev/record': record, ...rest } = JSON.parse(text) as Record<string, unknown>;
    return record !== undefined && bytesOf({ ...rest, 'pullwright.dev/record': record }) === text
      ? bytesOf(rest)
      : text;
  } catch {
    return text;
  }
}

export type Auths = Parameters<typeof oracleLookup>[0];

/** Entries of an auth file; empty for an invalid one. */
export function authsIn(text: string): Auths {
  try {
    return (JSON.parse(text) as { auths?: Auths }).auths ?? {};
  } catch {
    return {};
  }
}

/** CRI-O's credential for each pull source. */
export function lookups(auths: Auths, sources: readonly string[]): Observed['credentials'] {
  return Object.fromEntries(sources.map((source) => [source, oracleLookup(auths, source) ?? '(none)']));
}

/** Texts that no case may show. */
function refuseCarelessness(files: Seen['files'], name: string, log: readonly string[]): void {
  const other = Object.keys(files).filter((one) => one !== name);
  if (other.length > 0) throw new Error(`left behind: ${other.join(', ')}`);
  const mode = files[name]?.mode ?? 0o600;
  if (mode !== 0o600) throw new Error(`mode ${mode.toString(8)}`);
  if (log.length > 20) throw new Error(`${log.length} log lines`);
  if (files[name]?.text.includes('"Og=="') === true) throw new Error('an empty credential');
}

function responseKind(stdout: string, image: string): string {
  if (stdout === '') return 'none';
  const { auth, ...rest } = JSON.parse(stdout) as Record<string, unknown>;
  const fixed = {
    kind: 'CredentialProviderResponse',
    apiVersion: 'credentialprovider.kubelet.k8s.io/v1',
    cacheKeyType: 'Image',
    cacheDuration: '0s',
  };
  if (JSON.stringify(rest) !== JSON.stringify(fixed)) return stdout;
  if (auth === undefined) return 'empty';
  return JSON.stringify(auth) === JSON.stringify({ [image]: { username: '', password: '' } })
    ? 'private'
    : stdout;
}

/** The file as Go writes it. */
export function bytesOf(file: unknown): string {
  const text = JSON.stringify(file, null, '\t');
  return `${text.replace(/[<>&]/g, (char) => `\\u00${char.charCodeAt(0).toString(16)}`)}\n`;
}
