import { afterAll } from 'vitest'
import { startHostileIssuer } from '../../support/hostile-issuer.ts'
import { startOidcProvider } from '../../support/oidc-peer.ts'

/** Issuers on loopback. Import this file before core: core reads the allowed addresses when it is imported. */

export const peer = await startOidcProvider()
const issuers = await Promise.all(Array.from({ length: 40 }, () => startHostileIssuer()))
export const unreachableIssuer = await startHostileIssuer()

process.env['PLAT_LIMIT_SIGN_IN_STEP_PER_MINUTE'] = '1000000'
process.env['PLAT_OUTBOUND_ALLOW'] = [peer.host, ...issuers.map(({ server }) => server.host)].join(',')

afterAll(async () => {
  peer.close()
  await Promise.all([unreachableIssuer, ...issuers].map(({ server }) => server[Symbol.asyncDispose]()))
})

/** Returns an issuer that no other test uses. */
export function newIssuer() {
  const issuer = issuers.pop()
  if (issuer === undefined) throw new Error('No issuers left; start more of them.')
  return issuer
}
