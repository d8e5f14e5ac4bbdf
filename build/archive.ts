/** Archives with the same bytes for the same files. */
import { runTool } from './run-tool.ts';

/** Packs `what` of a folder: sorted, without times and owners. */
export function archive(folder: string, file: string, more: readonly string[], what = '.'): void {
  const flags = ['--sort=name', '--format=ustar', '--mtime=@0', '--owner=0', '--group=0', '--numeric-owner'];
  runTool(['tar', ...flags, '--mode=u+rw,go-w,a+rX', ...more, '-cf', file, '-C', folder, what], folder);
}
