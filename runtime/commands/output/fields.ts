/** Fields that outputs share, each with its meaning. */
import { z } from 'zod';

/** A text. */
export function textField(about: string): z.ZodString {
  return z.string().describe(about);
}

/** A list of texts. */
export function textsField(about: string): z.ZodArray<z.ZodString> {
  return z.array(z.string()).describe(about);
}

/** A text that may be absent. */
export function optionalText(about: string): z.ZodExactOptional<z.ZodString> {
  return textField(about).exactOptional();
}

/** A number of things. */
export function countField(about: string): z.ZodInt {
  return z.int().min(0).describe(about);
}

/** Whether something is so. */
export function flagField(about: string): z.ZodBoolean {
  return z.boolean().describe(about);
}

/** A text by name. */
export function textsByName(about: string): z.ZodRecord<z.ZodString, z.ZodString> {
  return z.record(z.string(), z.string()).describe(about);
}

/** An object of Kubernetes: whatever fields its kind has. */
export const KUBERNETES_OBJECT: z.ZodObject<
  {
    apiVersion: z.ZodString;
    kind: z.ZodString;
    metadata: z.ZodObject<{ name: z.ZodString }, z.core.$loose>;
  },
  z.core.$loose
> = z.looseObject({
  apiVersion: textField('Group and version of its kind'),
  kind: textField('Its kind'),
  metadata: z.looseObject({ name: textField('Its name') }).describe('Name, namespace, labels and the rest'),
});
