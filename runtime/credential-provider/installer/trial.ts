/**
 * Whether what was installed works: the kubelet runs with the flags, and the executable, started by systemd on the host with the
 * arguments and variables that the kubelet gives it, reaches the API server.
 */

import { mkdirSync, readFileSync } from 'node:fs';
import { describeError } from '../../core/errors.ts';
import { parseYaml } from '../../kube/yaml.ts';
import { removeFile } from '../../node/atomic-file.ts';
import type { LoadedService, ServiceProperties, SystemdOverBus } from '../../node/systemd.ts';
import { decodeCredentialProviderConfig, PLUGIN_API_VERSION } from '../config.ts';
import { CREDENTIAL_PROVIDER } from '../platform.ts';
import type { CheckReport } from '../plugin/check.ts';
import type { HostPlaces } from './host.ts';
import { executablePath, type GoodPlan, kubeletPointers } from './plan.ts';

/** What is wrong; undefined when nothing is. */
export interface TrialFailure {
  readonly reason: 'KubeletWithoutFlags' | 'ProviderFails' | 'ProviderNotTried';
  readonly message: string;
}

/** More than the longest budget of a check, and less than the loop of a node may stand still. */
const LONGEST_SECONDS = 60;
const UNIT = 'pullwright-provider-check.service';

/** Looks, and tries. A systemd that does not answer proves nothing. */
export async function tryOut(...given: Parameters<typeof attempt>): Promise<TrialFailure | undefined> {
  try {
    return await attempt(...given);
  } catch (error) {
    return { reason: 'ProviderNotTried', message: describeError(error) };
  }
}

async function attempt(
  systemd: SystemdOverBus,
  places: HostPlaces,
  plan: GoodPlan,
  signal: AbortSignal,
): Promise<TrialFailure | undefined> {
  const kubelet = await systemd.service(places.unit);
  const failure = flagsFailure(kubelet, plan, places.unit);
  if (failure !== undefined) return failure;
  const answer = `${places.stateDir}/check.json`;
  mkdirSync(places.root + places.stateDir, { recursive: true, mode: 0o700 });
  try {
    // systemd writes over what is there, and cuts nothing off.
    removeFile(places.root + answer);
    const { result } = await systemd.run(UNIT, trialService(plan, answer, kubelet), signal);
    return judged(textOf(places.root + answer), result);
  } finally {
    removeFile(places.root + answer);
  }
}

/**
 * What the command line of the running kubelet lacks.
 */
export function flagsFailure(
  kubelet: LoadedService | undefined,
  { config, binDir }: GoodPlan,
  unit: string,
): TrialFailure | undefined {
  const line = kubelet?.commandLine ?? '';
  const { config: file, binDir: folder } = kubeletPointers([line]);
  if (file === config?.path && folder === binDir) return undefined;
  const there =
    line === ''
      ? 'it does not run'
      : `--image-credential-provider-config is ${file ?? 'missing'}, --image-credential-provider-bin-dir is ${folder ?? 'missing'}`;
  return {
    reason: 'KubeletWithoutFlags',
    message: `The main process of ${unit} does not have the flags of the drop-in: ${there}. Look at "systemctl status ${unit}": what starts the kubelet must pass them on`,
  };
}

/** The request of a static pod: it holds no token, so that no secret can be read with it. */
function requestFor(image: string): string {
  return `${JSON.stringify({ apiVersion: PLUGIN_API_VERSION, kind: 'CredentialProviderRequest', image })}\n`;
}

/** As the kubelet runs it: on the host, with the variables of the kubelet's unit. */
export function trialService(
  plan: GoodPlan,
  answer: string,
  kubelet: LoadedService | undefined,
): ServiceProperties {
  const program = executablePath(plan);
  const command = [program, [program, ...argsIn(plan.config?.text ?? ''), '--check', '--output=json'], false];
  const image = plan.verdicts.find(({ verdict }) => verdict === 'Rendered')?.pattern ?? 'localhost/check';
  return [
    ['Description', 's', `Check of ${CREDENTIAL_PROVIDER.name}`],
    ['ExecStart', 'a(sasb)', [command]],
    ['StandardInput', 's', 'data'],
    ['StandardInputData', 'ay', Buffer.from(requestFor(image.replaceAll('*', 'check')))],
    ['StandardOutputFile', 's', answer],
    ['StandardError', 's', 'null'],
    ['Environment', 'as', kubelet?.environment ?? []],
    [
      'EnvironmentFiles',
      'a(sb)',
      (kubelet?.environmentFiles ?? []).map(({ path, optional }) => [path, optional]),
    ],
    ['TimeoutStartUSec', 't', BigInt(LONGEST_SECONDS * 1_000_000)],
    ['TimeoutStopUSec', 't', 5_000_000n],
  ];
}

/** Arguments of the executable, as the kubelet's file has them. */
function argsIn(text: string): readonly string[] {
  const decoded = decodeCredentialProviderConfig(text, parseYaml);
  const providers = decoded.ok ? (decoded.config.providers ?? []) : [];
  return providers.find(({ name }) => name === CREDENTIAL_PROVIDER.name)?.args ?? [];
}

function judged(answer: string, result: string): TrialFailure | undefined {
  try {
    const { ok, message } = JSON.parse(answer) as CheckReport;
    return ok
      ? undefined
      : { reason: 'ProviderFails', message: `The executable was run on the node: ${message}` };
  } catch {
    return {
      reason: 'ProviderNotTried',
      message: `The executable gives no answer on the node (systemd: ${result}): it cannot be started there, or is none of this program. Run it with --version on the node`,
    };
  }
}

function textOf(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    return describeError(error);
  }
}
