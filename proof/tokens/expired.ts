import * as ApiToken from '@platform/core/accounts/api-token'
import * as Cluster from '@platform/core/clusters/cluster'
import { iso, now, shiftClock } from '@platform/core/clock'
import * as keys from '@platform/core/db/keys'
import { get, patch } from '@platform/core/db/table'
import { transact } from '@platform/core/db/transact'
import { newId, sha256 } from '@platform/core/id'
import { signIn } from '@platform/core/accounts/session'
import { password, type Person, personOf } from '../../test/functions/person.ts'
import { rowNamed } from '../../test/functions/table.ts'
import { posting, type Received, send, type Sent } from '../../test/support/event.ts'
import { administrator, adminToken, enrollRequest } from '../../test/support/world.ts'
import { cloud } from '../../test/core/support/identity.ts'
import { callerOf } from './kinds.ts'

/** A token that ends some time after now, where its row is, and how it is used. */
interface Expiring {
  endsAtMs: number
  row: keys.Key
  use: () => Promise<Received>
}

const ask = (name: string, sent: Sent): Promise<Received> => send(rowNamed(name).handler, sent)
const afterMs = (ms: number): number => now() + ms

async function refreshToken({ username }: Person): Promise<Expiring> {
  const { refreshToken: token } = await signIn({ username, password }, { address: '192.0.2.1' })
  const [sessionId = '', tokenId = ''] = token.split('.')
  const use = () => ask('POST /api/v1/auth/refresh', posting('/api/v1/auth/refresh', { refreshToken: token }))
  return { endsAtMs: afterMs(7 * 24 * 3_600_000), row: keys.refreshToken(sessionId, tokenId), use }
}

async function apiToken(who: Person): Promise<Expiring> {
  const endsAtMs = afterMs(86_400_000)
  const { id, token } = await ApiToken.create(await callerOf(who), { name: newId('tok'), expiresAt: iso(endsAtMs) })
  const headers = { authorization: `Bearer ${token}` }
  const use = () => ask('GET /api/v1/auth/me', { target: '/api/v1/auth/me', headers })
  return { endsAtMs, row: keys.apiToken(id), use }
}

async function enrollmentToken(who: Person): Promise<Expiring> {
  const cluster = await Cluster.register(await callerOf(who), { name: newId('clus'), type: 'Hypervisor' })
  const [id = ''] = cluster.enrollmentToken.split('.')
  const use = () =>
    ask('POST /api/v1/relay/enroll', posting('/api/v1/relay/enroll', enrollRequest(cluster.enrollmentToken)))
  return { endsAtMs: afterMs(24 * 3_600_000), row: keys.enrollment(id), use }
}

async function initialAdminToken(): Promise<Expiring> {
  const token = await adminToken()
  const set = { setupComplete: false, tokenHash: sha256(token), tokenMintedAtMs: now() }
  await transact([patch(keys.platform(), { set })])
  const named = { platformName: newId('org'), adminUsername: newId('user') }
  const body = { ...administrator, ...named, initialAdminToken: token }
  const use = () => ask('POST /api/v1/setup/complete', posting('/api/v1/setup/complete', body))
  return { endsAtMs: afterMs(24 * 3_600_000), row: keys.platform(), use }
}

async function consentState(): Promise<Expiring> {
  const admin = await personOf('PlatformAdmin')
  const path = '/api/v1/platform/identity'
  const name = 'POST /api/v1/platform/identity/providers'
  const { json: provider } = await ask(name, posting(`${path}/providers`, cloud, admin.headers))
  const { json } = await ask(
    `${name}/{id}/consent`,
    posting(`${path}/providers/${provider.id}/consent`, '', admin.headers),
  )
  const state = new URL(json.url).searchParams.get('state') ?? ''
  const query = new URLSearchParams({ state, tenant: cloud.tenantId, admin_consent: 'True' })
  const use = () => ask(`GET ${path}/consent-callback`, { target: `${path}/consent-callback?${query.toString()}` })
  return { endsAtMs: afterMs(600_000), row: keys.consentRequest(sha256(state)), use }
}

const kinds: Readonly<Record<string, (who: Person) => Promise<Expiring>>> = {
  'refresh token': refreshToken,
  'API token': apiToken,
  'enrollment token': enrollmentToken,
  'initial admin token': initialAdminToken,
  'state of a request for consent': consentState,
}

/** How long after its end a token is used. */
const latenessMs = [0, 1, 1000, 3_600_000, 30 * 24 * 3_600_000]

/** What was seen of expired tokens. */
export interface Expired {
  kinds: number
  /** Uses of a token that has expired and whose row is still in the table. */
  uses: number
  /** Those that opened something, by what they were. */
  accepted: string[]
  /** Kinds of which one that had not expired opened nothing: nothing would be shown of them. */
  withoutEffect: string[]
}

const isAccepted = ({ status }: Received): boolean => status < 400

/** Uses tokens of every kind after their time, while the store still has them. */
export async function useExpired(): Promise<Expired> {
  const seen: Expired = { kinds: Object.keys(kinds).length, uses: 0, accepted: [], withoutEffect: [] }
  for (const [kind, make] of Object.entries(kinds)) {
    const fresh = await make(await personOf('OrgAdmin'))
    if (!isAccepted(await fresh.use())) seen.withoutEffect.push(kind)
    for (const lateMs of latenessMs) await useLate(kind, await make(await personOf('OrgAdmin')), lateMs, seen)
  }
  return seen
}

async function useLate(kind: string, { endsAtMs, row, use }: Expiring, lateMs: number, seen: Expired): Promise<void> {
  const shiftMs = endsAtMs + lateMs - now()
  shiftClock(shiftMs)
  try {
    if ((await get(row)) === undefined) seen.withoutEffect.push(`${kind}: its row has gone`)
    seen.uses++
    const received = await use()
    if (isAccepted(received))
      seen.accepted.push(`${kind}, ${lateMs} ms late: ${received.status} ${received.text.slice(0, 200)}`)
  } finally {
    shiftClock(-shiftMs)
  }
}
