/** Options of the credential provider's reconciler, read from the configuration of `reconcile`. */
import { UsageError } from '../rules/errors.ts';

export interface ReconcilerOptions {
  /** `auto` observes where the Machine Config Operator is seen to manage the object itself, else owns. @default {'auto'} */
  readonly mode: 'auto' | 'own' | 'observe';
  /** Platform type to assume where there is no Infrastructure object. @default {'None'} */
  readonly platform: string;
  /** Hand the annotation with secret names over to the provider, for namespaces that grant no list. @default {false} */
  readonly secretAnnotation: boolean;
}

/**
 * Checks a map of options.
 *
 * @throws UsageError that names every wrong field
 */
export function parseReconcilerOptions(raw: Readonly<Record<string, unknown>>): ReconcilerOptions {
  const { mode = 'auto', platform = 'None', secretAnnotation = false, ...others } = raw;
  const problems = Object.keys(others).map(
    (field) => `${field}: no such option, wanted mode, platform or secretAnnotation`,
  );
  if (mode !== 'auto' && mode !== 'own' && mode !== 'observe')
    problems.push('mode: wanted auto, own or observe');
  if (typeof platform !== 'string' || platform === '')
    problems.push('platform: wanted a platform type such as AWS');
  if (typeof secretAnnotation !== 'boolean') problems.push('secretAnnotation: wanted true or false');
  if (problems.length > 0)
    throw new UsageError(`Cannot use the options of credential-provider: ${problems.join('; ')}`);
  return { mode, platform, secretAnnotation } as ReconcilerOptions;
}
