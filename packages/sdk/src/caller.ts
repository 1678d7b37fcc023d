import { type Context } from 'hono'
import { HTTPException } from 'hono/http-exception'
import { now } from './clock.ts'
import { type UserClaims } from './protocol.ts'

/** The user on whose behalf a request comes. */
export interface Caller {
  userId: string
  /** What a module keeps for users it keeps by this: nobody may see what belongs to another organisation. */
  organisationId: string
  /** Permissions of the platform, such as `clusters:read`. */
  permissions: readonly string[]
}

/** What the host hands to a module's routes beside the request. */
export interface RequestEnvironment {
  caller?: Caller
}

/** Who asks. The platform has checked it; a request that comes from no user is answered with 401. */
export function callerOf(context: Context): Caller {
  const { caller }: RequestEnvironment = context.env ?? {}
  if (!caller) throw new HTTPException(401, { message: 'This request comes from no user.' })
  return caller
}

/**
 * Reads the platform's token about a user; undefined where it is not for this module, has expired or is none. Its signature
 * is not looked at: every request carries the deployment's own token, which nobody but the platform has.
 */
export function readUserToken(token: string, moduleId: string): Caller | undefined {
  const claims = claimsOf(token)
  const { aud, exp, sub, org, permissions } = claims
  if (aud !== moduleId || typeof exp !== 'number' || exp * 1000 <= now()) return undefined
  if (typeof sub !== 'string' || typeof org !== 'string' || !isTextList(permissions)) return undefined
  return { userId: sub, organisationId: org, permissions }
}

function claimsOf(token: string): Partial<Record<keyof UserClaims, unknown>> {
  try {
    const claims: unknown = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString())
    return typeof claims === 'object' && claims !== null ? claims : {}
  } catch {
    return {}
  }
}

const isTextList = (value: unknown): value is string[] =>
  Array.isArray(value) && value.every((item) => typeof item === 'string')
