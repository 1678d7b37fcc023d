import { expect } from 'vitest'
import { test } from './support/test.ts'
import { createHash } from 'node:crypto'
import { expectStatus } from './support/answer.ts'
import { signJws } from './support/jws.ts'
import type { Platform } from './support/platform.ts'
import { newRelayKey, type Relay, requestEnrollment, tokenClaims } from './support/relay.ts'

const heartbeat = '/api/v1/relay/heartbeat'
const beat = JSON.stringify({ nodes: [], running: [], freeSlots: 0 })

/** Requests that this relay has not signed for this body. */
async function badTokens(platform: Platform, relay: Relay): Promise<Record<string, string>> {
  const claims = tokenClaims(heartbeat, beat)
  const { accessToken } = await platform.signIn()
  const header = { typ: 'relay+jwt', kid: relay.relayId }
  const without = (name: string) => Object.fromEntries(Object.entries(claims).filter(([claim]) => claim !== name))
  return {
    'no token': '',
    'the token of a user': `Bearer ${accessToken}`,
    'the token of a user as a relay': `Relay ${accessToken}`,
    'the signature of another key': `Relay ${signJws(header, claims, newRelayKey().privateKey)}`,
    'no signature': `Relay ${relay.sign(claims).replace(/[^.]*$/, '')}`,
    'another audience': `Relay ${relay.sign({ ...claims, aud: 'platform-api' })}`,
    'a life of ten minutes': `Relay ${relay.sign({ ...claims, exp: claims.iat + 600 })}`,
    'an expired token': `Relay ${relay.sign({ ...claims, iat: claims.iat - 600, exp: claims.iat - 540 })}`,
    'a token of tomorrow': `Relay ${relay.sign({ ...claims, iat: claims.iat + 86_400, exp: claims.iat + 86_460 })}`,
    'the hash of another body': `Relay ${relay.sign({ ...claims, bodySha256: createHash('sha256').digest('base64url') })}`,
    'the path of another call': `Relay ${relay.sign({ ...claims, path: '/api/v1/relay/goodbye' })}`,
    'no path': `Relay ${relay.sign(without('path'))}`,
    'no hash': `Relay ${relay.sign(without('bodySha256'))}`,
    'no identifier': `Relay ${relay.sign(without('jti'))}`,
    'no expiry': `Relay ${relay.sign(without('exp'))}`,
  }
}

test('returns node identifiers in order and the keys to pin', async ({ platform }) => {
  const { id, enrollmentToken } = await platform.newCluster()
  const names = ['node-2', 'node-1', 'node-3']
  const relay = await platform.enroll(enrollmentToken, names)
  expect(relay.clusterId).toBe(id)
  expect(relay.nodes.map(({ name }) => name)).toEqual(names)
  expect(new Set(relay.nodes.map((node) => node.id)).size).toBe(names.length)
  expect(relay.keys.keys.length).toBeGreaterThan(0)
})

test('returns the same result for the same token and key', async ({ platform }) => {
  const { enrollmentToken } = await platform.newCluster()
  const key = newRelayKey()
  const answers = [1, 2].map(() => requestEnrollment(platform.anonymous, enrollmentToken, key))
  answers.push(requestEnrollment(platform.anonymous, enrollmentToken, key))
  const enrolled = (await Promise.all(answers)).map((answer) => {
    const { serverTime: _, ...rest } = expectStatus(answer, 201)
    return rest
  })
  expect(enrolled[1]).toEqual(enrolled[0])
  expect(enrolled[2]).toEqual(enrolled[0])
})

test('rejects a used token with another key', async ({ platform }) => {
  const { enrollmentToken } = await platform.newCluster()
  await platform.enroll(enrollmentToken)
  const answer = await requestEnrollment(platform.anonymous, enrollmentToken, newRelayKey())
  expectStatus(answer, 409, 'enrollment_token_used')
})

test('accepts one of eight keys that race for a token', async ({ platform }) => {
  const { enrollmentToken } = await platform.newCluster()
  const answers = await Promise.all(
    Array.from({ length: 8 }, () => requestEnrollment(platform.anonymous, enrollmentToken, newRelayKey())),
  )
  expect(answers.filter(({ status }) => status === 201).length).toBe(1)
  for (const answer of answers) if (answer.status !== 201) expectStatus(answer, 409, 'enrollment_token_used')
})

test('rejects invalid enrollment tokens', async ({ platform }) => {
  const { enrollmentToken } = await platform.newCluster()
  for (const token of ['text', '.', `${enrollmentToken}x`, enrollmentToken.toUpperCase()]) {
    const answer = await requestEnrollment(platform.anonymous, token, newRelayKey())
    expectStatus(answer, 401, 'enrollment_token_invalid')
  }
})

test('revokes an unused token when a new one is issued', async ({ platform, admin }) => {
  const { id, enrollmentToken } = await platform.newCluster()
  const issued = expectStatus(await admin.post(`/api/v1/clusters/${id}/enrollment-token`), 201)
  expect(issued.relayCommand).toContain(issued.enrollmentToken)
  const refused = await requestEnrollment(platform.anonymous, enrollmentToken, newRelayKey())
  expectStatus(refused, 401, 'enrollment_token_invalid')
  await platform.enroll(issued.enrollmentToken)
})

test('rejects the old relay once another enrolls with a new token', async ({ platform, admin }) => {
  const old = await platform.newRelay()
  expectStatus(await old.heartbeat(), 200)
  const issued = expectStatus(await admin.post(`/api/v1/clusters/${old.clusterId}/enrollment-token`), 201)
  expectStatus(await old.heartbeat(), 200)
  const relay = await platform.enroll(issued.enrollmentToken)
  expectStatus(await old.heartbeat(), 401, 'unauthenticated')
  expectStatus(await relay.heartbeat(), 200)
  expect((await platform.cluster(relay.clusterId)).relay.id).toBe(relay.relayId)
})

test('rejects requests that the relay has not signed for this body and time', async ({ platform }) => {
  const relay = await platform.newRelay()
  for (const [what, authorization] of Object.entries(await badTokens(platform, relay))) {
    const headers = { 'content-type': 'application/json', ...(authorization !== '' && { authorization }) }
    const answer = await platform.anonymous.send('POST', heartbeat, { body: beat, headers })
    expect(answer.status, what).toBe(401)
  }
})

test('accepts a signed request once', async ({ platform }) => {
  const relay = await platform.newRelay()
  const jobId = await platform.submit(relay.clusterId)
  await platform.told(relay, jobId)
  const claimPath = `/api/v1/relay/jobs/${jobId}/claim`
  const sendTwice = async (path: string, body: string) => {
    const headers = {
      'content-type': 'application/json',
      authorization: `Relay ${relay.sign(tokenClaims(path, body))}`,
    }
    const first = expectStatus(await platform.anonymous.send('POST', path, { body, headers }), 200)
    return { first, second: await platform.anonymous.send('POST', path, { body, headers }) }
  }
  expectStatus((await sendTwice(heartbeat, beat)).second, 401, 'unauthenticated')
  const { first, second } = await sendTwice(claimPath, '')
  expectStatus(second, 409, 'job_not_claimable')
  const completion = { leaseId: first.leaseId, outcome: 'exited', exitCode: 0, nodes: [] }
  const ended = await sendTwice(claimPath.replace('claim', 'complete'), JSON.stringify(completion))
  expect(ended.first.status).toBe('Completed')
})
