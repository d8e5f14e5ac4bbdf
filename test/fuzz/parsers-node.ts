/** Inputs of the programs on nodes: the API server's answers, the kubelet's token, units, state files, the system bus. */
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { redact } from '../../runtime/core/redacted.ts';
import {
  authFile,
  chooseCredentials,
  collectOffers,
  NO_GLOBAL_AUTH,
  parseGlobalAuth,
} from '../../runtime/credential-provider/auth-file.ts';
import { readRecord } from '../../runtime/credential-provider/installer/source.ts';
import { kubeletPointers } from '../../runtime/credential-provider/kubelet-unit.ts';
import { apiClient } from '../../runtime/credential-provider/plugin/api-server.ts';
import {
  pullerOf,
  readSecrets,
  referencedSecrets,
} from '../../runtime/credential-provider/plugin/secrets.ts';
import { parseArguments } from '../../runtime/credential-provider/provider-flags.ts';
import { redirectOf } from '../../runtime/http/client.ts';
import { HttpError } from '../../runtime/http/http-error.ts';
import { StateFolder } from '../../runtime/node/state.ts';
import { type Bus, type BusCall, SystemdOverBus } from '../../runtime/node/systemd.ts';
import { plantedPassword } from '../support/canary.ts';
import { AUTHS, jsonOf } from './corpus.ts';
import { answering, holds, type Parser, unlessNamed, valueOf } from './parser.ts';

const folder = mkdtempSync(join(tmpdir(), 'pullwright-fuzz-'));
const PULLER = { namespace: 'n', podUid: 'u', pod: 'p', serviceAccount: 's' };
const SERVER = { url: 'https://api.example.com', ca: '' };
const SOURCES = [{ repository: 'quay.io/a', kind: 'primary' }] as const;

const SECRET_LIST = jsonOf({
  kind: 'SecretList',
  items: ['a', 'b'].map((name) => ({
    metadata: { name },
    type: 'kubernetes.io/dockerconfigjson',
    data: { '.dockerconfigjson': Buffer.from(AUTHS).toString('base64') },
  })),
});

function apiOf(text: string) {
  return apiClient(SERVER, redact('t'), new AbortController().signal, Promise.resolve(answering(text)));
}

function token(claims: unknown): string {
  return `e30.${Buffer.from(jsonOf(claims)).toString('base64url')}.c2ln`;
}

