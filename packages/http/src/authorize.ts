import type { Access } from '@platform/contract/endpoint'
import { statusOf } from '@platform/contract/errors'
import { isPermission, type Permission } from '@platform/contract/permission'
import { isApiToken, verifyApiToken } from '@platform/core/accounts/api-token-caller'
import type { Caller, Origin, RelayCaller } from '@platform/core/caller'
import { PlatformError, platformError } from '@platform/core/error'
import { authenticateRelay } from '@platform/core/relays/request-auth'
import { verifySession } from '@platform/core/accounts/current-rights'
import { bytesOf, type GatewayEvent, headersOf } from './request.ts'
import { rejectCrossOrigin } from './same-origin.ts'
import { accessCookie } from './cookies.ts'

export const schemeOf = (access: Access): 'Bearer' | 'Relay' => (access === 'relay' ? 'Relay' : 'Bearer')

/**
 * Authenticates the caller, and returns undefined for a public endpoint. The `Authorization` header takes precedence
 * over the browser's cookie. Throws errors such as `unauthenticated`, `token_expired`, and those of
 * `rejectCrossOrigin`.
 */
export async function authenticate(access: Access, event: GatewayEvent): Promise<Caller | RelayCaller | undefined> {
  if (access === 'public') return undefined
  const { headers, rawPath, requestContext } = event
  if (access === 'relay') {
    const body = event.isBodyPending ? undefined : bytesOf(event)
    return authenticateRelay(credentialOf(headers, 'Relay'), rawPath, body)
  }
  const origin = { address: requestContext.http.sourceIp }
  const permission = isPermission(access) ? access : undefined
  return headers['authorization'] === undefined
    ? browserUserOf(event, origin, permission)
    : userOf(headers, origin, permission)
}

// Only sign-ins and refreshes of browsers set the cookie, so it contains an access token and never an API token.
async function browserUserOf(event: GatewayEvent, { address }: Origin, permission?: Permission): Promise<Caller> {
  const token = accessCookie(headersOf(event))
  if (token === '') throw platformError('unauthenticated')
  await rejectCrossOrigin(event)
  return withOrigin(await verifySession(token, permission), event.headers, address)
}

type Headers = GatewayEvent['headers']

async function userOf(headers: Headers, { address }: Origin, permission?: Permission): Promise<Caller> {
  const token = credentialOf(headers, 'Bearer')
  const caller = await (isApiToken(token) ? verifyApiToken(token) : verifySession(token, permission))
  return withOrigin(caller, headers, address)
}

const withOrigin = (caller: Caller, { host }: Headers, address: string | undefined): Caller => ({
  ...caller,
  ...(address !== undefined && { address }),
  ...(host !== undefined && { host }),
})

/** Returns the caller that the `Authorization` header identifies if it has the permission, otherwise undefined. */
export async function authenticateIfPermitted(
  permission: Permission,
  headers: Headers,
  origin: Origin,
): Promise<Caller | undefined> {
  try {
    const caller = await userOf(headers, origin, permission)
    return caller.permissions.has(permission) ? caller : undefined
  } catch (error) {
    if (error instanceof PlatformError && statusOf(error.code) === 401) return undefined
    throw error
  }
}

// Rejects repeated headers, which the gateway joins with commas: no token contains a comma.
function credentialOf(headers: Headers, scheme: string): string {
  const [, requestScheme = '', token = ''] = /^([a-z]+) +([\w.~+/-]+=*)$/i.exec(headers['authorization'] ?? '') ?? []
  if (requestScheme.toLowerCase() !== scheme.toLowerCase()) throw platformError('unauthenticated')
  return token
}

/** Throws `forbidden` if the caller lacks the permission, or uses an API token although a session is required. */
export function requirePermission(access: Access, caller: Caller | RelayCaller | undefined): void {
  if (access === 'session' && (caller?.kind !== 'user' || caller.tokenId !== undefined))
    throw platformError('forbidden')
  if (!isPermission(access)) return
  if (caller?.kind !== 'user' || !caller.permissions.has(access)) {
    throw platformError('forbidden', { requiredPermission: access })
  }
}

/** Returns the fields of log lines that identify the caller. */
export function identityOf(caller: Caller | RelayCaller | undefined): Record<string, string> {
  if (caller === undefined) return {}
  const { organisationId } = caller
  if (caller.kind === 'relay') return { organisationId, relayId: caller.relayId }
  const { userId, tokenId } = caller
  return { organisationId, userId, ...(tokenId !== undefined && { tokenId }) }
}
