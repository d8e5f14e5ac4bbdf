/** What `explain --output json` prints. */
import { z } from 'zod';
import type { CheckOutput } from '../../../runtime/diagnose/commands/check.ts';
import type { DoctorAllOutput, DoctorOutput } from '../../../runtime/diagnose/commands/doctor.ts';
import type { ExplainOutput } from '../../../runtime/diagnose/commands/explain.ts';
import type { InUseOutput, MirrorsOutput } from '../../../runtime/diagnose/commands/mirrors.ts';
import type { TestOutcome } from '../../../runtime/diagnose/commands/test.ts';
import type { VerifyOutput } from '../../../runtime/diagnose/commands/verify.ts';
import { PULL_CAUSES } from '../../../runtime/diagnose/model/pull-failure.ts';
import { LINKS } from '../../../runtime/diagnose/model/types.ts';
import { VERDICTS } from '../../../runtime/diagnose/model/verification.ts';
import type { ValidateOutput } from '../../../runtime/diagnose/views/text.ts';
import type { MirrorFix } from '../../../runtime/registry-overrides/mirror-sets/fix.ts';
import { PLANES } from '../../../runtime/registry-overrides/planes.ts';
import {
  countField,
  flagField,
  form,
  formPart,
  type JsonOf,
  KUBERNETES_OBJECT,
  type OutputForm,
  optionalText,
  textField,
  textsByName,
  textsField,
} from './form.ts';

// The fix of a mirror set, in the outputs of `explain` and `mirrors`.

/** Field `fix` of a report on mirrors, and `mirrorFix` of an explanation. */
export const MIRROR_FIX: z.ZodType<JsonOf<MirrorFix>> = formPart<MirrorFix>()(
  z.strictObject({
    code: z
      .enum(['MirrorsServeDigestsOnly', 'MirrorsServeTagsOnly', 'RuntimeGivesUp'])
      .describe('What is wrong, for programs'),
    message: textField('What is wrong, naming the mirror that is skipped'),
    fix: textField('What to do, in one sentence'),
    object: KUBERNETES_OBJECT.describe('What to apply; absent where an object cannot help').exactOptional(),
  }),
);

const ENTRY = {
  source: textField('The Secret or file that has it, such as Secret/web/pull'),
  key: textField('Its key, as it is written there'),
  origin: optionalText('For an entry of a file that was merged, the Secret that it came from'),
  position: z
    .strictObject({
      line: z.int().describe('Line, from 1'),
      column: z.int().describe('Column, from 1'),
    })
    .describe('Where it stands in the decoded document'),
};

const KIND = z.enum(['mirror', 'source']).describe('source: the place that the image itself names');

const SENT = z.discriminatedUnion('what', [
  z.strictObject({ what: z.literal('kubelet').describe('What is sent') }),
  z.strictObject({
    what: z.literal('entry').describe('What is sent'),
    entry: z.strictObject(ENTRY).describe('The entry of the file of the node'),
    username: textField('Its user'),
    rivals: textsField('Other entries that could be meant'),
  }),
  z.strictObject({
    what: z.literal('helper').describe('What is sent'),
    source: textField('The file that names the helper'),
    helper: textField('The credential helper that is asked'),
  }),
  z.strictObject({
    what: z.literal('nothing').describe('What is sent'),
    why: textField('Why it comes to nothing, or to a failure'),
  }),
  z.strictObject({
    what: z.literal('failure').describe('What is sent'),
    why: textField('Why it comes to nothing, or to a failure'),
  }),
]);

const KUBELET = z.strictObject({
  blockedBy: z
    .strictObject({ source: textField('The Secret'), why: textField('What is wrong with it') })
    .describe('A Secret that cannot be read, and so fails the pod for every image')
    .exactOptional(),
  tried: z
    .array(
      z.strictObject({
        ...ENTRY,
        username: textField('Its user'),
        by: z.enum(['match', 'hub']).describe('match: by its key; hub: as a name of Docker Hub'),
        empty: flagField('It has neither user nor password, and is tried all the same'),
        doubt: optionalText('Why a registry will refuse it, as far as the entry itself says so'),
      }),
    )
    .describe('Credentials, in the order in which they are tried'),
  unused: z
    .array(
      z.strictObject({
        ...ENTRY,
        why: textField('Why it is not used for the image'),
        near: flagField('It is about the same registry'),
      }),
    )
    .describe('Entries that are not used'),
  anonymous: flagField('Whether an attempt without a credential is made'),
});

