import { portalPath } from '@platform/contract/portal-paths'

/** Pages that lead elsewhere by themselves: whoever has signed in does not go there. */
const beforeSignIn = /^\/(sign-in|setup)([/?#]|$)/

/**
 * Where to go once signed in: a place of the portal as it stands in an address, else undefined. The address may be anybody's:
 * nothing that a browser could take for another site passes.
 */
export const safeReturnPath = (text: string | undefined): string | undefined =>
  text !== undefined && portalPath.test(text) && !beforeSignIn.test(text) ? text : undefined
