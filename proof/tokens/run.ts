import { createPublicKey } from 'node:crypto'
import * as Cluster from '@platform/core/clusters/cluster'
import { nowSeconds } from '@platform/core/clock'
import { enroll } from '@platform/core/relays/enrollment'
import { newId } from '@platform/core/id'
import { personOf } from '../../test/functions/person.ts'
import { isProtected, requestTo, type Row, rowNamed, rows } from '../../test/functions/table.ts'
import { writes } from '../../test/functions/writes.ts'
import { publicPortal } from '../../test/support/browser-session.ts'
import { decodedPath, posting, send, type Sent } from '../../test/support/event.ts'
import { relayToken } from '../../test/support/tokens.ts'
import { enrollRequest, relayKey } from '../../test/support/world.ts'
import { type Forgeries, mangled, wronglyClaimed, wronglySigned } from './forgeries.ts'
import { type Headers, inCookie, inHeader, wronglyWritten } from './headers.ts'
import { callerOf, otherKinds, platformKeys } from './kinds.ts'
import { wronglyClaimedByRelay } from './relay-claims.ts'

/** What was seen of tokens that are not what an operation asks for. */
export interface Seen {
  /** Ways to be wrong: of users, of relays, and in the bodies that hold a token. */
  ways: number
  operations: number
  requests: number
  /** Requests that were not refused, or not in the one way. */
  accepted: string[]
  different: string[]
  /** Refusals that have written something. */
  written: number
  /** Operations that refuse the good token, too. */
  closed: string[]
}

export const newSeen = (): Seen => ({
  ways: 0,
  operations: 0,
  requests: 0,
  accepted: [],
  different: [],
  written: 0,
  closed: [],
})

const forUsers = rows.filter((row) => isProtected(row) && row.endpoint.access !== 'relay')
const forRelays = rows.filter(({ endpoint }) => endpoint.access === 'relay')

const bearer = (headers: Readonly<Record<string, string>>): string =>
  (headers['authorization'] ?? '').split(' ')[1] ?? ''

/** Whoever has these had a good one: that it is over is no news. */
const oncePlatforms = new Set(['ten years old'])

/** Sends a request in every wrong way; each has to hear the same as one that says nothing. */
async function tryAll(row: Row, request: Sent, ways: Readonly<Record<string, Headers>>, seen: Seen): Promise<void> {
  const expected = heardOf(await send(row.handler, request))
  for (const [name, headers] of Object.entries(ways)) {
    const before = writes()
    const received = await send(row.handler, { ...request, headers: { ...headers } })
    seen.requests++
    seen.written += writes() - before
    const isExpired = oncePlatforms.has(name.split(',')[0] ?? '') && received.json?.error === 'token_expired'
    if (received.status !== 401)
      seen.accepted.push(`${row.name} with ${name}: ${received.status} ${received.text.slice(0, 200)}`)
    else if (heardOf(received) !== expected && !isExpired)
      seen.different.push(`${row.name} with ${name}: ${heardOf(received)}`)
  }
}

/** All that a caller is told, but for what names this very request. */
function heardOf({ status, headers, text }: { status: number; headers: Record<string, string>; text: string }): string {
  const trace = headers['x-trace-id'] ?? ''
  return JSON.stringify([status, { ...headers, 'x-trace-id': '' }, text.replaceAll(trace, '')])
}

/** Every operation for people, with every token that is none of theirs. */
export async function tryUsers(every: number, seen: Seen): Promise<void> {
  const who = await personOf('PlatformAdmin')
  const good = bearer(who.headers)
  const { access } = await platformKeys()
  const key = relayKey()
  const { enrollmentToken } = await Cluster.register(await callerOf(who), { name: newId('clus'), type: 'Hypervisor' })
  const { relayId } = await enroll({ ...enrollRequest(enrollmentToken), publicKey: key.wire })
  const forgeries: Forgeries = {
    ...wronglySigned(good, createPublicKey(access)),
    ...mangled(good),
    ...wronglyClaimed(good, access, nowSeconds()),
    ...(await otherKinds(who)),
    'a token of a relay': bearer(await relayToken(relayId, key.privateKey, '/api/v1/sites')),
  }
  const ways = {
    ...inHeader(forgeries, 'Bearer'),
    ...wronglyWritten(good, 'Bearer'),
    ...inCookie(forgeries, publicPortal),
  }
  const tried = forUsers.filter((_, index) => index % every === 0)
  seen.ways += Object.keys(ways).length
  seen.operations += tried.length
  for (const row of tried) {
    await tryAll(row, requestTo(row), ways, seen)
    const { status } = await send(row.handler, requestTo(row, { ...who.headers, ...publicPortal }))
    // Somebody who has signed out is still known for a quarter of an hour.
    if (status === 401) seen.closed.push(row.name)
  }
}

