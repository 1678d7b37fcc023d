import { type ErrorDetail } from '@platform/contract/common'
import { config } from '../config.ts'
import { platformError } from '../error.ts'
import { checkUrl } from '../outbound/outbound.ts'
import { parseAllowlist, hostPortOf } from '../lib/settings/allowlist.ts'

/** Addresses of identity providers, as far as their text tells. What their names lead to shows when they are called. */

const allowed = parseAllowlist(config.PLAT_OUTBOUND_ALLOW)

/** A field of a provider's configuration that will not do (D32). Values are never echoed. */
export const addressError = (field: string, code: string, message: string): ErrorDetail => ({
  in: 'body',
  path: `/${field}`,
  code,
  message,
})

/**
 * What is wrong with the address of something that speaks HTTP: plain http is for what `PLAT_OUTBOUND_ALLOW` names. Throws
 * `url_not_allowed` for private addresses and those with credentials.
 */
export function httpAddressErrors(field: string, address: string): ErrorDetail[] {
  const url = publicUrlOf(address)
  const isBare = url.search === '' && url.hash === '' && !/[?#]/.test(address)
  const isSafe = url.protocol === 'https:' || allowed.has(hostPortOf(url))
  return [
    ...(isBare ? [] : [addressError(field, 'invalid_url', 'must hold no query and no fragment')]),
    ...(isSafe ? [] : [addressError(field, 'https_required', 'must be https: secrets travel there')]),
  ]
}

const ldapPorts: Record<string, number> = { 'ldap:': 389, 'ldaps:': 636 }

/**
 * The address of a directory as it is kept: scheme, host and port, the host spelled as the guard of outbound calls spells it.
 * Undefined where it is no such address. Throws `url_not_allowed` as `problemsOfHttp` does.
 */
export function ldapAddress(address: string): string | undefined {
  const { protocol, host, port, pathname, search, hash, username, password } = new URL(address)
  const rest = pathname.replace(/^\/$/, '') + search + hash + username + password
  const guarded = `http://${host}${port === '' ? `:${ldapPorts[protocol]}` : ''}`
  if (rest !== '' || /[?#@]/.test(address) || host === '' || !URL.canParse(guarded)) return undefined
  return `${protocol}//${hostPortOf(publicUrlOf(guarded))}`
}

function publicUrlOf(address: string): URL {
  try {
    return checkUrl(address)
  } catch (cause) {
    throw platformError('url_not_allowed', {}, { cause })
  }
}
