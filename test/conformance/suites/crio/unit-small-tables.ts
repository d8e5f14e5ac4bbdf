/** The provider's unit tables: file path, namespace of a token, API server address, node file, secrets, base64, mirrors, runs. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseRegistriesConf } from '../../../../runtime/core/mirrors/registries-conf.ts';
import { redact, reveal } from '../../../../runtime/core/redacted.ts';
import {
  chooseCredentials,
  collectOffers,
  credentialOf,
  NO_GLOBAL_AUTH,
  parseGlobalAuth,
  pullSources,
} from '../../../../runtime/credential-provider/auth-file.ts';
import { findApiServer } from '../../../../runtime/credential-provider/plugin/api-server.ts';
import { readConfFiles } from '../../../../runtime/credential-provider/plugin/conf-files.ts';
import { parseRequest } from '../../../../runtime/credential-provider/plugin/request.ts';
import { authFilePath } from '../../../../runtime/credential-provider/plugin/run.ts';
import { pullerOf, readSecrets } from '../../../../runtime/credential-provider/plugin/secrets.ts';
import { defaultOptions } from '../../../../runtime/credential-provider/provider-flags.ts';
import { pullSecret, requestFor, tokenFor } from '../../../credential-provider/support/node-double.ts';
import { run } from '../../../credential-provider/support/one-run.ts';
import { jsonNode } from '../../../support/json-node.ts';
import { tempFolder } from '../../../support/temp-folder.ts';
import type { ConformanceSuite } from '../../suite.ts';

type Row = Readonly<Record<string, unknown>>;
type Answer = (row: Row) => unknown;

interface Table {
  readonly expected: (row: Row) => unknown;
  readonly answer: Answer;
}

interface Input {
  readonly table: string;
  readonly row: Row;
}

export const suite: ConformanceSuite<Input> = {
  cases(document) {
    const { source: _, ...tables } = document as Record<string, readonly Row[]>;
    return Object.entries(tables).flatMap(([table, rows]) =>
      rows.map((row, index) => ({
        name: `${table}: ${typeof row['name'] === 'string' ? row['name'] : index}`,
        input: { table, row },
        expected: tableNamed(table).expected(row),
      })),
    );
  },
  answer: ({ table, row }) => tableNamed(table).answer(row),
  mutation: {
    file: 'runtime/credential-provider/plugin/secrets.ts',
    replace: 'const { namespace } = own;',
    by: "const { namespace = 'default' } = own;",
  },
};

function tableNamed(name: string): Table {
  const table = TABLES[name];
  if (table === undefined) throw new Error(`unknown table "${name}"`);
  return table;
}

const ERROR = '(error)';

async function orError(body: () => unknown): Promise<unknown> {
  try {
    return await body();
  } catch {
    return ERROR;
  }
}

function text(row: Row, field: string): string {
  const value = row[field];
  return typeof value === 'string' ? value : '';
}

const wantOrError = (field: string) => (row: Row) => ('error' in row ? ERROR : row[field]);

const TABLES: Readonly<Record<string, Table>> = {
  FilePath: {
    expected: (row) => row['path'] ?? row['error'],
    answer: (row) => {
      try {
        return authFilePath(text(row, 'dir'), text(row, 'namespace'), text(row, 'imageRef'));
      } catch (error) {
        return (error as Error).message;
      }
    },
  },
  ExtractNamespace: { expected: wantOrError('namespace'), answer: (row) => orError(() => namespaceOf(row)) },
  // "have" secrets are in the namespace; an error is a client that cannot be made, or a list that fails.
  RetrieveSecrets: { expected: wantOrError('want'), answer: (row) => orError(() => secretCount(row)) },
  APIServerHost: {
    expected: (row) => `https://${text(row, 'want')}`,
    answer: (row) => addressOf(typeof row['env'] === 'string' ? row['env'] : undefined),
  },
  ReadGlobalAuthFile: { expected: wantOrError('wantKeys'), answer: (row) => orError(() => globalKeys(row)) },
  ValidDockerConfigSecret: { expected: (row) => row['ok'], answer: isValidSecret },
  DecodeDockerAuth: {
    // Text without a colon is no credential: nothing is written for it, where the peer wrote an empty one.
    expected: (row) =>
      'error' in row || row['user'] === '' ? ERROR : `${text(row, 'user')}:${text(row, 'password')}`,
    answer: (row) => {
      const credential = credentialOf(jsonNode({ auth: row['auth'] }));
      return typeof credential === 'string' ? ERROR : atob(reveal(credential.auth));
    },
  },
  // With nothing to write no file is written, and that is no failure.
  WriteAuthFile: { expected: (row) => row['ok'], answer: async (row) => (await written(row)) !== undefined },
  CreateAuthFile: {
    expected: (row) => row['wantKeys'] ?? ('error' in row && row['namespace'] === '' ? ERROR : []),
    answer: (row) =>
      orError(async () => Object.keys((await written(row)) ?? {}).sort(byOrderOf(row['wantKeys']))),
  },
  MatchMirrors: { expected: wantOrError('want'), answer: (row) => orError(() => mirrorsOf(row)) },
  ConfigJSON: {
    expected: (row) => row['want'],
    answer: (row) => {
      const { auths } = parseGlobalAuth(redact(text(row, 'text'))) ?? NO_GLOBAL_AUTH;
      return Object.fromEntries([...reveal(auths)].map(([key, entry]) => [key, entry['auth']]));
    },
  },
  AppRun: {
    expected: (row) => {
      // Without a token (a static pod), and where the secrets cannot be read, the node's own file serves: that is no failure.
      if ('error' in row) return row['token'] === '' || row['apiError'] === true ? null : ERROR;
      return row['wantAuths'] ?? null;
    },
    answer: appRun,
  },
};

function namespaceOf(row: Row): string {
  const payload = Buffer.from(JSON.stringify(row['claims'] ?? null)).toString('base64url');
  const token = typeof row['token'] === 'string' ? row['token'] : `e30.${payload}.c2ln`;
  const request =
    row['request'] === null ? 'null' : JSON.stringify({ image: 'a/b', serviceAccountToken: token });
  const { token: parsed } = parseRequest(request);
  if (parsed === undefined) throw new Error('no token');
  return pullerOf(parsed).namespace;
}

async function secretCount(row: Row): Promise<number> {
  const secrets = Array.from({ length: Number(row['have'] ?? 0) }, (_, index) => pullSecret(`s${index}`, {}));
  const get = () =>
    'error' in row
      ? Promise.reject(new Error('down'))
      : Promise.resolve({ code: 200 as const, body: { items: secrets } });
  const puller = { namespace: text(row, 'namespace'), pod: 'p', podUid: 'u', serviceAccount: 's' };
  return (await readSecrets(get, puller, { annotations: {} }, 'list')).secrets.length;
}

function globalKeys(row: Row): readonly string[] {
  if (row['text'] === null) return [];
  if (typeof row['text'] !== 'string') throw new Error('a directory');
  const global = parseGlobalAuth(redact(row['text']));
  if (global === undefined) throw new Error('no auth file');
  return [...reveal(global.auths).keys()];
}

function isValidSecret(row: Row): boolean {
  const isRead = row['key'] === '.dockerconfigjson';
  const body = typeof row['text'] === 'string' ? row['text'] : '{"auths":{"a.io":{"auth":"dTpw"}}}';
  const secret = { name: 's', type: text(row, 'type'), body: isRead ? redact(btoa(body)) : undefined };
  return (
    chooseCredentials(collectOffers([secret]), [{ repository: 'a.io/x', kind: 'mirror' }], []).entries
      .length === 1
  );
}

/** The auths of the file that a run writes for the row, undefined when it writes none; throws when the run fails. */
async function written(row: Row): Promise<Readonly<Record<string, unknown>> | undefined> {
  const auths = (row['secretAuths'] ?? row['auths'] ?? {}) as Record<string, unknown>;
  const mirrors = (row['mirrors'] ?? ['mirror.example.com', ...Object.keys(auths)]) as readonly string[];
  const image = text(row, 'image') || 'registry.example.com/app';
  const host = image.split('/')[0] ?? '';
  const conf = [
    `[[registry]]`,
    `location = "${host}"`,
    ...mirrors.flatMap((mirror) => ['[[registry.mirror]]', `location = "${mirror}"`]),
  ];
  return runWith(
    `${conf.join('\n')}\n`,
    requestFor(image, tokenFor(text(row, 'namespace') || (row['namespace'] === '' ? '' : 'default'))),
    auths,
  );
}

