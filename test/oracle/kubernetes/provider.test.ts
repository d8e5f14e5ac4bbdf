// deadline: 600 s
// needs: Go
/**
 * Files, durations and responses of credential providers against the kubelet's own code.
 *
 * Files are registered over an empty folder of programs, so that a good one ends at the first program that is missing. The
 * words must be the same, so that a hint of ours can be searched for in the log of the kubelet.
 */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { formatGoDuration, parseGoDuration } from '../../../runtime/core/go/duration.ts';
import {
  decodeCredentialProviderConfig,
  kubeletRefusal,
} from '../../../runtime/credential-provider/config.ts';
import { parseYaml } from '../../../runtime/kube/yaml.ts';
import { executions, kubeletTakes } from '../../credential-provider/support/kubelet-response.ts';
import { test } from '../../support/suite.ts';
import { askKubernetes, caseCount, compareAll, SEED, textOf } from './oracle.ts';
import { DURATION, PROVIDER_FILE, PULLS, RESPONSE } from './provider-questions.ts';

const cases = caseCount(600);
const VERSION = 'credentialprovider.kubelet.k8s.io/v1';

/**
 * The kubelet's words, as far as they are a rule: those of Go's decoders are only told apart from each other. Go says which key
 * is there twice where our parser says only that one is.
 */
function comparable(refusal: string | undefined): string {
  if (refusal === undefined || refusal === '') return '';
  if (!refusal.startsWith('error decoding config')) return refusal;
  const strict = /strict decoding error: (unknown field "[^"]*"(?:, unknown field "[^"]*")*)$/.exec(refusal);
  return strict?.[1] ?? 'cannot be decoded';
}

test(`${cases} random files are taken or refused alike, with the same words`, () => {
  const texts = fc.sample(PROVIDER_FILE, { numRuns: cases, seed: SEED });
  const answers = askKubernetes(texts.map((text) => ({ Ask: 'provider-config', Files: { config: text } })));
  compareAll(texts, answers, (text, answer) => {
    const refusal = kubeletRefusal(text, parseYaml);
    const theirs = textOf(answer, 'error');
    assert.equal(comparable(refusal), comparable(theirs), theirs);
    if (refusal !== undefined) return;
    const decoded = decodeCredentialProviderConfig(text, parseYaml);
    assert.ok(decoded.ok);
    assert.deepEqual(withoutEmpty(decoded.config), withoutEmpty(answer['decoded']));
  });
});

/** Go's empty values differ by field; the version is the requested one. */
function withoutEmpty(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutEmpty);
  if (typeof value !== 'object' || value === null) return value;
  const kept = Object.entries(value).flatMap(([name, inner]) => {
    if (inner === null || inner === '' || (Array.isArray(inner) && inner.length === 0)) return [];
    if (name === 'apiVersion' && 'kind' in value) return [];
    if (name === 'defaultCacheDuration') return [[name, parseGoDuration(String(inner))]];
    return [[name, withoutEmpty(inner)]];
  });
  return Object.fromEntries(kept);
}

test(`${cases} random durations are read and written alike`, () => {
  const texts = fc.sample(DURATION, { numRuns: cases, seed: SEED });
  const answers = askKubernetes(texts.map((text) => ({ Ask: 'duration', Text: text })));
  compareAll(texts, answers, (text, answer) => {
    const mine = parseGoDuration(text);
    assert.equal(mine, answer['error'] === '' ? answer['nanoseconds'] : undefined);
    // Beyond 104 days a number is not exact any more.
    if (mine !== undefined && Math.abs(mine) < 2 ** 53) assert.equal(formatGoDuration(mine), answer['text']);
  });
});

interface Outcome {
  readonly Ran: boolean;
  readonly Error: string;
}

test(`${Math.ceil(cases / 3)} random responses are taken and kept alike`, () => {
  const asked = fc.sample(fc.tuple(RESPONSE, PULLS, fc.constantFrom('0s', '1h')), {
    numRuns: Math.ceil(cases / 3),
    seed: SEED,
  });
  const answers = askKubernetes(
    asked.map(([Stdout, Pulls, DefaultCacheDuration]) => ({
      Ask: 'response',
      Response: { Stdout, Version: VERSION, DefaultCacheDuration, Pulls },
    })),
  );
  compareAll(asked, answers, ([stdout, pulls, byDefault], answer) => {
    const outcomes = answer['outcomes'] as readonly Outcome[];
    const taken = kubeletTakes(stdout);
    const about = JSON.stringify(outcomes);
    assert.equal(taken !== undefined, outcomes[0]?.Error === '', about);
    const calls = pulls.map(([image, pod]) => ({ image, pod, atMs: 0 }));
    const kept = (parseGoDuration(taken?.cacheDuration ?? byDefault) ?? 0) / 1e6;
    const runs = executions(calls, {
      cacheKeyType: taken?.cacheKeyType ?? '',
      cacheDurationMs: taken === undefined ? 0 : kept,
    });
    assert.deepEqual(
      outcomes.map(({ Ran }) => Ran),
      runs,
      about,
    );
  });
});
