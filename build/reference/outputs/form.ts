/**
 * What a command prints as JSON: a schema beside the type that the command names when it prints.
 *
 * Commands import none of these files: a run validates nothing, and loads no schema. The types are compared when the program is compiled, the
 * values by the tests.
 */
import { z } from 'zod';
import type { Redacted } from '../../../runtime/core/redacted.ts';

/** One shape of a command's output. */
export interface OutputForm {
  /** When it is printed. */
  readonly when: string;
  readonly schema: z.ZodType;
}

/** A form out of a schema that says neither more nor less than the type `Printed`. */
export function form<Printed>(
  when: string,
): <S extends z.ZodType<JsonOf<Printed>>>(schema: S & Same<Printed, z.output<S>>) => OutputForm {
  return (schema) => ({ when, schema });
}

/** The same for a part that stands in a file of its own. */
export function formPart<Printed>(): <S extends z.ZodType<JsonOf<Printed>>>(
  schema: S & Same<Printed, z.output<S>>,
) => z.ZodType<JsonOf<Printed>> {
  return (schema) => schema;
}

/** What JSON makes of a value: what is redacted is a text, and what is undefined is left out. */
export type JsonOf<T> =
  T extends Redacted<unknown>
    ? string
    : T extends Manifest
      ? { apiVersion: string; kind: string; metadata: { name: string } }
      : T extends readonly (infer Item)[]
        ? JsonOf<Item>[]
        : T extends object
          ? { -readonly [K in keyof T as undefined extends T[K] ? never : K]: JsonOf<T[K]> } & {
              -readonly [K in keyof T as undefined extends T[K] ? K : never]?: JsonOf<
                Exclude<T[K], undefined>
              >;
            }
          : T;

/** Objects of Kubernetes are described as such, and not field by field. */
interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string };
}

/** Every field there, so that one which only one side has is noticed. */
type Whole<T> = T extends readonly (infer Item)[]
  ? Whole<Item>[]
  : T extends object
    ? { [K in keyof T]-?: Whole<T[K]> }
    : T;

/** Assignable both ways, as it is and with every optional field there. */
type Same<Printed, Described> = [JsonOf<Printed>, Whole<JsonOf<Printed>>] extends [
  JsonOf<Described>,
  Whole<JsonOf<Described>>,
]
  ? [JsonOf<Described>, Whole<JsonOf<Described>>] extends [JsonOf<Printed>, Whole<JsonOf<Printed>>]
    ? unknown
    : Differs<Printed>
  : Differs<Printed>;

/** No schema has this: the compiler names it where one differs. */
interface Differs<Printed> {
  readonly schemaDiffersFrom: JsonOf<Printed>;
}

// Fields that outputs share, each with its meaning.

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
