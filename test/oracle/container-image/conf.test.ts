// deadline: 600 s
// needs: Go
/**
 * Configurations of registries, read by ours and by containers/image: which files are refused and why, what the registries
 * are, and where each image is pulled from.
 */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { PullwrightError } from '../../../runtime/core/errors.ts';
import { parseImageReference, pullTag } from '../../../runtime/core/image-reference.ts';
import {
  mergeRegistries,
  parseRegistriesConf,
  type Registry,
} from '../../../runtime/core/mirrors/registries-conf.ts';
import { compileMirrors, resolveMirrors } from '../../../runtime/core/mirrors/resolve.ts';
import { test } from '../../support/suite.ts';
import { caseCount, compareAll, SEED } from '../kubernetes/oracle.ts';
import { CONF_QUESTION, type ConfQuestion } from './conf-questions.ts';
import { IMAGES, isDeliberate } from './deliberate.ts';
import { askContainersImage } from './oracle.ts';

const cases = caseCount(600);

interface Pull {
  /** Why the runtime cannot say where from; empty: it can. */
  readonly error: string;
  readonly prefix?: string;
  readonly sources?: readonly string[];
}

interface Listed extends Omit<Registry, 'mirrors'> {
  readonly mirrors: readonly object[];
}

interface Answer {
  readonly error: string;
  readonly registries?: readonly Listed[];
  readonly images?: readonly Pull[];
}

const pathOf = (index: number): string => (index === 0 ? 'registries.conf' : `${index}.conf`);

function ours({ files }: ConfQuestion): { error: string; registries: readonly Registry[] } {
  try {
    const parsed = files.map((text) => parseRegistriesConf(text));
    return { error: '', registries: mergeRegistries(parsed) };
  } catch (error) {
    assert.ok(error instanceof PullwrightError, String(error));
    return { error: error.message, registries: [] };
  }
}

/** The reason alone: of a text that is no TOML only that it is none, for two parsers say it in their own words. */
function reasonOf(error: string): string {
  const reason = error.replace(/^loading registries configuration "[^"]*": /, '');
  return /^toml: |^validating short-name aliases: |^incompatible types/.test(reason) ? 'unreadable' : reason;
}

function comparable(registry: Listed): object {
  const mirrors = registry.mirrors.map((mirror) => ({ ...mirror, insecure: undefined }));
  return JSON.parse(JSON.stringify({ ...registry, mirrors })) as object;
}

const byPrefix = (a: Listed, b: Listed): number => (a.prefix < b.prefix ? -1 : 1);

/** Pull sources of the image by the mirror rules, including blocked ones, which are checked later. */
function pullOf(registries: readonly Registry[], image: string): Pull {
  const parsed = parseImageReference(image);
  if (!parsed.ok) return { error: parsed.goText };
  const { repository, digest } = parsed.reference;
  const tag = pullTag(parsed.reference);
  const reference =
    repository + (tag === undefined ? '' : `:${tag}`) + (digest === undefined ? '' : `@${digest}`);
  const open = registries.map((registry) => ({ ...registry, blocked: false }));
  const { rule, candidates, skipped } = resolveMirrors(compileMirrors(open), reference);
  if (rule === undefined) return { error: '', prefix: '', sources: [] };
  if (skipped.some(({ reason }) => reason === 'InvalidReference'))
    return { error: 'rewriting', prefix: rule.prefix };
  return { error: '', prefix: rule.prefix, sources: candidates.map((candidate) => candidate.reference) };
}

/** The tag beside a digest is written by the one and dropped by the other before they pull. */
function withoutTags(pull: Pull): Pull {
  if (pull.error.startsWith('rewriting')) return { error: 'rewriting', prefix: pull.prefix ?? '' };
  if (pull.sources === undefined) return pull;
  return { ...pull, sources: pull.sources.map((source) => source.replace(/:[^/:]*@/, '@')) };
}

function compare(question: ConfQuestion, theirs: Answer): void {
  const own = ours(question);
  const wanted = reasonOf(theirs.error);
  // The peer checks all types first, and the two parsers have different messages for invalid TOML.
  if (wanted === 'unreadable' && own.error !== '') return;
  assert.equal(reasonOf(own.error), wanted, `${own.error} | ${theirs.error}`);
  if (theirs.error !== '') return;
  const registries = own.registries.toSorted(byPrefix);
  assert.deepEqual(registries.map(comparable), (theirs.registries ?? []).map(comparable));
  for (const [index, image] of question.images.entries()) {
    if (isDeliberate(IMAGES, image)) continue;
    const wanted = withoutTags(theirs.images?.[index] as Pull);
    assert.deepEqual(withoutTags(pullOf(registries, image)), wanted, image);
  }
}
test(`${cases} random configurations are read alike`, async () => {
  const questions = fc.sample(CONF_QUESTION, { numRuns: cases, seed: SEED });
  const answers = askContainersImage(
    questions.map(({ files, images }) => ({
      Ask: 'conf',
      Files: files.map((Text, index) => ({ Name: pathOf(index), Text })),
      Asked: images,
    })),
  ) as readonly Answer[];
  const accepted = answers.filter(({ error }) => error === '').length;
  assert.ok(accepted > cases / 3 && accepted < cases, `${accepted} of ${cases} accepted`);
  compareAll(questions, answers, compare);
});
