import { type KeyObject, randomUUID } from 'node:crypto'
import * as Cluster from '@platform/core/clusters/cluster'
import { config } from '@platform/core/config'
import * as keys from '@platform/core/db/keys'
import { get } from '@platform/core/db/table'
import { newId } from '@platform/core/id'
import { channelFor } from '@platform/core/relays/channel'
import { enroll, issue } from '@platform/core/relays/enrollment'
import { nowSeconds } from '@platform/core/clock'
import { lambdaContext } from '@platform/local/functions/context'
import { SignJWT } from 'jose'
import { expect, test } from 'vitest'
import { handler as authorize } from '../../functions/channel-authorizer.ts'
import { handler as presence } from '../../functions/queue/presence.ts'
import { bootstrapPlatform, enrollRequest, newCaller, newRelayKey } from '../support/fixtures.ts'
import { countStoreCalls } from '../support/store-calls.ts'

await bootstrapPlatform()
config.PLAT_CHANNEL_URL = '/channel'

async function newRelay() {
  const caller = await newCaller()
  const key = newRelayKey()
  const { id: clusterId, enrollmentToken } = await Cluster.register(caller, { name: newId('clus'), type: 'Hypervisor' })
  const { relayId } = await enroll({ ...enrollRequest(enrollmentToken), publicKey: key.wire })
  const channel = channelFor({ relayId, clusterId, instanceId: randomUUID() })
  if (channel === undefined) throw new Error('There is no channel.')
  return { caller, clusterId, relayId, key: key.privateKey, ...channel }
}
type Relay = Awaited<ReturnType<typeof newRelay>>

interface Proof {
  key?: KeyObject
  kid?: string
  path?: string
  audience?: string
  ageSeconds?: number
  lifeSeconds?: number
}

const prove = ({ relayId, key, clientId }: Relay, proof: Proof = {}): Promise<string> => {
  const issuedAt = nowSeconds() - (proof.ageSeconds ?? 0)
  return new SignJWT({ path: proof.path ?? `mqtt:${clientId}` })
    .setProtectedHeader({ alg: 'EdDSA', kid: proof.kid ?? relayId })
    .setAudience(proof.audience ?? 'platform-relay')
    .setJti(randomUUID())
    .setIssuedAt(issuedAt)
    .setExpirationTime(issuedAt + (proof.lifeSeconds ?? 60))
    .sign(proof.key ?? key)
}

const connect = (clientId: string, password: string) =>
  authorize(
    { protocolData: { mqtt: { username: '', clientId, password: Buffer.from(password).toString('base64') } } },
    lambdaContext('channel-authorizer', '', 1000),
  )

const denial = { isAuthenticated: false }

test('a relay may connect as itself, and only receive the wake-ups of its cluster', async () => {
  const relay = await newRelay()
  const password = await prove(relay)
  const response = await connect(relay.clientId, password)
  const { policyDocuments = [], ...rest } = 'version' in response ? {} : response
  expect(rest).toEqual({
    isAuthenticated: true,
    principalId: relay.relayId.replace('_', ''),
    disconnectAfterInSeconds: 14_400,
    refreshAfterInSeconds: 14_400,
  })
  const arn = (name: string) => `arn:aws:iot:us-east-1:000000000000:${name}`
  const Effect = 'Allow'
  expect(policyDocuments.map((text) => JSON.parse(text).Statement)).toEqual([
    [
      { Effect, Action: 'iot:Connect', Resource: arn(`client/${relay.clientId}`) },
      { Effect, Action: 'iot:Subscribe', Resource: arn(`topicfilter/platform/clusters/${relay.clusterId}`) },
      { Effect, Action: 'iot:Receive', Resource: arn(`topic/platform/clusters/${relay.clusterId}`) },
    ],
  ])
  expect(await countStoreCalls(() => connect(relay.clientId, password))).toBe(1)
})