const ONE = z.strictObject({
  image: textField('The image, with its tag or digest'),
  repository: textField('The same without them'),
  secrets: z
    .array(
      z.strictObject({
        name: textField('Its name'),
        listedBy: textField('Who lists it, such as ServiceAccount/web/default'),
        state: z
          .enum(['found', 'missing', 'ignored', 'encrypted', 'unknown'])
          .describe('ignored: of another type, or without data; unknown: not all could be read'),
      }),
    )
    .describe('Secrets that the pod lists, in its order'),
  node: optionalText('The file of the node that the kubelet and CRI-O read'),
  kubelet: KUBELET.describe('What the kubelet chooses'),
  places: z
    .array(
      z.strictObject({
        reference: textField('Where the image is asked for'),
        kind: KIND,
        from: optionalText('The object and field that names the place'),
        crio: SENT.describe('What CRI-O sends there'),
      }),
    )
    .describe('In the order in which CRI-O tries them'),
  skipped: z
    .array(
      z.strictObject({
        reference: textField('The place'),
        kind: KIND,
        from: optionalText('The object and field that names the place'),
        why: textField('Why it is not tried'),
      }),
    )
    .describe('Places that are not tried'),
  containerd: SENT.describe('What containerd sends, to whatever host it asks'),
  verification: textField('Whether the kubelet verifies credentials for images that are on the node'),
  mirrorFix: MIRROR_FIX.describe(
    'What is wrong where no mirror is tried although there are some',
  ).exactOptional(),
  findings: z
    .array(
      z.strictObject({
        severity: z.enum(['error', 'warning', 'info']).describe('An error makes the exit code 1'),
        message: textField('What to know'),
        check: z.enum(LINKS).describe('The link that is broken, as doctor names it').exactOptional(),
        fix: optionalText('What to change, and where, in one sentence'),
        object: KUBERNETES_OBJECT.describe('An object to apply').exactOptional(),
      }),
    )
    .describe('What to know and to fix, errors first'),
  files: textsByName('Where sources stand in the folder, by their names; empty for a cluster'),
});

export const EXPLAIN_FORMS: readonly OutputForm[] = [
  form<ExplainOutput>('of one image')(ONE),
  form<readonly ExplainOutput[]>('of several images')(z.array(ONE)),
];

// What `check --output json` prints.

const LEVELS = ['ok', 'warn', 'fail'] as const;

export const CHECK_FORMS: readonly OutputForm[] = [
  form<CheckOutput>('always')(
    z.strictObject({
      level: z.enum(LEVELS).describe('The worst level of the lines'),
      lines: z
        .array(
          z.strictObject({
            check: textField('What was looked at, such as kubernetes or crds: stable, for programs'),
            level: z
              .enum(LEVELS)
              .describe(
                'fail: what is rendered does not work there; warn: it works, and somebody should know',
              ),
            message: textField('What was found'),
            fix: optionalText('What to do, in one sentence or command'),
          }),
        )
        .describe('One for each thing that was looked at'),
    }),
  ),
];

// What `doctor --output json` prints.

const CAUSE = z.enum(PULL_CAUSES);
const FIX = z.array(KUBERNETES_OBJECT);
const UNREAD = 'What could not be read, each with the right that is missing';

