import { portalPath } from '@platform/contract/portal-paths'

/** These pages redirect signed-in users. */
const beforeSignIn = /^\/(sign-in|setup)([/?#]|$)/

/** The return path of an address, or undefined if it could lead to another site. The address may be forged. */
export const safeReturnPath = (text: string | undefined): string | undefined =>
  text !== undefined && portalPath.test(text) && !beforeSignIn.test(text) ? text : undefined
