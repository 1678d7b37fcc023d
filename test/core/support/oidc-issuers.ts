import { afterAll } from 'vitest'
import { startHostileIssuer } from '../../support/hostile-issuer.ts'
import { startOidcProvider } from '../../support/oidc-peer.ts'

/** Providers on loopback. Which of them the platform may reach is read when core is first imported: import this before it. */

export const peer = await startOidcProvider()
const issuers = await Promise.all(Array.from({ length: 40 }, () => startHostileIssuer()))
/** Nobody may reach it. */
export const unreachableIssuer = await startHostileIssuer()

process.env['PLAT_LIMIT_SIGN_IN_STEP_PER_MINUTE'] = '1000000'
process.env['PLAT_OUTBOUND_ALLOW'] = [peer.host, ...issuers.map(({ server }) => server.host)].join(',')

afterAll(async () => {
  peer.close()
  await Promise.all([unreachableIssuer, ...issuers].map(({ server }) => server[Symbol.asyncDispose]()))
})

/** An issuer that nobody else uses. */
export function newIssuer() {
  const issuer = issuers.pop()
  if (issuer === undefined) throw new Error('There are no more issuers: make more of them.')
  return issuer
}
