import { type ExternalIdentity, type ProviderRecord } from '../record.ts'

/** What the platform takes from the claims of a provider. Whatever else they hold, of whatever type and size, is passed over. */

/** Claims as they came: nothing is known of their types. */
export type Claims = Readonly<Record<string, unknown>>

/** A subject has at most 255 characters, says OpenID Connect; somebody else's would be a cut one. */
const longestSubject = 255
const longestText = 254
const longestGroup = 500
const mostGroups = 500

/** The names of the claims that a provider's settings ask for. */
function wantedOf({ settings, roleMappings }: Pick<ProviderRecord, 'settings' | 'roleMappings'>) {
  const { usernameClaim = 'preferred_username', emailClaim = 'email', groupsClaim = 'groups' } = settings
  return { usernameClaim, emailClaim, groupsClaim: roleMappings.length > 0 ? groupsClaim : undefined }
}

/** Whether the provider has to be asked for more: a claim that is needed does not stand in its ID token. */
export function lacksClaims(provider: ProviderRecord, claims: Claims): boolean {
  const { usernameClaim, emailClaim, groupsClaim } = wantedOf(provider)
  const needed = [usernameClaim, emailClaim, ...(groupsClaim === undefined ? [] : [groupsClaim])]
  return needed.some((name) => valueOf(claims, name) === undefined)
}

/** Whom the claims speak of; undefined where they have no subject that could be told from others. */
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

/** Settings name the claim: it must not find what every object has. */
const valueOf = (claims: Claims, name: string): unknown => (Object.hasOwn(claims, name) ? claims[name] : undefined)

/** One short line of well-formed text, or ''. */
function textOf(value: unknown): string {
  if (typeof value !== 'string') return ''
  const text = value.slice(0, 2 * longestText).replace(/[\p{Cc}\p{Zl}\p{Zp}]/gu, '')
  return text.trim().slice(0, longestText).toWellFormed()
}

/** Of so many groups the first count; one that is not a text of a group's length is none that a role could be mapped to. */
function groupsOf(value: unknown): string[] {
  const given: unknown[] = Array.isArray(value) ? value : [value]
  const groups = given.filter((group) => typeof group === 'string').filter(({ length }) => length <= longestGroup)
  return [...new Set(groups)].slice(0, mostGroups)
}
