/** The way of an image from a pod to a registry, out of what `doctor` and `explain` say. */
import { firstBroken } from '../diagnose/doctor.ts';
import type { DoctorInput, Link } from '../diagnose/doctor-types.ts';
import type { Explanation } from '../diagnose/explain.ts';
import type { EntryPlace, ExplainedPlace, Sent } from '../diagnose/explain-types.ts';
import type { EntryOfPull, ReportKubelet, ReportPlace, ReportPull, ReportVerdict } from './types.ts';

/** One workload or pod that was examined. */
export interface ExaminedPod {
  readonly cluster: string;
  readonly input: DoctorInput;
  /** Of `input`. */
  readonly links: readonly Link[];
  /** Pods that it stands for. */
  readonly pods: number;
  /** Whether all of it runs now: then what is wrong shows with the next pull on a node that lacks the image. */
  readonly runs: boolean;
}

/** Entries that lost are listed up to here; they are about the image's own registry first. */
const MOST_LOST = 6;

/** One for each image. */
export function reportPulls({ cluster, input, links, pods, runs }: ExaminedPod): readonly ReportPull[] {
  const verdict = milder(verdictOf(links), runs);
  return input.images.map(({ text, explanation, fault }): ReportPull => {
    const base = {
      id: pullId(cluster, input.pod, text),
      namespace: input.namespace,
      object: input.pod,
      pods,
      image: text,
    };
    if (explanation === undefined)
      return {
        ...base,
        verdict: 'broken',
        secrets: [],
        kubelet: { blocked: fault ?? 'cannot be read', tried: [], lost: [], others: 0 },
        places: [],
        containerd: 'failure',
        skipped: [],
        findings: [],
      };
    return {
      ...base,
      verdict: milder(worseBy(explanation, verdict), runs),
      secrets: explanation.secrets.map(({ name, listedBy, state }) => ({ name, listedBy, state })),
      kubelet: kubeletOf(explanation),
      places: explanation.places.map(placeOf),
      containerd: containerdOf(explanation),
      skipped: explanation.skipped.map(({ reference, from, why }) => ({
        reference,
        ...(from === undefined ? {} : { from }),
        why,
      })),
      findings: explanation.findings.map(({ severity, message, fix }) => ({
        severity,
        message,
        ...(fix === undefined ? {} : { fix }),
      })),
    };
  });
}

/**
 * Names one pull in a report: for permalinks.
 *
 * @example
 * ```ts
 * import { pullId } from './pulls.ts';
 * import assert from 'node:assert/strict';
 *
 * assert.equal(pullId('clusters/prod', 'Deployment/shop/web', 'quay.io/a:1'), 'clusters/prod Deployment/shop/web quay.io/a:1');
 * ```
 */
export function pullId(cluster: string, object: string, image: string): string {
  return `${cluster} ${object} ${image}`;
}

function verdictOf(links: readonly Link[]): ReportVerdict {
  if (firstBroken(links) !== undefined) return 'broken';
  return links.some(({ state }) => state === 'unknown') ? 'unknown' : 'ok';
}

/** What is broken for the next pull keeps nothing from running that runs. */
export function milder(verdict: ReportVerdict, runs: boolean): ReportVerdict {
  return runs && verdict === 'broken' ? 'attention' : verdict;
}

/** What `explain` calls an error is one here too. */
function worseBy({ findings }: Explanation, verdict: ReportVerdict): ReportVerdict {
  if (verdict === 'broken' || findings.some(({ severity }) => severity === 'error')) return 'broken';
  return verdict === 'ok' && findings.some(({ severity }) => severity === 'warning') ? 'attention' : verdict;
}

function kubeletOf({ kubelet }: Explanation): ReportKubelet {
  const { blockedBy, tried, unused, others = 0 } = kubelet;
  const near = unused.filter((entry) => entry.near);
  const lost = near.slice(0, MOST_LOST).map((entry) => ({ ...entryOf(entry), why: entry.why }));
  return {
    ...(blockedBy === undefined ? {} : { blocked: `${blockedBy.source} ${blockedBy.why}` }),
    tried: tried.map(entryOf),
    lost,
    others: unused.length - lost.length + others,
  };
}

/** The kubelet hands every runtime the same; containerd checks no host and reads no auth file. */
function containerdOf({ kubelet, containerd }: Explanation): ReportPull['containerd'] {
  if (kubelet.blockedBy !== undefined) return 'failure';
  return containerd.what === 'kubelet' ? 'kubelet' : 'nothing';
}

/** Where it stands, and no more. */
function entryOf({ key, source, origin }: EntryPlace): EntryOfPull {
  return { key, source: origin ?? source };
}

function placeOf({ reference, kind, from, crio }: ExplainedPlace): ReportPlace {
  return { reference, kind, ...(from === undefined ? {} : { from }), ...sentOf(crio) };
}

function sentOf(sent: Sent): Pick<ReportPlace, 'sent' | 'entry' | 'why'> {
  switch (sent.what) {
    case 'kubelet':
      return { sent: 'kubelet' };
    case 'entry':
      return { sent: 'entry', entry: entryOf(sent.entry) };
    case 'helper':
      return { sent: 'helper', why: `the helper "${sent.helper}" of ${sent.source} is asked` };
    default:
      return { sent: sent.what, why: sent.why };
  }
}
