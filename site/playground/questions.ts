/** Questions of the playground: the fields that each one needs, and the command line that answers it. */
import type { ReportPull } from '../../runtime/diagnose/model/cluster.ts';
import type { PageReport } from '../../runtime/diagnose/views/html.ts';
import type { HeldFile } from './messages.ts';

/** Values that the person entered. */
export interface Fields {
  readonly cluster: string;
  /** `Deployment/shop/web` */
  readonly workload: string;
  readonly image: string;
}

/** Subject of a question. */
export interface Subject {
  readonly root: string;
  readonly files: readonly HeldFile[];
  /** Absent where none could be made. */
  readonly report?: PageReport;
}

/** One question. */
export interface Asking {
  readonly name: string;
  readonly title: string;
  readonly about: string;
  readonly needs: readonly (keyof Fields)[];
  args(subject: Subject, fields: Fields): readonly string[];
}

/** The page that `report` writes in memory. */
export const REPORT_FILE = 'report.html';

/** All of them; the first is asked at once. */
export const ASKINGS: readonly Asking[] = [
  {
    name: 'report',
    title: 'Report',
    about: 'What is wrong, where, and what to do.',
    needs: [],
    args: ({ root }) => ['report', '--from', root, '--html', REPORT_FILE],
  },
  {
    name: 'doctor',
    title: 'Doctor',
    about: 'The first thing that stands between a pod and its images, and the YAML that fixes it.',
    needs: ['cluster', 'workload'],
    args: (subject, fields) => ['doctor', ...podArgs(fields.workload), ...fromArgs(subject, fields)],
  },
  {
    name: 'failing',
    title: 'All that fail',
    about: 'Every pod that fails to pull, grouped by cause, with what fixes each cause once.',
    needs: ['cluster'],
    args: (subject, fields) => ['doctor', '--all', '-A', ...fromArgs(subject, fields)],
  },
  {
    name: 'explain',
    title: 'Explain',
    about:
      'Which credentials are tried for an image, at which mirror, in which order, and why the others are not.',
    needs: ['cluster', 'workload', 'image'],
    args: (subject, fields) => {
      const [pod = '', ...namespace] = podArgs(fields.workload);
      const asked = fields.image === '' ? ['--pod', pod] : [fields.image];
      return ['explain', ...asked, ...namespace, ...fromArgs(subject, fields)];
    },
  },
  {
    name: 'mirrors',
    title: 'Mirrors',
    about: 'Where an image is pulled from, in order, with the mirror set that names each place.',
    needs: ['cluster', 'image'],
    args: (subject, fields) => ['mirrors', fields.image, ...fromArgs(subject, fields)],
  },
  {
    name: 'validate',
    title: 'Validate',
    about: 'Pull secrets, mirror sets, profiles and fleets, judged before they are applied.',
    needs: [],
    args: ({ root, files }) => ['validate', ...(files.length > 1 ? [root] : files.map(({ path }) => path))],
  },
  {
    name: 'reconcile',
    title: 'Reconcile',
    about: 'What the reconciler would change, and its verdict for every entry. Nothing is changed.',
    needs: [],
    args: ({ root, files }) => {
      const has = (folder: string): boolean =>
        files.some(({ path }) => path.startsWith(`${root}/${folder}/`));
      const both = has('hosted') && has('management');
      const from = both
        ? ['--from', `${root}/hosted`, '--management', `${root}/management`]
        : ['--from', root];
      return ['reconcile', ...from, '--dry-run'];
    },
  },
];

function fromArgs({ root, report }: Subject, { cluster }: Fields): readonly string[] {
  const several = (report?.clusters.length ?? 0) > 1 && cluster !== '';
  return ['--from', root, ...(several ? ['--cluster', cluster] : [])];
}

/** `Deployment/shop/web` as `deployment/web -n shop`. */
function podArgs(workload: string): readonly string[] {
  const [kind = '', namespace = '', name = ''] = workload.split('/');
  return [`${kind.toLowerCase()}/${name}`, '-n', namespace];
}

/** Missing field of a question; undefined when none is missing. */
export function missing({ needs }: Asking, fields: Fields): string | undefined {
  if (needs.includes('workload') && fields.workload === '' && fields.image === '')
    return 'There is no workload in these files: expected a Deployment, a Pod or another object with containers.';
  if (needs.includes('image') && !needs.includes('workload') && fields.image === '')
    return 'Give an image, such as registry.example.com/team/app:1.';
  return undefined;
}

/** The pulls of a cluster, one for each workload, those in trouble first. */
export function workloadsOf(report: PageReport | undefined, cluster: string): readonly ReportPull[] {
  const pulls = report?.clusters.find(({ name }) => name === cluster)?.pulls ?? [];
  return [...new Map(pulls.toReversed().map((pull) => [pull.object, pull])).values()].toReversed();
}

/** Command line as a person would type it. */
export function commandLine(args: readonly string[]): string {
  const words = args.map((arg) => (/^[\w@%+=:,./-]+$/.test(arg) ? arg : `'${arg.replaceAll("'", "'\\''")}'`));
  return ['pullwright', ...words].join(' ');
}
