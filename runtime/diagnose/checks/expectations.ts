/**
 * Expectations about pull credentials: read from a document, and judged against an explanation. They make unit tests for pull
 * credentials that run in any pipeline.
 */
import { isRecord } from '../../core/record.ts';
import type { EntryPlace, Explanation } from '../model/types.ts';

/** What an image should be pulled with. */
export interface Expected {
  /** `Secret/namespace/name`, or a part of it from its end; the file of a node counts as well as the Secret behind it. */
  readonly secret?: string;
  readonly key?: string;
  readonly username?: string;
}

export interface Expectation {
  readonly name: string;
  readonly image: string;
  readonly namespace?: string;
  readonly pod?: string;
  readonly serviceAccount?: string;
  readonly node?: string;
  /** A place that CRI-O pulls from, by the start of its reference; without it, the kubelet's first credential is judged. */
  readonly at?: string;
  /** `denied`: no credential is offered. `anonymous`: none is, and an attempt without one is made. */
  readonly expect: Expected | 'denied' | 'anonymous';
}

export type ReadExpectations =
  | { readonly ok: true; readonly expectations: readonly Expectation[]; readonly from: readonly string[] }
  /** Every mistake, with its path. */
  | { readonly ok: false; readonly problems: readonly string[] };

const TEXT_FIELDS = ['image', 'namespace', 'pod', 'serviceAccount', 'node', 'at'] as const;
const EXPECT_FIELDS = ['secret', 'key', 'username'] as const;

/**
 * Reads a document: `{ from?: [...], tests: [{ image, expect, ... }] }`.
 */
export function readExpectations(document: unknown): ReadExpectations {
  const problems: string[] = [];
  const top = record(document, '', problems);
  for (const field of Object.keys(top)) {
    if (!['from', 'tests'].includes(field)) problems.push(`${field}: is no field, expected from or tests`);
  }
  const tests = Array.isArray(top['tests']) ? (top['tests'] as readonly unknown[]) : undefined;
  if (tests === undefined || tests.length === 0)
    problems.push('tests: must be a list with at least one test');
  const expectations = (tests ?? []).map((one, index) => readOne(one, `tests[${index}]`, problems));
  const from = top['from'] === undefined ? [] : Array.isArray(top['from']) ? top['from'] : [top['from']];
  if (from.some((dir) => typeof dir !== 'string'))
    problems.push('from: must be a folder or a list of folders');
  return problems.length > 0
    ? { ok: false, problems }
    : { ok: true, expectations, from: from as readonly string[] };
}

function readOne(value: unknown, path: string, problems: string[]): Expectation {
  const raw = record(value, path, problems);
  const known: readonly string[] = ['name', 'expect', ...TEXT_FIELDS];
  for (const field of Object.keys(raw)) {
    if (!known.includes(field))
      problems.push(`${path}.${field}: is no field, expected one of ${known.join(', ')}`);
  }
  for (const field of ['name', ...TEXT_FIELDS]) {
    if (raw[field] !== undefined && typeof raw[field] !== 'string')
      problems.push(`${path}.${field}: must be a text`);
  }
  if (raw['image'] === undefined) problems.push(`${path}.image: is missing`);
  const texts = Object.fromEntries(
    TEXT_FIELDS.flatMap((field) => (raw[field] === undefined ? [] : [[field, raw[field]]])),
  );
  const expect = readExpect(raw['expect'], `${path}.expect`, problems);
  return { image: '', ...texts, name: textOr(raw['name'], textOr(raw['image'], path)), expect };
}

function readExpect(value: unknown, path: string, problems: string[]): Expectation['expect'] {
  if (value === 'denied' || value === 'anonymous') return value;
  if (typeof value !== 'object' || value === null) {
    problems.push(`${path}: must be denied, anonymous, or an object with secret, key or username`);
    return 'denied';
  }
  const raw = record(value, path, problems);
  const known: readonly string[] = EXPECT_FIELDS;
  for (const [field, text] of Object.entries(raw)) {
    if (!known.includes(field))
      problems.push(`${path}.${field}: is no field, expected secret, key or username`);
    else if (typeof text !== 'string') problems.push(`${path}.${field}: must be a text`);
  }
  if (Object.keys(raw).length === 0) problems.push(`${path}: must be secret, key or username`);
  return raw;
}

function textOr(value: unknown, other: string): string {
  return typeof value === 'string' ? value : other;
}

function record(value: unknown, path: string, problems: string[]): Readonly<Record<string, unknown>> {
  if (isRecord(value)) return value;
  problems.push(`${path === '' ? 'the document' : path}: must be an object`);
  return {};
}

/** What would be sent, as far as an expectation can tell. */
type Found =
  | { readonly what: 'entry'; readonly entry: EntryPlace; readonly username: string }
  | { readonly what: 'anonymous' | 'blocked'; readonly why: string };

/** Why `expected` does not hold; undefined when it does. */
export function judgeExpectation({ at, expect }: Expectation, explanation: Explanation): string | undefined {
  const found = at === undefined ? foundByKubelet(explanation) : foundAt(explanation, at);
  if (found.what === 'blocked' && expect !== 'denied') return found.why;
  if (expect === 'denied')
    return found.what === 'entry' ? `expected no credential, ${described(found)}` : undefined;
  if (expect === 'anonymous')
    return found.what === 'anonymous' ? undefined : `expected no credential, ${described(found)}`;
  if (found.what !== 'entry') return `expected ${JSON.stringify(expect)}, ${described(found)}`;
  const differs = differences(expect, found);
  return differs === undefined ? undefined : `${differs}, ${described(found)}`;
}

function foundByKubelet({ kubelet }: Explanation): Found {
  if (kubelet.blockedBy !== undefined) {
    return {
      what: 'blocked',
      why: `the pod can pull nothing: ${kubelet.blockedBy.source} ${kubelet.blockedBy.why}`,
    };
  }
  const [first] = kubelet.tried;
  if (first === undefined) return { what: 'anonymous', why: 'no credential matches' };
  return { what: 'entry', entry: first, username: first.username };
}

function foundAt(explanation: Explanation, at: string): Found {
  const place = explanation.places.find(({ reference }) => reference.startsWith(at));
  if (place === undefined) return { what: 'blocked', why: `nothing is pulled from "${at}"` };
  const { crio } = place;
  if (crio.what === 'kubelet') return foundByKubelet(explanation);
  if (crio.what === 'entry') return { what: 'entry', entry: crio.entry, username: crio.username };
  if (crio.what === 'nothing') return { what: 'anonymous', why: crio.why };
  return {
    what: 'blocked',
    why: crio.what === 'failure' ? crio.why : `the credential helper "${crio.helper}" is asked`,
  };
}

function differences(
  { secret, key, username }: Expected,
  found: Found & { what: 'entry' },
): string | undefined {
  const names = [found.entry.origin, found.entry.source].filter((name) => name !== undefined);
  if (secret !== undefined && !names.some((name) => name === secret || name.endsWith(`/${secret}`))) {
    return `expected Secret "${secret}"`;
  }
  if (key !== undefined && key !== found.entry.key) return `expected key "${key}"`;
  return username !== undefined && username !== found.username ? `expected user "${username}"` : undefined;
}

function described(found: Found): string {
  if (found.what !== 'entry') return found.why;
  const { key, origin, source } = found.entry;
  return `found user "${found.username}" by "${key}" of ${origin ?? source}`;
}
