/**
 * The conformance cases of the CRD, answered by a real API server that holds our definition: accepted or not, with the same
 * message and causes, and what is stored.
 */
import { isDeepStrictEqual } from 'node:util';
import { credentialProviderCrd } from '../../../runtime/credential-provider/kind.ts';
import type { ConformanceCase, ConformanceSuite } from '../../conformance/suite.ts';
import { missingControlPlane } from '../../control-plane/build.ts';
import { type ControlPlane, startControlPlane } from '../../control-plane/control-plane.ts';
import { installCrd } from '../../control-plane/crds.ts';

interface Body {
  readonly metadata?: Readonly<Record<string, unknown>>;
  readonly spec?: unknown;
  readonly [field: string]: unknown;
}

interface Input {
  readonly apiVersion: string;
  readonly op: string;
  readonly object?: Body;
  readonly initial?: Body;
  readonly status?: unknown;
}

interface Answer {
  readonly code: number;
  readonly message: string | undefined;
  readonly causes: readonly unknown[];
  readonly stored: unknown;
  readonly generationBumped: boolean | undefined;
}

interface Case extends Input {
  readonly id: string;
  readonly code: number;
  readonly message?: string;
  readonly causes?: readonly unknown[];
  readonly stored?: unknown;
  readonly generationBumped?: boolean;
}

let plane: Promise<ControlPlane> | undefined;

async function withCrd(): Promise<ControlPlane> {
  const started = await startControlPlane();
  const { metadata, ...rest } = credentialProviderCrd();
  await installCrd(started.client, { ...rest, metadata });
  return started;
}

export const crdSuite: ConformanceSuite<Input, Answer> = {
  missing: missingControlPlane,
  cases(document) {
    const { apiVersion, cases } = document as { apiVersion: string; cases: readonly Case[] };
    return cases.map((one): ConformanceCase<Input, Answer> => {
      if (!['create', 'update', 'updateStatus'].includes(one.op))
        throw new Error(`unknown operation "${one.op}"`);
      return { name: one.id, input: { ...one, apiVersion }, expected: expectedOf(one) };
    });
  },
  answer,
  // Status cases do not specify the stored object.
  accepts: (actual, expected) =>
    isDeepStrictEqual(
      { ...actual, stored: expected.stored === undefined ? undefined : actual.stored },
      expected,
    ),
  finish: async () => {
    await (await plane)?.stop();
    plane = undefined;
  },
  mutation: { file: 'runtime/credential-provider/kind.ts', replace: "self != '*'", by: "self != '?'" },
};

function expectedOf(one: Case): Answer {
  return {
    code: one.code,
    message: one.message,
    causes: one.causes ?? [],
    stored: one.stored,
    generationBumped: one.generationBumped,
  };
}

async function answer(input: Input): Promise<Answer> {
  plane ??= withCrd();
  const { client } = await plane;
  const path = `/apis/${input.apiVersion}/criocredentialproviderconfigs`;
  await client.request('DELETE', `${path}/cluster`);
  if (input.op === 'create')
    return answerOf(await client.request('POST', `${path}?fieldValidation=Strict`, input.object), input);
  const before = await client.request('POST', path, input.initial ?? plainObject(input.apiVersion));
  const known = before.body.metadata as { resourceVersion: string; generation: number };
  const isStatus = input.op === 'updateStatus';
  const body = isStatus
    ? { ...(before.body as Body), status: input.status }
    : withVersion(input.object ?? {}, known);
  const target = `${path}/cluster${isStatus ? '/status' : ''}?fieldValidation=Strict`;
  return answerOf(await client.request('PUT', target, body), input, known.generation);
}

function plainObject(apiVersion: string): Body {
  return { apiVersion, kind: 'CRIOCredentialProviderConfig', metadata: { name: 'cluster' }, spec: {} };
}

function withVersion(object: Body, { resourceVersion }: { readonly resourceVersion: string }): Body {
  return { ...object, metadata: { ...object.metadata, resourceVersion } };
}

interface Reply {
  readonly status: number;
  // The API server's own JSON.
  // oxlint-disable-next-line typescript/no-explicit-any
  readonly body: any;
}

function answerOf({ status, body }: Reply, input: Input, generation?: number): Answer {
  const isAccepted = status < 300;
  const {
    kind,
    apiVersion,
    spec,
    status: state,
    metadata = {},
  } = body as Record<string, never> & { metadata?: { generation?: number; name?: string } };
  const stored = {
    apiVersion,
    kind,
    metadata: { name: metadata.name },
    spec,
    ...(state === undefined ? {} : { status: state }),
  };
  const bumped =
    generation !== undefined && metadata.generation !== undefined && metadata.generation > generation;
  return {
    code: status,
    message: isAccepted ? undefined : body.message,
    causes: isAccepted ? [] : (body.details?.causes ?? []),
    stored: isAccepted ? stored : undefined,
    generationBumped: isAccepted && input.op === 'update' ? bumped : undefined,
  };
}