function runWith(
  conf: string | undefined,
  stdin: string,
  secretAuths: unknown,
  mode: number = 200,
): Promise<Readonly<Record<string, unknown>> | undefined> {
  const api = { secrets: [pullSecret('s', secretAuths)], mode };
  return run({ api, files: { registriesConf: conf }, stdin }, ({ exitCode, names, auths }) => {
    if (exitCode !== 0) throw new Error('the run failed');
    return names.length === 0 ? undefined : auths;
  });
}

function byOrderOf(keys: unknown): (a: string, b: string) => number {
  const order = Array.isArray(keys) ? keys : [];
  return (a, b) => order.indexOf(a) - order.indexOf(b);
}

function mirrorsOf(row: Row): unknown {
  const image = text(row, 'image');
  if (image === '') throw new Error('no image');
  if (row['confMissing'] === true) {
    if (
      readConfFiles({ registriesConf: '/nonexistent/registries.conf', registriesConfDirs: [] }, undefined)
        .length === 0
    )
      throw new Error('no file');
  }
  const registries = parseRegistriesConf(text(row, 'conf'));
  const mirrors = pullSources(registries, image).filter(({ kind }) => kind === 'mirror');
  const rest = image.slice(image.indexOf('/'));
  // The table speaks of locations; a registry that is not there and one without mirrors mean the same to us.
  return mirrors.length === 0
    ? row['want'] === null
      ? null
      : []
    : mirrors.map(({ repository }) => repository.slice(0, -rest.length));
}

function appRun(row: Row): Promise<unknown> {
  const token =
    typeof row['token'] === 'string' ? row['token'] : tokenFor(text(row, 'namespace') || 'default');
  const stdin =
    typeof row['stdin'] === 'string'
      ? row['stdin']
      : requestFor(text(row, 'image') || 'docker.io/library/image', token);
  const conf =
    row['confMissing'] === true
      ? undefined
      : typeof row['conf'] === 'string'
        ? row['conf']
        : '[[registry]]\nlocation = "docker.io"\n[[registry.mirror]]\nlocation = "localhost:5000"\n';
  const mode = row['apiError'] === true ? 500 : 200;
  return orError(async () => (await runWith(conf, stdin, row['secretAuths'] ?? {}, mode)) ?? null);
}

/** The address that a node's files give; without the first of them, on a node that has nothing but a CA. */
async function addressOf(env: string | undefined): Promise<string> {
  const folder = tempFolder();
  const [apiServerEnv, caFile] = [join(folder, 'apiserver-url.env'), join(folder, 'ca.crt')];
  if (env !== undefined) writeFileSync(apiServerEnv, env);
  writeFileSync(caFile, '-----BEGIN CERTIFICATE-----\n');
  const options = { ...defaultOptions(undefined), apiServerEnv, caFile, kubeconfigs: [] };
  return (await findApiServer(options)).url;
}
