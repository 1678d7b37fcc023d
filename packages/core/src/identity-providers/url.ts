import type { ErrorDetail } from '@platform/contract/common'
import { config } from '../config.ts'
import { platformError } from '../error.ts'
import { checkUrl } from '../outbound/outbound.ts'
import { parseAllowlist, hostPortOf } from '../lib/settings/allowlist.ts'

/** Checks URLs when a provider is configured. The outbound guard checks the resolved addresses when it connects. */

const allowlist = parseAllowlist(config.PLAT_OUTBOUND_ALLOW)

/** `message` must not contain submitted values. */
export const fieldError = (field: string, code: string, message: string): ErrorDetail => ({
  in: 'body',
  path: `/${field}`,
  code,
  message,
})

/**
 * Plain http and private addresses require an entry in `PLAT_OUTBOUND_ALLOW`. Throws `url_not_allowed` for private
 * addresses without an entry and for URLs with credentials.
 */
export function httpAddressErrors(field: string, address: string): ErrorDetail[] {
  const url = parsePublicUrl(address)
  const hasNoQuery = url.search === '' && url.hash === '' && !/[?#]/.test(address)
  const isEncrypted = url.protocol === 'https:' || allowlist.has(hostPortOf(url))
  return [
    ...(hasNoQuery ? [] : [fieldError(field, 'invalid_url', 'must not contain a query or fragment')]),
    ...(isEncrypted ? [] : [fieldError(field, 'https_required', 'must be https, because secrets are sent')]),
  ]
}

const ldapPorts: Record<string, number> = { 'ldap:': 389, 'ldaps:': 636 }

/**
 * Returns scheme, host and port, or undefined if invalid. Throws `url_not_allowed` for private addresses that are not
 * in `PLAT_OUTBOUND_ALLOW`.
 */
export function ldapAddress(address: string): string | undefined {
  const { protocol, host, port, pathname, search, hash, username, password } = new URL(address)
  const disallowedParts = pathname.replace(/^\/$/, '') + search + hash + username + password
  const httpEquivalent = `http://${host}${port === '' ? `:${ldapPorts[protocol]}` : ''}`
  if (disallowedParts !== '' || /[?#@]/.test(address) || host === '' || !URL.canParse(httpEquivalent)) return undefined
  return `${protocol}//${hostPortOf(parsePublicUrl(httpEquivalent))}`
}

function parsePublicUrl(address: string): URL {
  try {
    return checkUrl(address)
  } catch (cause) {
    throw platformError('url_not_allowed', {}, { cause })
  }
}
