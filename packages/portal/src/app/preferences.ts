/**
 * What the portal remembers of a browser between visits: small things that are nobody's secret, in a cookie of the portal's.
 * Everything that follows the user is kept by the platform.
 */
const cookieName = (name: string): string => `plat_portal_${name}`
const yearSeconds = 365 * 24 * 3600

/** What is remembered under a name; undefined where nothing is. */
export function remembered(name: string): string | undefined {
  const start = `${cookieName(name)}=`
  const pair = document.cookie.split('; ').find((each) => each.startsWith(start))
  return pair === undefined ? undefined : decoded(pair.slice(start.length))
}

/** A neighbour on a sibling domain may have put a cookie there that is none of the portal's. */
function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}

/** Remembers a text of at most some hundred characters; undefined forgets. */
export function remember(name: string, value: string | undefined, forSeconds = yearSeconds): void {
  const isSecure = location.protocol === 'https:' ? '; Secure' : ''
  const age = value === undefined ? 0 : forSeconds
  document.cookie = `${cookieName(name)}=${encodeURIComponent(value ?? '')}; Path=/; SameSite=Strict; Max-Age=${age}${isSecure}`
}
