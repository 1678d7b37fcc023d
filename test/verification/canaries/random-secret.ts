import { randomBytes } from 'node:crypto'

/** A secret that says what it is, and looks different in every encoding. */
export const randomSecret = (what: string): string => `canary ${what} ${randomBytes(9).toString('base64url')} +"ä%/`