/** Every operation for relays, with every token that is not of this request. */
export async function tryRelays(seen: Seen): Promise<void> {
  const who = await personOf('PlatformAdmin')
  const caller = await callerOf(who)
  const enrolled = async () => {
    const key = relayKey()
    const { enrollmentToken } = await Cluster.register(caller, { name: newId('clus'), type: 'Hypervisor' })
    const { relayId } = await enroll({ ...enrollRequest(enrollmentToken), publicKey: key.wire })
    return { relayId, key: key.privateKey }
  }
  const [own, other] = [await enrolled(), await enrolled()]
  const kinds = await otherKinds(who)
  for (const row of forRelays) {
    const request = requestTo(row)
    const good = bearer(await relayToken(own.relayId, own.key, decodedPath(request.target)))
    const forgeries: Forgeries = {
      ...wronglySigned(good, createPublicKey(own.key)),
      ...mangled(good),
      ...wronglyClaimedByRelay(good, own, other, nowSeconds()),
      ...kinds,
      'an access token': bearer(who.headers),
    }
    const ways = { ...inHeader(forgeries, 'Relay'), ...wronglyWritten(good, 'Relay') }
    if (row === forRelays[0]) seen.ways += Object.keys(ways).length
    seen.operations++
    await tryAll(row, request, ways, seen)
    const { status } = await send(row.handler, { ...request, headers: { authorization: `Relay ${good}` } })
    if (status === 401) seen.closed.push(row.name)
  }
}

/** Where a token stands in a body, and what comes with it. */
const inBodies: Readonly<Record<string, (token: string) => object>> = {
  'POST /api/v1/auth/refresh': (refreshToken) => ({ refreshToken }),
  'POST /api/v1/auth/oidc/token': (code) => ({ code }),
  'POST /api/v1/relay/enroll': (enrollmentToken) => enrollRequest(enrollmentToken),
}

/** Tokens of every other kind in the bodies that hold one. */
export async function tryBodies(seen: Seen): Promise<void> {
  const who = await personOf('OrgAdmin')
  const kinds: Forgeries = { ...(await otherKinds(who)), 'an access token': bearer(who.headers) }
  const own: Readonly<Record<string, string>> = {
    'POST /api/v1/auth/refresh': 'a refresh token',
    'POST /api/v1/auth/oidc/token': 'a sign-in code',
    'POST /api/v1/relay/enroll': 'an enrollment token',
  }
  for (const [name, bodyOf] of Object.entries(inBodies)) {
    const row = rowNamed(name)
    const good = kinds[own[name] ?? ''] ?? ''
    const others = Object.entries(kinds).filter(([kind]) => kind !== own[name])
    // NUL, spaces and capitals around what is good, or only a part of it.
    const near = Object.entries({ ...mangledSecret(good) })
    const ways = [...others, ...near]
    seen.ways += ways.length
    seen.operations++
    for (const [kind, token] of ways) {
      const before = writes()
      const { status, text } = await send(row.handler, posting(row.endpoint.path, bodyOf(token)))
      seen.requests++
      seen.written += writes() - before
      if (status < 400 || status >= 500) seen.accepted.push(`${name} with ${kind}: ${status} ${text.slice(0, 200)}`)
    }
  }
}

const mangledSecret = (good: string): Forgeries => ({
  'its own in capitals': good.toUpperCase(),
  'its own without its end': good.slice(0, -1),
  'its own without its beginning': good.slice(1),
  'its own with more': `${good}A`,
  'its own with NUL': `${good}\0`,
  'its own with a space': ` ${good} `,
  'its own twice': `${good}.${good}`,
  'its own with another secret': `${good.slice(0, -20)}${'A'.repeat(20)}`,
  'its own with nothing for a secret': `${good.split('.').slice(0, -1).join('.')}.`,
  'its own in Base64': Buffer.from(good).toString('base64url'),
})
