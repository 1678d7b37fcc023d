import { shiftClock } from '@platform/core/clock'
import { newId } from '@platform/core/id'
import { accessTokenSeconds } from '@platform/core/signing/access-token'
import { handler as clusters } from '../../../functions/clusters.ts'
import { send } from '../../support/request.ts'
import { atMost, type Section } from '../support/section.ts'
import { getting, newToken } from '../support/tenant.ts'
import { range } from '../support/statistics.ts'

const tokens = 100
const requests = 10_000

/** How often a process checks signatures of tokens that it has seen before. */
export async function countVerifies(): Promise<Section> {
  const organisationId = newId('org')
  const known = await Promise.all(range(tokens).map(() => newToken(organisationId)))
  const verifies = countCalls(crypto.subtle, 'verify')
  const authenticated = await acceptedOf(range(requests).map((index) => known[index % tokens] ?? ''))
  const counted = verifies.count

  const forged = await acceptedOf(known.map(tampered))
  shiftClock((accessTokenSeconds + 1) * 1000)
  const expired = await acceptedOf(known)
  shiftClock(-(accessTokenSeconds + 1) * 1000)
  verifies.stop()
  return {
    title: 'Signature checks',
    columns: ['requests', 'tokens', 'authenticated', 'signature checks', 'tampered, accepted', 'expired, accepted'],
    rows: [[requests, tokens, authenticated, counted, forged, expired]],
    goals: [
      atMost('signature checks of 10,000 requests with 100 tokens', counted, tokens),
      atMost('requests refused that should not be', requests - authenticated, 0),
      atMost('tampered tokens accepted', forged, 0),
      atMost('expired tokens accepted', expired, 0),
    ],
  }
}

/** How many of these tokens are let in. The cluster does not exist: 404 shows that the token counted. */
async function acceptedOf(accessTokens: readonly string[]): Promise<number> {
  let accepted = 0
  for (const token of accessTokens) {
    const { status } = await send(clusters, getting('/api/v1/clusters/none', token))
    if (status === 404) accepted++
  }
  return accepted
}

/** The last letter of a signature carries two bits that count for nothing; this changes one that counts. */
function tampered(token: string): string {
  const position = token.length - 10
  return `${token.slice(0, position)}${token[position] === 'A' ? 'B' : 'A'}${token.slice(position + 1)}`
}

/** Counts the calls of a method until told to stop. */
function countCalls(subtle: typeof crypto.subtle, method: 'verify') {
  const original = subtle[method].bind(subtle)
  const counter = { count: 0, stop: () => Reflect.deleteProperty(subtle, method) }
  subtle[method] = (...parameters: Parameters<typeof original>) => {
    counter.count++
    return original(...parameters)
  }
  return counter
}
