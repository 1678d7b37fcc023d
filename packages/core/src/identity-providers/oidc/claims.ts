import type { ExternalIdentity, ProviderRecord } from '../record.ts'

/** Reads only the claims that describe the user; other claims may have any type and size. */

export type Claims = Readonly<Record<string, unknown>>

/** The maximum of OpenID Connect. Longer subjects are rejected, because truncated ones could collide. */
const maxSubjectLength = 255
const maxTextLength = 254

function claimNames({ settings, roleMappings }: Pick<ProviderRecord, 'settings' | 'roleMappings'>) {
  const { usernameClaim = 'preferred_username', emailClaim = 'email', groupsClaim = 'groups' } = settings
  return { usernameClaim, emailClaim, groupsClaim: roleMappings.length > 0 ? groupsClaim : undefined }
}

export function lacksClaims(provider: ProviderRecord, claims: Claims): boolean {
  const { usernameClaim, emailClaim, groupsClaim } = claimNames(provider)
  const requiredClaims = [usernameClaim, emailClaim, ...(groupsClaim === undefined ? [] : [groupsClaim])]
  return requiredClaims.some((name) => valueOf(claims, name) === undefined)
}

export function identityOf(provider: ProviderRecord, claims: Claims): ExternalIdentity | undefined {
  const { usernameClaim, emailClaim, groupsClaim } = claimNames(provider)
  const subject = valueOf(claims, 'sub')
  if (typeof subject !== 'string' || subject === '' || subject.length > maxSubjectLength) return undefined
  const email = textOf(valueOf(claims, emailClaim))
  const missingGroups = groupsClaim === undefined ? undefined : missingGroupsOf(claims, groupsClaim)
  return {
    subject,
    username: textOf(valueOf(claims, usernameClaim)) || email || textOf(subject),
    displayName: textOf(valueOf(claims, 'name')),
    email,
    groups: groupsClaim === undefined ? [] : mappedGroupsOf(provider, valueOf(claims, groupsClaim)),
    ...(missingGroups !== undefined && { missingGroups }),
  }
}

/** The settings choose the name, so inherited properties must be excluded. */
const valueOf = (claims: Claims, name: string): unknown => (Object.hasOwn(claims, name) ? claims[name] : undefined)

/** Returns one short line of well-formed text; empty if the value is not a string. */
function textOf(value: unknown): string {
  if (typeof value !== 'string') return ''
  const text = value.slice(0, 2 * maxTextLength).replace(/[\p{Cc}\p{Zl}\p{Zp}]/gu, '')
  return text.trim().slice(0, maxTextLength).toWellFormed()
}

/** The number of groups is not limited, because only mapped groups are kept. */
function mappedGroupsOf({ roleMappings }: Pick<ProviderRecord, 'roleMappings'>, value: unknown): string[] {
  const groups = new Set<unknown>(Array.isArray(value) ? value : [value])
  return [...new Set(roleMappings.map(({ group }) => group))].filter((group) => groups.has(group))
}

/**
 * Entra leaves out the groups of users who have too many ("overage"). Distributed claims are not in the token either.
 */
function missingGroupsOf(claims: Claims, groupsClaim: string): string | undefined {
  const claimSources = valueOf(claims, '_claim_names')
  const isDistributed =
    typeof claimSources === 'object' && claimSources !== null && Object.hasOwn(claimSources, groupsClaim)
  const hasMore = groupsClaim === 'groups' && [true, 'true'].some((value) => value === valueOf(claims, 'hasgroups'))
  return isDistributed || hasMore
    ? `The provider left the groups out of the claim ${groupsClaim}, because the user has too many.`
    : undefined
}
