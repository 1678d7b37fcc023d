import { expect, test } from 'vitest'
import { now, shiftClock } from '@platform/core/clock'
import * as Cluster from '@platform/core/cluster/cluster'
import * as keys from '@platform/core/db/keys'
import { get } from '@platform/core/db/table'
import { transact } from '@platform/core/db/transact'
import { enroll } from '@platform/core/relay/enrollment'
import { spendToken } from '@platform/core/relay/replay'
import { authenticateRelay } from '@platform/core/relay/request-token'
import { relayToken } from '../../support/tokens.ts'
import { callerOf, enrollRequest, refusalOf, relayKey, started } from '../../support/world.ts'

await started()

const path = '/api/v1/relay/goodbye'

test.for([
  { clock: 'a minute ahead', aheadMs: 60_000 },
  { clock: 'right', aheadMs: 0 },
  { clock: 'a minute behind', aheadMs: -60_000 },
])('a spent request of a relay whose clock is $clock is remembered until its age refuses it', async ({ aheadMs }) => {
  const key = relayKey()
  const { enrollmentToken } = await Cluster.register(await callerOf(), { name: 'Berlin', type: 'Hypervisor' })
  const { relayId } = await enroll({ ...enrollRequest(enrollmentToken), publicKey: key.wire })
  shiftClock(aheadMs)
  const { authorization } = await relayToken(relayId, key.privateKey, path)
  shiftClock(-aheadMs)

  const authenticate = () => authenticateRelay(authorization.slice('Relay '.length), path, Buffer.alloc(0))
  const caller = await authenticate()
  await transact([spendToken(caller)])
  const { ttl } = (await get(keys.relayRequest(relayId, caller.tokenId))) ?? {}
  shiftClock(Number(ttl) * 1000 - now())
  expect(await refusalOf(authenticate())).toBe('unauthenticated')
})
