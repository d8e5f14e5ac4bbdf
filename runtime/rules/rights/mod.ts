/**
 * What accounts can reach, computed from RBAC and admission policies as they are written.
 *
 * - `bounds.ts`: Admission policies that bind an account where RBAC cannot
 * - `escalation.ts`: What the rights of an account amount to together: tokens of others, other accounts, the cluster
 * - `grants.ts`: Which rule reaches which account through which binding
 * - `powers.ts`: What is worth having for somebody with a stolen token, and which rules give it
 * - `right.ts`: Something that an account can do, and what lets it
 * - `rights-growth.ts`: What rights say more than a list that somebody has looked at
 * - `rights-text.ts`: Rights as lines for people and as a table for documents
 * - `rights.ts`: The rights of each account: what its rules give, and what binds it
 * - `taken.ts`: What an account may give itself: rules of the roles that it may bind, and whatever it likes where it may escalate
 * - `ways-up.ts`: Which rights make an administrator of who has them
 *
 * @module
 */
export {};
