/** Folder, field manager, metric label and owner label. */
export const RECONCILER_NAME = 'pull-secret-injection';
