// Small, non-secret preferences of this browser. Settings that belong to the user are stored on the platform.
const cookieName = (name: string): string => `plat_portal_${name}`
const yearSeconds = 365 * 24 * 3600

export function getPreference(name: string): string | undefined {
  const start = `${cookieName(name)}=`
  const pair = document.cookie.split('; ').find((each) => each.startsWith(start))
  return pair === undefined ? undefined : decode(pair.slice(start.length))
}

// A sibling domain may have set a cookie with this name and an invalid value.
function decode(text: string): string | undefined {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}

/** Stores a preference in a cookie, so the value must be short. `undefined` removes the preference. */
export function setPreference(name: string, value: string | undefined, forSeconds = yearSeconds): void {
  const secureAttribute = location.protocol === 'https:' ? '; Secure' : ''
  const maxAgeSeconds = value === undefined ? 0 : forSeconds
  document.cookie = `${cookieName(name)}=${encodeURIComponent(value ?? '')}; Path=/; SameSite=Strict; Max-Age=${maxAgeSeconds}${secureAttribute}`
}
