import { portalPath } from '@platform/contract/portal-paths'

// These pages redirect signed-in users.
const signInPages = /^\/(sign-in|setup)([/?#]|$)/

/** Validates the return path in a URL, which may be forged. Returns undefined if it could lead to another site. */
export const safeReturnPath = (text: string | undefined): string | undefined =>
  text !== undefined && portalPath.test(text) && !signInPages.test(text) ? text : undefined
