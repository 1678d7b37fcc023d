import type { Context } from 'hono'
import { HTTPException } from 'hono/http-exception'
import { now } from './clock.ts'
import type { UserClaims } from './protocol.ts'

/** The user on whose behalf a request is made. */
export interface Caller {
  userId: string
  /**
   * The user's organisation. Modules must separate data by this id, because users may not access data of other
   * organisations.
   */
  organisationId: string
  /** Those of the user's permissions that `spec.permissionsRequired` of the manifest names, such as `clusters:read`. */
  permissions: readonly string[]
}

/** Values that the host passes to a module's routes in addition to the request. */
export interface RequestEnvironment {
  caller?: Caller
}

/**
 * Returns the user of a request, whom the platform has authenticated. Throws `HTTPException` (401) if the request has
 * no user.
 */
export function callerOf(context: Context): Caller {
  const { caller }: RequestEnvironment = context.env ?? {}
  if (!caller) throw new HTTPException(401, { message: 'This request has no user.' })
  return caller
}

/**
 * Reads the caller from a user token of the platform. Returns undefined if the token is malformed, expired, or for
 * another module. Does not verify the signature: each request also carries the deployment's token, which proves that
 * the platform sent it.
 */
export function readUserToken(token: string, moduleId: string): Caller | undefined {
  const claims = claimsOf(token)
  const { aud, exp, sub, org, permissions } = claims
  if (aud !== moduleId || typeof exp !== 'number' || exp * 1000 <= now()) return undefined
  if (typeof sub !== 'string' || typeof org !== 'string' || !isStringArray(permissions)) return undefined
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

const isStringArray = (value: unknown): value is string[] =>
  Array.isArray(value) && value.every((item) => typeof item === 'string')
