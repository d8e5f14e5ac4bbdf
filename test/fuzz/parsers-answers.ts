/** Requests and answers that cluster programs read: admission reviews, the HyperFleet API, Google's APIs, Jobs, watches. */

import type { KubeObject } from '../../runtime/core/kubernetes/object.ts';
import { redact } from '../../runtime/core/redacted.ts';
import { givenUp, managersOf, ownedBy, plainPatch, writtenBy } from '../../runtime/kube/drift.ts';
import { jsonLines } from '../../runtime/kube/http-client.ts';
import { yamlMistake } from '../../runtime/kube/yaml.ts';
import { readJobResult } from '../../runtime/pull-secret-adapter/adapter/observe.ts';
import { clusterHint, parseCloudEvent } from '../../runtime/pull-secret-adapter/cloud-event.ts';
import { adapterStatuses, clusterDocument } from '../../runtime/pull-secret-adapter/cluster.ts';
import { callHyperfleet } from '../../runtime/pull-secret-adapter/hyperfleet-api.ts';
import { explainGcpError, GcpError } from '../../runtime/pull-secret-adapter/job/gcp-error.ts';
import { callGoogleApi } from '../../runtime/pull-secret-adapter/job/secret-manager.ts';
import { planCluster } from '../../runtime/pull-secret-adapter/plan.ts';
import { answerText, readReview } from '../../runtime/pull-secret-injection/webhook/server.ts';
import { parseCatalogOverrides } from '../../runtime/registry-overrides/olm-catalogs.ts';
import { plantedPassword } from '../support/canary.ts';
import { AUTHS, jsonOf } from './corpus.ts';
import { MANAGED } from './corpus-cluster.ts';
import { answering, holds, type Parser, unlessNamed, valueOf } from './parser.ts';
import { registriesOf } from './parsers-pull-secret.ts';

const CLUSTER = {
  id: 'cls-123',
  name: 'one',
  generation: 2,
  labels: { a: 'b' },
  spec: { provider: 'gcp', gcp: { projectId: 'cust', region: 'r' }, pullSecret: { data: AUTHS } },
  status: {
    conditions: [{ type: 'Ready', status: 'True', observed_generation: 2 }],
    adapters: { validation: { available: 'True' }, dns: { available: true } },
  },
};
const STATUS = {
  adapter: 'dns',
  observed_generation: 2,
  conditions: [{ type: 'Available', status: 'True' }],
  data: { a: 1 },
  last_report_time: '2026-01-01T00:00:00Z',
};
const REVIEW = {
  apiVersion: 'admission.k8s.io/v1',
  kind: 'AdmissionReview',
  request: {
    uid: 'u',
    operation: 'CREATE',
    resource: { group: '', version: 'v1', resource: 'pods' },
    namespace: 'web',
    object: { metadata: { name: 'p', labels: { a: 'b' } }, spec: { imagePullSecrets: [{ name: 's' }] } },
  },
};