export const NODE_PARSERS: readonly Parser[] = [
  {
    name: 'redirect of an HTTP answer',
    corpus: ['https://cdn.example.com/blob?x=1#y', '/v2/other', '//user:pw@other.example.com/'],
    unit: '../a/',
    run: (text) => {
      const asked = {
        method: 'GET',
        url: 'https://r.example.com/v2/',
        headers: { Authorization: 'Basic x' },
      };
      try {
        const next = redirectOf({ status: 302, header: () => text }, asked);
        const isOwn = next?.url.startsWith('https://r.example.com/') === true;
        holds(isOwn || next?.headers?.['Authorization'] === undefined, 'the credential');
        return isOwn;
      } catch (error) {
        if (error instanceof HttpError) return error.failure;
        throw error;
      }
    },
  },
  {
    name: 'Secrets of a namespace',
    corpus: [SECRET_LIST, '{"items":[]}', '{"items":null}'],
    unit: '{"metadata":{"name":"a"}},',
    run: async (text) => {
      const { secrets } = await readSecrets(apiOf(text), PULLER, { annotations: {} }, 'list');
      const offers = collectOffers(secrets);
      const choice = chooseCredentials(offers, SOURCES, ['b']);
      const global = parseGlobalAuth(redact(AUTHS)) ?? NO_GLOBAL_AUTH;
      const file = authFile({ choice, sources: SOURCES, global });
      holds(parseGlobalAuth(file.text) !== undefined, 'the auth file');
      const names = secrets.flatMap(({ name, type }) => [name, type]);
      return unlessNamed(
        [...names, ...choice.entries.map(({ key }) => key)],
        [secrets, offers.skipped, choice],
      );
    },
  },
  {
    name: 'references to Secrets',
    corpus: [
      jsonOf({
        spec: { imagePullSecrets: [{ name: 'a' }, { name: 'b.c' }] },
        imagePullSecrets: [{ name: 'd' }],
      }),
    ],
    unit: '{"name":"a"},',
    run: (text) => referencedSecrets(apiOf(text), PULLER),
  },
  {
    name: 'ServiceAccount token',
    // Claims that stay JSON are put into a token; what is one already is cut and mixed as it is.
    corpus: [
      jsonOf({ 'kubernetes.io': { namespace: 'a', pod: { name: 'p' }, serviceaccount: { name: 's' } } }),
      token({ 'kubernetes.io': { namespace: plantedPassword('claim').toLowerCase() } }),
    ],
    unit: 'e30',
    run: (text) => {
      const isToken = !text.startsWith('{');
      return pullerOf(redact(isToken ? text : `e30.${Buffer.from(text).toString('base64url')}.c2ln`));
    },
  },
  {
    name: 'configuration of the provider',
    corpus: [jsonOf({ 'auth-dir': '/run/auth', 'budget-ms': 5000, 'registries-conf-dir': ['/a', '/b'] })],
    unit: '"a":1,',
    run: (text) => [
      parseArguments(['--config', '/c.json'], '/root', () => text),
      parseArguments(text.split(' '), undefined, () => '{}'),
    ],
  },
  {
    name: "a kubelet's unit",
    corpus: [
      '[Service]\nEnvironmentFile=-/etc/kubernetes/kubelet-env\nExecStart=/usr/bin/kubelet \\\n  --image-credential-provider-config=/etc/a.yaml \\\n  --image-credential-provider-bin-dir "/usr/libexec"\n',
    ],
    unit: '--image-credential-provider-config ',
    run: (text) => kubeletPointers(`${text}\n${text.toUpperCase()}`),
  },
  {
    name: "the installer's record",
    corpus: [jsonOf({ path: '/usr/bin/a', sha256: 'ab', version: '0.1.0' })],
    run: (text) => {
      const file = join(folder, 'installed.json');
      writeFileSync(file, text);
      return readRecord(file);
    },
  },
  {
    name: "the node's state folder",
    corpus: [
      jsonOf({
        version: 1,
        journal: { version: 1, breakers: {}, restarts: [1] },
        ledger: { 'auths/a': ['d'] },
      }),
      jsonOf({ version: 1, mode: 384, uid: 0, gid: 0, bytes: Buffer.from(AUTHS).toString('base64') }),
      '{"version":1,"absent":true}',
    ],
    run: (text) => {
      for (const name of ['journal.json', 'saved.json']) writeFileSync(join(folder, name), text);
      const state = new StateFolder(folder);
      const loaded = state.load();
      const copy = state.loadCopy();
      if (typeof copy === 'object') {
        state.saveCopy(copy);
        holds(jsonOf(state.loadCopy()) === jsonOf(copy), 'the copy');
      }
      if (!loaded.damaged) {
        state.store(loaded);
        const again = new StateFolder(folder).load();
        holds(
          jsonOf([again.checkpoint, again.owned]) === jsonOf([loaded.checkpoint, loaded.owned]),
          'the journal',
        );
      }
      return unlessNamed([jsonOf(loaded)], [loaded.damaged, copy]);
    },
  },
  {
    name: 'answer of the system bus',
    corpus: [
      jsonOf([
        {
          ActiveState: { value: 'active' },
          SubState: { value: 'running' },
          LoadState: { value: 'loaded' },
          InvocationID: { value: [1, 2, 255] },
          Job: { value: [0, '/'] },
        },
      ]),
      '["/org/freedesktop/systemd1/unit/a"]',
      '[]',
    ],
    run: async (text) => {
      // What the bus carries is typed; the list of values is what is made of it.
      const value = valueOf(text);
      const body = Array.isArray(value) ? (value as readonly unknown[]) : [];
      const bus: Bus = {
        call: (call: BusCall) => Promise.resolve(call.member === 'LoadUnit' ? ['/u'] : body),
        onSignal: () => undefined,
        lost: new Promise<never>(() => undefined),
        close: () => undefined,
      };
      return new SystemdOverBus({ connect: () => Promise.resolve(bus) }).state('kubelet.service');
    },
  },
];
