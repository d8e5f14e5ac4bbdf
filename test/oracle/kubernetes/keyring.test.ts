// deadline: 600 s
// needs: Go
/** Keyrings, matching, image names, base64 and documents against the Go code that they follow, answer for answer. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { kubeletKeyring, lookupForKubelet } from '../../../runtime/core/docker-config/kubelet-keyring.ts';
import { matchesImage, parseSchemelessUrl } from '../../../runtime/core/docker-config/match-images.ts';
import {
  type AuthSource,
  apiServerSecretFault,
  parseDockerConfig,
  pullSecretSource,
  unmarshalMap,
} from '../../../runtime/core/docker-config/pull-secret.ts';
import { decodeGoBase64 } from '../../../runtime/core/go/base64.ts';
import { encodeGoJson, type JsonNode, parseGoJson } from '../../../runtime/core/go/json.ts';
import { fromByteText } from '../../../runtime/core/go/text.ts';
import { parseImageReference, pullTag } from '../../../runtime/core/image-reference.ts';
import { redact, reveal } from '../../../runtime/core/redacted.ts';
import { kubeletCredentialHash, kubeletImageError } from '../../support/kubelet-words.ts';
import { meta } from '../../support/meta.ts';
import { test } from '../../support/suite.ts';
import { type AskedSecret, QUESTION, type Question } from './keyring-questions.ts';
import { type Answer, askKubernetes, caseCount, compareAll, SEED } from './oracle.ts';

const cases = caseCount(12_000);

type Lookup = Extract<Question, { Ask: 'lookup' }>;

function answerOf(question: Question): Answer {
  if (question.Ask === 'match') {
    const { Text: pattern, Other: other } = question;
    const wrong = [pattern, other].map(parseSchemelessUrl).find(({ ok }) => !ok);
    return { match: matchesImage(pattern, other), error: wrong?.ok === false ? wrong.goText : '' };
  }
  if (question.Ask === 'image') return image(question.Text);
  if (question.Ask === 'base64') return base64(question.Text);
  if (question.Ask === 'document') return documentAnswer(question.Text);
  return lookup(question as Lookup);
}

function image(text: string): Answer {
  const parsed = parseImageReference(text);
  if (!parsed.ok)
    return { repository: '', tag: '', digest: '', error: kubeletImageError(text, parsed.goText) };
  const { repository, digest = '' } = parsed.reference;
  return { repository, tag: pullTag(parsed.reference) ?? '', digest, error: '' };
}

function base64(text: string): Answer {
  const padded = decodeGoBase64(text, 'padded');
  const raw = decodeGoBase64(text, 'raw');
  const hex = (result: typeof raw): string => (result.ok ? Buffer.from(result.value).toString('hex') : '');
  const fault = (result: typeof raw): string => (result.ok ? '' : result.goText);
  return { padded: hex(padded), paddedError: fault(padded), raw: hex(raw), rawError: fault(raw) };
}

function documentAnswer(text: string): Answer {
  const generic = unmarshalMap(redact(text));
  const parsed = parseGoJson(text);
  const fault = (format: AuthSource['format']): string => {
    const read = parseDockerConfig(redact(text), format);
    return (read.ok ? read.config : read.problem).kubeletFault ?? '';
  };
  const api = apiServerSecretFault({
    type: 'kubernetes.io/dockerconfigjson',
    data: { '.dockerconfigjson': redact(text) },
  });
  return {
    written: generic.ok && parsed.ok ? encodeGoJson(inFloat64(parsed.value)) : '',
    genericError: generic.ok ? '' : generic.goText,
    configError: fault('config.json'),
    legacyError: fault('dockercfg'),
    api: api === undefined ? [] : [api],
  };
}

/** Go keeps of a number what a float64 can hold; what is written keeps whole numbers. */
function inFloat64(node: JsonNode): JsonNode {
  if (node.kind === 'array') return { ...node, items: node.items.map(inFloat64) };
  if (node.kind === 'object')
    return { ...node, members: node.members.map((one) => ({ ...one, value: inFloat64(one.value) })) };
  if (node.kind !== 'number') return node;
  const value = Number(node.literal);
  return { ...node, literal: Object.is(value, -0) ? '-0' : String(value) };
}

function source(name: string, text: string | undefined): AuthSource | undefined {
  return text === undefined ? undefined : { name, format: 'config.json', text: redact(text) };
}

function secretSource(secret: AskedSecret): readonly AuthSource[] {
  const data = { [secret.Key]: redact(Buffer.from(secret.Data).toString('base64')) };
  const found = pullSecretSource({ ...meta('v1 Secret', { name: secret.Name }), type: secret.Type, data });
  return found === undefined ? [] : [found];
}

function lookup(question: Lookup): Answer {
  const parsed = parseImageReference(question.Text);
  if (!parsed.ok) return { error: kubeletImageError(question.Text, parsed.goText) };
  const node = source('', question.Node);
  const plugin = source('', question.Plugin);
  const keyring = kubeletKeyring({
    secrets: question.Secrets.flatMap(secretSource),
    ...(node === undefined ? {} : { node }),
    plugins: plugin === undefined ? [] : [plugin],
  });
  if (!keyring.ok) return { error: keyring.goText };
  const found = lookupForKubelet(keyring.rings, parsed.reference.repository);
  return {
    groups: found.map(({ bytes, source: from }) => `${from} ${fromByteText(bytes)}`),
    credentials: found.map(({ credential, source: from }) => ({
      Username: credential.username,
      Password: reveal(credential.password),
      Email: credential.email,
      Hash: kubeletCredentialHash(credential),
      Secret: from.replace('Secret/', ''),
    })),
  };
}

/** The kubelet's message for an invalid address in brackets is more detailed. */
const ADDRESS_FAULT = /invalid host: ParseAddr\((?:[^"\\]|\\.)*|invalid IP-literal/g;

function withoutAddressFaults(answer: Answer): Answer {
  return JSON.parse(JSON.stringify(answer).replace(ADDRESS_FAULT, 'invalid host')) as Answer;
}

/** A pattern that is no glob matches nothing; that it is none is not said. */
function withoutPatternFault(answer: Answer): Answer {
  return answer['error'] === 'syntax error in pattern' ? { ...answer, error: '' } : answer;
}

/** Equal keys of one source come in random order from Go: sorted within their group on both sides. */
function comparable(answer: Answer, groups: readonly string[]): unknown {
  const { groups: _groups, ...rest } = answer;
  if (!Array.isArray(rest['credentials'])) return rest;
  const tagged = rest['credentials'].map((one, index) => ({
    place: groups.indexOf(groups[index] ?? ''),
    text: JSON.stringify(one),
  }));
  return { credentials: tagged.toSorted((a, b) => a.place - b.place || (a.text < b.text ? -1 : 1)) };
}

test(`${cases} random questions get the same answers`, () => {
  const questions = fc.sample(QUESTION, { numRuns: cases, seed: SEED });
  compareAll(questions, askKubernetes(questions), (question, answer) => {
    const ours = answerOf(question);
    const groups = (ours['groups'] ?? []) as readonly string[];
    assert.deepEqual(
      comparable(withoutAddressFaults(ours), groups),
      comparable(withoutAddressFaults(withoutPatternFault(answer)), groups),
    );
  });
});