export const ANSWER_PARSERS: readonly Parser[] = [
  {
    name: 'admission review',
    corpus: [jsonOf(REVIEW)],
    run: (text) => {
      const request = readReview(text);
      if (request === undefined) return undefined;
      const { uid, operation, namespace = '', subResource = '' } = request;
      for (const field of [uid, operation, namespace, subResource])
        holds(typeof field === 'string', 'a field');
      return answerText(uid, { outcome: 'unchanged', warnings: [namespace.repeat(3)] });
    },
  },
  {
    name: 'event about a cluster',
    corpus: [
      '{"specversion":"1.0","id":"1","source":"s","type":"cluster.create","data":{"id":"cls-123","generation":3}}',
      '{"specversion":"1.0","id":"1","source":"s","type":"x.cluster.y","data":"{\\"id\\":\\"cls-123\\"}"}',
    ],
    unit: '{"data":',
    run: (text) => {
      const parsed = parseCloudEvent({ body: new Uint8Array(Buffer.from(text)), attributes: {} });
      return parsed.ok ? clusterHint(parsed.event) : parsed;
    },
  },
  {
    name: 'cluster of the HyperFleet API',
    corpus: [jsonOf(CLUSTER), jsonOf({ ...CLUSTER, deleted_time: 'x', spec: { platform: { type: 'GCP' } } })],
    unit: '{"type":"a","status":"b"},',
    run: (text) => {
      const { data, error } = clusterDocument.safeParse(valueOf(text));
      if (error) return error.issues[0]?.message;
      const { pullSecret, ...rest } = data;
      const named = unlessNamed([jsonOf(rest)], rest);
      const plan = planCluster(data, []);
      return [pullSecret, named, unlessNamed([jsonOf(rest), ...registriesOf(pullSecret)], plan)];
    },
  },
  {
    name: 'status of another adapter',
    corpus: [jsonOf(STATUS)],
    unit: '{"type":"a","status":"b"},',
    run: (text) => {
      const statuses = adapterStatuses.parse([valueOf(text)]);
      return planCluster(clusterDocument.parse(CLUSTER), statuses, [statuses[0]?.adapter ?? '', 'dns']);
    },
  },
  {
    name: 'answer of the HyperFleet API',
    corpus: [jsonOf({ items: [CLUSTER], total: 1 }), '{"code":"hyperfleet-1","reason":"no"}', '', '17'],
    run: async (text) => {
      const waits: number[] = [];
      const options = {
        baseUrl: 'https://api.example.com',
        userAgent: 'test',
        pause: (ms: number) => {
          waits.push(ms);
          return Promise.resolve();
        },
      };
      for (const status of [200, 404, 429])
        try {
          const http = answering(text, status);
          const { code } = await callHyperfleet({ ...options, http }, 'GET', '/clusters');
          holds(code.length <= 64, 'the code');
        } catch (error) {
          if (status !== 429) throw error;
        }
      for (const ms of waits) holds(ms >= 0 && ms <= 34_000, 'the pause');
      return waits;
    },
  },
  {
    name: "answer of Google's APIs",
    corpus: [
      jsonOf({
        error: {
          code: 429,
          status: 'RESOURCE_EXHAUSTED',
          message: plantedPassword('google'),
          details: [{ reason: 'RATE_LIMIT_EXCEEDED' }, { retryDelay: '1.5s' }],
        },
      }),
      '{"name":"projects/1/secrets/a"}',
      '3',
    ],
    unit: '{"reason":"a"},',
    run: async (text) => {
      const options = {
        token: () => Promise.resolve(redact(plantedPassword('bearer'))),
        timeoutMs: 1000,
        signal: new AbortController().signal,
      };
      const asked = { name: 'AddSecretVersion', method: 'GET', url: 'https://x.example.com' };
      const said: string[] = [];
      for (const status of [200, 403, 429, 503])
        try {
          await callGoogleApi(asked, { ...options, http: answering(text, status) });
        } catch (error) {
          if (!(error instanceof GcpError)) throw error;
          holds(
            error.details.retryAfterMs === undefined || Number.isFinite(error.details.retryAfterMs),
            'the wait',
          );
          said.push(explainGcpError(error, 'project').message);
        }
      return said;
    },
  },
  {
    name: 'result of a Job',
    corpus: [jsonOf({ status: 'failure', reason: 'QuotaExceeded', message: 'm', details: { a: 1, b: 'c' } })],
    run: (text) => readJobResult(text),
  },
  {
    name: 'overrides of catalogs',
    corpus: ['a=b,c=d', '=', 'registry.redhat.io/redhat/redhat-operator-index=m.io/a'],
    unit: 'a=b,',
    run: (text) => {
      const { overrides, ignored } = parseCatalogOverrides(text);
      return [overrides && [...overrides], ignored];
    },
  },
  {
    name: 'fields of managers',
    corpus: [
      MANAGED,
      jsonOf({
        metadata: {
          managedFields: [
            {
              manager: 'm',
              operation: 'Apply',
              fieldsV1: { 'f:a': { 'k:{"name":"x"}': { '.': {} }, 'v:"y"': {} } },
            },
          ],
        },
      }),
    ],
    unit: '{"manager":"a"},',
    run: (text) => {
      const object = valueOf(text) as KubeObject;
      const { managedFields } = (object as { metadata?: KubeObject['metadata'] } | null)?.metadata ?? {};
      // The API server writes this list; only the content of `fieldsV1` is free.
      if (
        !Array.isArray(managedFields) ||
        managedFields.some((one) => typeof one !== 'object' || one === null)
      )
        return undefined;
      const owned = ownedBy(object, 'pullwright-global-pull-secret');
      return [
        givenUp(owned, {}).length,
        writtenBy(object, 'm'),
        managersOf(object, ['data', 'a']).length,
        plainPatch(object, object, 'pullwright-other'),
      ];
    },
  },
  {
    name: 'lines of a watch',
    corpus: [
      `${jsonOf({ type: 'ADDED', object: { kind: 'Node' } })}\n${jsonOf({ type: 'BOOKMARK' })}\n`,
      '\n\n',
    ],
    unit: '{"type":"ADDED"}\n',
    run: async (text) => {
      const bytes = new Uint8Array(Buffer.from(text));
      const half = Math.floor(bytes.length / 2);
      const read = async (...pieces: readonly Uint8Array[]): Promise<string> => {
        const found: unknown[] = [];
        const source = async function* () {
          yield* pieces;
        };
        for await (const value of jsonLines(source())) found.push(value);
        return jsonOf(found);
      };
      const whole = await read(bytes);
      holds((await read(bytes.subarray(0, half), bytes.subarray(half))) === whole, 'the pieces');
      return whole;
    },
  },
  {
    name: 'mistake of YAML, in words that hold nothing of it',
    corpus: ['Block scalar header includes extra characters: |c2VjcmV0', 'Unexpected "a" at line 1'],
    unit: '" at line 1',
    run: (text) => {
      const said = yamlMistake({ code: 'UNEXPECTED_TOKEN', message: text });
      holds(said.length <= 200, 'the length');
      return said;
    },
  },
];
