import { type ExternalIdentity, type ProviderRecord } from '../record.ts'

/** Reads only the claims that the settings name; other claims may have any type and size. */

export type Claims = Readonly<Record<string, unknown>>

/** The maximum of OpenID Connect. Longer subjects are rejected, because truncated ones could collide. */
const maxSubjectLength = 255
const maxTextLength = 254
const maxGroupLength = 500
const maxGroups = 500

function claimNames({ settings, roleMappings }: Pick<ProviderRecord, 'settings' | 'roleMappings'>) {
  const { usernameClaim = 'preferred_username', emailClaim = 'email', groupsClaim = 'groups' } = settings
  return { usernameClaim, emailClaim, groupsClaim: roleMappings.length > 0 ? groupsClaim : undefined }
}

export function lacksClaims(provider: ProviderRecord, claims: Claims): boolean {
  const { usernameClaim, emailClaim, groupsClaim } = claimNames(provider)
  const required = [usernameClaim, emailClaim, ...(groupsClaim === undefined ? [] : [groupsClaim])]
  return required.some((name) => valueOf(claims, name) === undefined)
}

export function identityOf(provider: ProviderRecord, claims: Claims): ExternalIdentity | undefined {
  const { usernameClaim, emailClaim, groupsClaim } = claimNames(provider)
  const subject = valueOf(claims, 'sub')
  if (typeof subject !== 'string' || subject === '' || subject.length > maxSubjectLength) return undefined
  const email = textOf(valueOf(claims, emailClaim))
  return {
    subject,
    username: textOf(valueOf(claims, usernameClaim)) || email || textOf(subject),
    displayName: textOf(valueOf(claims, 'name')),
    email,
    groups: groupsClaim === undefined ? [] : groupsOf(valueOf(claims, groupsClaim)),
  }
}

/** The settings choose the name, so inherited properties must be excluded. */
const valueOf = (claims: Claims, name: string): unknown => (Object.hasOwn(claims, name) ? claims[name] : undefined)

/** Returns one short line of well-formed text; empty if the value is no string. */
function textOf(value: unknown): string {
  if (typeof value !== 'string') return ''
  const text = value.slice(0, 2 * maxTextLength).replace(/[\p{Cc}\p{Zl}\p{Zp}]/gu, '')
  return text.trim().slice(0, maxTextLength).toWellFormed()
}

function groupsOf(value: unknown): string[] {
  const candidates: unknown[] = Array.isArray(value) ? value : [value]
  const groups = candidates
    .filter((group) => typeof group === 'string')
    .filter(({ length }) => length <= maxGroupLength)
  return [...new Set(groups)].slice(0, maxGroups)
}