export const DOCTOR_FORMS: readonly OutputForm[] = [
  form<DoctorOutput>('of one pod or template')(
    z.strictObject({
      pod: textField('What was examined, such as Pod/web/shop-1'),
      links: z
        .array(
          z.strictObject({
            link: z.enum(LINKS).describe('Its name: stable, for programs'),
            state: z
              .enum(['ok', 'broken', 'unknown'])
              .describe('unknown: not all that it depends on could be read'),
            message: textField('What was found'),
            fix: FIX.describe('Objects to apply with kubectl apply --server-side').exactOptional(),
            commands: textsField('Commands to run, as they are').exactOptional(),
            advice: optionalText('What else to do, in one sentence'),
            about: optionalText('A host, a Secret, a profile or a node: pods that fail alike have the same'),
            cause: CAUSE.describe('Of a failing pull: why, as far as the kubelet says it').exactOptional(),
            host: optionalText('The registry, token service or proxy that refused or was not reached'),
            sources: z
              .array(z.strictObject({ source: textField('Its host'), cause: CAUSE }))
              .describe('Mirrors and the source in the order in which they were tried')
              .exactOptional(),
            evidence: optionalText('What the kubelet said'),
          }),
        )
        .describe(
          'From the name of the image to the registry; the first that is broken is to be fixed first',
        ),
      unread: textsField(UNREAD),
    }),
  ),
  form<DoctorAllOutput>('with --all')(
    z.strictObject({
      causes: z
        .array(
          z.strictObject({
            link: z
              .enum([...LINKS, 'unknown'])
              .describe('The first link that is broken; unknown: none is, and not all could be read'),
            cause: textField('What the pods have in common'),
            pods: countField('How many pods fail for it'),
            namespaces: textsField('Their namespaces'),
            objects: textsField('What was examined, of pods that fail alike one'),
            message: textField('What is said of the first'),
            advice: optionalText('What to do, in one sentence'),
            fix: FIX.describe(
              'Objects to apply with kubectl apply --server-side, for all of the pods, each once',
            ),
            commands: textsField('Commands to run, each once'),
          }),
        )
        .describe('Pods that fail for the same cause together; empty where none fails'),
      unread: textsField(UNREAD),
    }),
  ),
];

// What `mirrors --output json` prints.

const CLUSTER = textField('Name of the cluster');
const WHO = z.array(z.enum(PLANES)).describe('Who asks for it');

const CHANGE = z.strictObject({
  summary: textField('What nodes do, in one sentence'),
  changedFiles: textsField('Files of the nodes that change, sorted').exactOptional(),
  actions: z
    .array(z.enum(['Reboot', 'Reload crio.service', 'Special']))
    .describe('Special reloads CRI-O, and drains where the change is not safe')
    .exactOptional(),
  drain: flagField('Whether nodes drain').exactOptional(),
  reboot: flagField('Whether nodes reboot').exactOptional(),
  because: optionalText('What makes the drain necessary'),
});

const CANDIDATE = z.strictObject({
  reference: textField('Where the image is asked for'),
  kind: z.enum(['mirror', 'source']).describe('source: the place that the image itself names'),
  from: optionalText('The object and field that names it'),
  skipped: z
    .strictObject({ reason: textField('For programs'), message: textField('For people') })
    .describe('Why it is not tried; absent where it is')
    .exactOptional(),
  probe: z
    .strictObject({
      verdict: textField('Valid, or what is wrong: stable, for programs'),
      message: textField('The same for people'),
      digest: optionalText('Digest of the image there'),
    })
    .describe('With --probe: what its registry said')
    .exactOptional(),
});

const REPORT = z.strictObject({
  image: textField('The image, with its tag or digest'),
  written: optionalText('As it was asked for, where that is a short name'),
  for: z.array(z.enum(PLANES)).describe('For whom this is the answer'),
  given: flagField('Whether there was any mirror set or file of a node to go by'),
  nodes: z
    .strictObject({
      state: z
        .enum(['rendered', 'kept', 'unknown'])
        .describe('rendered: nodes follow the objects; kept: they follow a file that was read'),
      summary: textField('The same in one sentence'),
    })
    .describe('By what nodes go; absent where no nodes pull')
    .exactOptional(),
  rule: z
    .strictObject({ source: textField('The source'), from: textsField('Where it is written') })
    .describe('The rule that decides')
    .exactOptional(),
  candidates: z
    .array(CANDIDATE)
    .describe('In the order in which they are tried; what is not tried comes last'),
  refusal: optionalText('Why the runtime pulls from nowhere, in its own words'),
  fix: MIRROR_FIX.describe('What is wrong, and what to do').exactOptional(),
  problems: textsField('Entries of mirror sets that cannot be used'),
  lookUp: z
    .strictObject({
      release: optionalText('For a release image: the first mirror that has it; absent where none has it'),
      component: textField('For a component of a release: the first mirror, whether it has it or not'),
    })
    .describe('With --probe: where the control plane operator and the ignition server find the image')
    .exactOptional(),
});

