/** Paths with slashes, in place of `node:path`. */

export const sep = '/';

export function normalize(path: string): string {
  const parts: string[] = [];
  for (const part of path.split('/')) {
    if (part === '' || part === '.') continue;
    if (part === '..' && parts.length > 0 && parts.at(-1) !== '..') parts.pop();
    else parts.push(part);
  }
  const joined = (path.startsWith('/') ? '/' : '') + parts.join('/');
  return joined === '' ? '.' : joined;
}

export function join(...parts: readonly string[]): string {
  return normalize(parts.filter((part) => part !== '').join('/'));
}

export { absent as resolve } from './absent.ts';

export function dirname(path: string): string {
  const at = path.lastIndexOf('/');
  if (at < 0) return '.';
  return at === 0 ? '/' : path.slice(0, at);
}

export function basename(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1);
}

/** Relative path; `to` must be `from` or a path below it. */
export function relative(from: string, to: string): string {
  const [base, target] = [normalize(from), normalize(to)];
  if (base === target) return '';
  if (base === '.') return target;
  return target.startsWith(`${base}/`) ? target.slice(base.length + 1) : target;
}
