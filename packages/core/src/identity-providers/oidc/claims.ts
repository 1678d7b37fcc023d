import { type ExternalIdentity, type ProviderRecord } from '../record.ts'

/** Reads the supported claims of a provider. Other claims of any type and size are ignored. */

/** Claims as received, of unknown types. */
export type Claims = Readonly<Record<string, unknown>>

/** The maximum of OpenID Connect. Longer subjects are rejected, because truncated ones could collide. */
const longestSubject = 255
const longestText = 254
const longestGroup = 500
const mostGroups = 500

/** The names of the claims that the settings use. */
function wantedOf({ settings, roleMappings }: Pick<ProviderRecord, 'settings' | 'roleMappings'>) {
  const { usernameClaim = 'preferred_username', emailClaim = 'email', groupsClaim = 'groups' } = settings
  return { usernameClaim, emailClaim, groupsClaim: roleMappings.length > 0 ? groupsClaim : undefined }
}

/** Whether a required claim is missing in the ID token, so that userinfo must be requested. */
export function lacksClaims(provider: ProviderRecord, claims: Claims): boolean {
  const { usernameClaim, emailClaim, groupsClaim } = wantedOf(provider)
  const needed = [usernameClaim, emailClaim, ...(groupsClaim === undefined ? [] : [groupsClaim])]
  return needed.some((name) => valueOf(claims, name) === undefined)
}

/** The identity in the claims; undefined without a valid subject. */
export function identityOf(provider: ProviderRecord, claims: Claims): ExternalIdentity | undefined {
  const { usernameClaim, emailClaim, groupsClaim } = wantedOf(provider)
  const subject = valueOf(claims, 'sub')
  if (typeof subject !== 'string' || subject === '' || subject.length > longestSubject) return undefined
  const email = textOf(valueOf(claims, emailClaim))
  return {
    subject,
    username: textOf(valueOf(claims, usernameClaim)) || email || textOf(subject),
    email,
    groups: groupsClaim === undefined ? [] : groupsOf(valueOf(claims, groupsClaim)),
  }
}

/** Settings name the claim: only own properties count. */
const valueOf = (claims: Claims, name: string): unknown => (Object.hasOwn(claims, name) ? claims[name] : undefined)

/** One short line of well-formed text, or ''. */
function textOf(value: unknown): string {
  if (typeof value !== 'string') return ''
  const text = value.slice(0, 2 * longestText).replace(/[\p{Cc}\p{Zl}\p{Zp}]/gu, '')
  return text.trim().slice(0, longestText).toWellFormed()
}

/** The first groups up to the limit, without those of invalid type or length. */
function groupsOf(value: unknown): string[] {
  const given: unknown[] = Array.isArray(value) ? value : [value]
  const groups = given.filter((group) => typeof group === 'string').filter(({ length }) => length <= longestGroup)
  return [...new Set(groups)].slice(0, mostGroups)
}