const IN_USE = z.strictObject({
  images: countField('How many images are in use'),
  changed: z
    .array(
      z.strictObject({
        image: textField('The image'),
        usedBy: textsField('By whom, such as Deployment/web/shop'),
        for: WHO,
        before: textsField('Places now, in the order in which they are asked'),
        after: textsField('Places after the change, in the order in which they are asked'),
        lost: flagField('No place is left that may be asked'),
        withoutCredential: textsField(
          "New mirrors for which the cluster's pull secret has no entry; empty where no secret is known",
        ),
      }),
    )
    .describe('Images whose places change'),
  rejected: z
    .array(
      z.strictObject({
        image: textField('The image'),
        usedBy: textField('By whom'),
        for: WHO,
        why: textField('What rejects it'),
      }),
    )
    .describe('Images that the policy of nodes rejects after the change'),
});

export const MIRRORS_FORMS: readonly OutputForm[] = [
  form<MirrorsOutput>('of images')(
    z.strictObject({
      cluster: CLUSTER,
      change: CHANGE.describe('With --what-if: what the change does to nodes').exactOptional(),
      reports: z.array(REPORT).describe('For each image, one for those that get the same answer'),
    }),
  ),
  form<InUseOutput>('with --in-use')(
    z.strictObject({
      cluster: CLUSTER,
      change: CHANGE.describe('What the change does to nodes'),
      inUse: IN_USE.describe('What it does to images that are in use'),
    }),
  ),
];

// What `test --output json` prints.

export const TEST_FORMS: readonly OutputForm[] = [
  form<readonly TestOutcome[]>('always')(
    z.array(
      z.strictObject({
        file: textField('The file of the expectation'),
        name: textField('Its name'),
        failure: optionalText('Why it does not hold; absent when it does'),
      }),
    ),
  ),
];

// What `validate --output json` prints.

export const VALIDATE_FORMS: readonly OutputForm[] = [
  form<ValidateOutput>('always')(
    z.strictObject({
      judged: countField('How many things were judged'),
      problems: z
        .array(
          z.strictObject({
            severity: z.enum(['error', 'warning']).describe('With --strict, warnings fail too'),
            code: textField('What is wrong: stable, for programs'),
            file: textField('The file'),
            line: z.int().describe('Line of the object, or in the text, from 1').exactOptional(),
            column: z.int().describe('Column, from 1').exactOptional(),
            subject: textField('The object, such as Secret/web/pull; empty for a file that is no manifest'),
            path: textField('The field; empty where it is the whole object'),
            message: textField('What is wrong, for people'),
          }),
        )
        .describe('What is wrong, in the order of the files'),
    }),
  ),
];

// What `verify --output json` prints.

const PLACE = {
  source: textField('The Secret or file that has it, such as Secret/web/pull'),
  key: textField('Its key, as it is written there'),
};

export const VERIFY_FORMS: readonly OutputForm[] = [
  form<VerifyOutput>('always')(
    z.strictObject({
      checkedAt: textField('When registries were asked, RFC 3339'),
      images: z
        .array(
          z.strictObject({
            image: textField('The image'),
            usedBy: textField('One that uses it, such as Deployment/web/shop'),
            pullable: z
              .enum(['yes', 'no', 'unknown'])
              .describe('Whether some place gives it; unknown: no answer says so either way'),
            attempts: z
              .array(
                z.strictObject({
                  reference: textField('Where it was asked for'),
                  kind: z
                    .enum(['mirror', 'source'])
                    .describe('source: the place that the image itself names'),
                  credential: z
                    .strictObject(PLACE)
                    .describe('The credential that was sent; absent where none was')
                    .exactOptional(),
                  verdict: z.enum(VERDICTS).describe('What the registry says of it'),
                  message: textField('The same for people'),
                }),
              )
              .describe('In the order in which they are made'),
          }),
        )
        .describe('Images, and what each place answered'),
      credentials: z
        .array(
          z.strictObject({
            ...PLACE,
            verdict: z.enum(VERDICTS).describe('Its worst answer, the absence of an image left out'),
            message: textField('The same for people'),
            expiresAt: optionalText('When it ends, RFC 3339; absent where it does not say'),
            kindOfCredential: textField('What it looks like, such as a token'),
            images: countField('For how many images it was sent'),
          }),
        )
        .describe('Credentials, the worst first'),
      endingSoon: z
        .array(z.strictObject(PLACE))
        .describe('Credentials that end within the days of --warn-days'),
    }),
  ),
];
