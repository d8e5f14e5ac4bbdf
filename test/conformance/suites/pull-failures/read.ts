/** Diagnosis of a pod from the API server, as `doctor` makes it. */

import type { KubeObject } from '../../../../runtime/core/kubernetes/object.ts';
import { judgePod } from '../../../../runtime/diagnose/checks/chain.ts';
import { lookAt } from '../../../../runtime/diagnose/model/look.ts';
import { ObjectStore } from '../../../../runtime/engine/store.ts';
import { meta } from '../../../support/meta.ts';
import { type ConformanceCase, type ConformanceSuite, type Mutation, rows } from '../../suite.ts';

interface Input {
  readonly image: string;
  readonly reason?: string;
  readonly message?: string;
  readonly events?: readonly { readonly reason: string; readonly message: string }[];
  readonly container?: 'init' | 'ephemeral';
  readonly phase?: string;
  readonly unscheduled?: boolean;
  readonly volumeImage?: string;
}

interface Expected {
  readonly failing: boolean;
  readonly cause?: string;
  readonly host?: string;
  readonly quoted?: boolean;
  readonly places?: readonly { readonly place: string; readonly cause: string }[];
}

const NAMESPACE = 'web';
const LISTS = {
  plain: ['containers', 'containerStatuses'],
  init: ['initContainers', 'initContainerStatuses'],
  ephemeral: ['ephemeralContainers', 'ephemeralContainerStatuses'],
} as const;

export const readCases: (document: unknown) => readonly ConformanceCase<Input, Expected>[] = rows;

function present(fields: { readonly [Field in keyof Expected]: Expected[Field] | undefined }): Expected {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as never;
}

function podOf(input: Input): KubeObject {
  const { image, reason, message = '', container, phase = 'Pending', unscheduled, volumeImage } = input;
  const [containers, statuses] = LISTS[container ?? 'plain'];
  const other = { name: 'other', image: 'registry.example.com/other:1' };
  const waiting = reason === undefined ? undefined : { reason, message };
  const state = waiting === undefined ? (phase === 'Running' ? { running: {} } : {}) : { waiting };
  const isPlain = container === undefined;
  return {
    ...meta('v1 Pod', { name: 'app-0', namespace: NAMESPACE }),
    spec: {
      ...(unscheduled === true ? {} : { nodeName: 'node-1' }),
      serviceAccountName: 'default',
      ...(isPlain ? {} : { containers: [other] }),
      [containers]: [{ name: 'app', image }],
      ...(volumeImage === undefined ? {} : { volumes: [{ name: 'v', image: { reference: volumeImage } }] }),
    },
    status: {
      phase,
      ...(isPlain ? {} : { containerStatuses: [{ ...other, state: { running: {} } }] }),
      ...(unscheduled === true ? {} : { [statuses]: [{ name: 'app', image, state }] }),
    },
  };
}

function eventsOf({ events = [], container, volumeImage }: Input): readonly KubeObject[] {
  const fieldPath = `spec.${LISTS[container ?? 'plain'][0]}{app}`;
  return events.map(({ reason, message }, at) => ({
    ...meta('v1 Event', { name: `app-0.${at}`, namespace: NAMESPACE }),
    involvedObject: {
      kind: 'Pod',
      name: 'app-0',
      namespace: NAMESPACE,
      ...(volumeImage === undefined ? { fieldPath } : {}),
    },
    reason,
    message,
    lastTimestamp: new Date(Date.UTC(2026, 0, 1) + at * 1000).toISOString(),
  }));
}

/** The pod `web/app-0` of a case, and its events. */
export function objectsOf(input: Input): readonly KubeObject[] {
  return [podOf(input), ...eventsOf(input)];
}

function answer(input: Input): Expected {
  const store = new ObjectStore();
  for (const object of objectsOf(input)) store.set(object);
  const puller = { namespace: NAMESPACE, serviceAccount: 'default', pod: { kind: 'Pod', name: 'app-0' } };
  const findings = judgePod(lookAt(store, puller, { unread: [], hosted: false }));
  const found = findings.find(({ cause }) => cause !== undefined);
  if (found === undefined) return { failing: false };
  const { cause, host, sources, evidence, message } = found;
  const isQuoted =
    cause === 'unknown' && (evidence === undefined || message.includes(JSON.stringify(evidence)));
  return present({
    failing: found.severity === 'error',
    cause,
    host,
    quoted: isQuoted || undefined,
    places: sources?.map(({ source, ...rest }) => ({ place: source, ...rest })),
  });
}

export type PullFailures = ConformanceSuite<Input, Expected>;

/** A suite of one file, with the edit that must make it fail. */
export function pullFailures(mutation: Omit<Mutation, 'file'>): PullFailures {
  return {
    cases: readCases,
    answer,
    loose: ['host', 'places', 'quoted'],
    mutation: { file: 'runtime/diagnose/model/pull-failure.ts', ...mutation },
  };
}
