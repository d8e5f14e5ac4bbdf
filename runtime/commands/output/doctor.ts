/** What `doctor --output json` prints. */
import { z } from 'zod';
import { LINKS } from '../../rules/diagnose/doctor-types.ts';
import { PULL_CAUSES } from '../../rules/diagnose/pull-failure.ts';
import type { DoctorAllOutput } from '../doctor/all.ts';
import type { DoctorOutput } from '../doctor/doctor.ts';
import { countField, KUBERNETES_OBJECT, optionalText, textField, textsField } from './fields.ts';
import { form, type OutputForm } from './form.ts';

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
          }),
        )
        .describe('Pods that fail for the same cause together; empty where none fails'),
      unread: textsField(UNREAD),
    }),
  ),
];