test.each<[string, (relay: Relay, other: Relay) => Promise<[clientId: string, password: string]>]>([
  ['with no password', async ({ clientId }) => [clientId, '']],
  ['with a password that is no token', async ({ clientId }) => [clientId, 'x'.repeat(6000)]],
  ['as another relay, with its own proof', async (relay, other) => [other.clientId, await prove(relay)]],
  [
    'as another relay, with a proof for it',
    async (relay, { clientId }) => [clientId, await prove({ ...relay, clientId })],
  ],
  ['with the key of another relay', async (relay, { key }) => [relay.clientId, await prove(relay, { key })]],
  [
    'with the id of another relay',
    async (relay, { relayId }) => [relay.clientId, await prove(relay, { kid: relayId })],
  ],
  ['with an unknown relay', async (relay) => [relay.clientId, await prove(relay, { kid: newId('relay') })]],
  [
    'with the proof of an HTTP request',
    async (relay) => [relay.clientId, await prove(relay, { path: '/api/v1/relay/heartbeat' })],
  ],
  [
    'with the proof of another stage',
    async (relay) => [relay.clientId, await prove(relay, { path: `mqtt:platform-other-${relay.clientId.slice(9)}` })],
  ],
  [
    'as a client of another stage',
    async (relay) => {
      const clientId = relay.clientId.replace('platform', 'platform-other')
      return [clientId, await prove({ ...relay, clientId })]
    },
  ],
  [
    'without an instance',
    async (relay) => {
      const clientId = `platform-${relay.relayId}`
      return [clientId, await prove({ ...relay, clientId })]
    },
  ],
  [
    'with a wildcard in its id',
    async (relay) => {
      const clientId = `platform-${relay.relayId}-aaaaaaaa#`
      return [clientId, await prove({ ...relay, clientId })]
    },
  ],
  ['with an expired proof', async (relay) => [relay.clientId, await prove(relay, { ageSeconds: 200 })]],
  ['with a proof that lives too long', async (relay) => [relay.clientId, await prove(relay, { lifeSeconds: 3600 })]],
  ['with a proof for another audience', async (relay) => [relay.clientId, await prove(relay, { audience: 'other' })]],
  [
    'after another relay replaced it',
    async (relay) => {
      const proof = await prove(relay)
      expect(await connect(relay.clientId, proof)).toMatchObject({ isAuthenticated: true })
      const { enrollmentToken } = await issue(relay.caller, relay.clusterId)
      await enroll(enrollRequest(enrollmentToken))
      return [relay.clientId, proof]
    },
  ],
])('a relay may not connect %s', async (_, attack) => {
  const [relay, otherRelay] = [await newRelay(), await newRelay()]
  const [clientId, password] = await attack(relay, otherRelay)
  expect(await connect(clientId, password)).toEqual(denial)
})

test.each([null, {}, { protocolData: { mqtt: { clientId: 'x'.repeat(200), password: '' } } }, { protocolData: 'x' }])(
  'an event that is not valid is denied: %j',
  async (event) => {
    expect(await authorize(event)).toEqual(denial)
  },
)

test.each([
  ['an unknown relay', () => `platform-${newId('relay')}-${randomUUID()}`],
  ['another stage', ({ clientId }: Relay) => clientId.replace('platform', 'platform-other')],
  ['another client', () => 'sensor-1'],
])('an event about %s changes nothing', async (_, clientIdFor) => {
  const relay = await newRelay()
  const key = keys.cluster(relay.caller.organisationId, relay.clusterId)
  const itemBefore = await get(key)
  await presence({
    clientId: clientIdFor(relay),
    timestamp: nowSeconds() * 1000,
    eventType: 'connected',
    sessionIdentifier: randomUUID(),
    versionNumber: 1,
  })
  expect(await get(key)).toEqual(itemBefore)
})

test('an event that is not valid fails the invocation', async () => {
  await expect(presence({ clientId: 'platform', eventType: 'opened' })).rejects.toThrow()
})
