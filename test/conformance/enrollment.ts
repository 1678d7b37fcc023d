import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { answered } from './support/answer.ts'
import { signJws } from './support/jws.ts'
import type { Journeys, Platform } from './support/platform.ts'
import { newRelayKey, type Relay, requestEnrollment, tokenClaims } from './support/relay.ts'

const heartbeat = '/api/v1/relay/heartbeat'
const beat = JSON.stringify({ nodes: [], running: [], freeSlots: 0 })

/** What somebody might send in place of a request that this relay has signed for this body. */
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

export const enrollment: Journeys = {
  'an enrolled relay has identifiers for its nodes in their order, and keys to pin': async (platform) => {
    const { id, enrollmentToken } = await platform.newCluster()
    const names = ['node-2', 'node-1', 'node-3']
    const relay = await platform.enroll(enrollmentToken, names)
    assert.equal(relay.clusterId, id)
    assert.deepEqual(
      relay.nodes.map(({ name }) => name),
      names,
    )
    assert.equal(new Set(relay.nodes.map((node) => node.id)).size, names.length)
    assert.ok(relay.keys.keys.length > 0)
  },

  'the same token with the same key answers the same again': async (platform) => {
    const { enrollmentToken } = await platform.newCluster()
    const key = newRelayKey()
    const answers = [1, 2].map(() => requestEnrollment(platform.anonymous, enrollmentToken, key))
    answers.push(requestEnrollment(platform.anonymous, enrollmentToken, key))
    const enrolled = (await Promise.all(answers)).map((answer) => {
      const { serverTime: _, ...rest } = answered(answer, 201)
      return rest
    })
    assert.deepEqual(enrolled[1], enrolled[0])
    assert.deepEqual(enrolled[2], enrolled[0])
  },

  'a used token with another key is refused': async (platform) => {
    const { enrollmentToken } = await platform.newCluster()
    await platform.enroll(enrollmentToken)
    const answer = await requestEnrollment(platform.anonymous, enrollmentToken, newRelayKey())
    answered(answer, 409, 'enrollment_token_used')
  },

  'of eight keys that use one token at once one wins': async (platform) => {
    const { enrollmentToken } = await platform.newCluster()
    const answers = await Promise.all(
      Array.from({ length: 8 }, () => requestEnrollment(platform.anonymous, enrollmentToken, newRelayKey())),
    )
    assert.equal(answers.filter(({ status }) => status === 201).length, 1)
    for (const answer of answers) if (answer.status !== 201) answered(answer, 409, 'enrollment_token_used')
  },

  'what is no enrollment token is refused': async (platform) => {
    const { enrollmentToken } = await platform.newCluster()
    for (const token of ['text', '.', `${enrollmentToken}x`, enrollmentToken.toUpperCase()]) {
      const answer = await requestEnrollment(platform.anonymous, token, newRelayKey())
      answered(answer, 401, 'enrollment_token_invalid')
    }
  },

  'a new token revokes the unused one': async (platform) => {
    const { id, enrollmentToken } = await platform.newCluster()
    const admin = await platform.admin
    const issued = answered(await admin.post(`/api/v1/clusters/${id}/enrollment-token`), 201)
    assert.ok(issued.relayCommand.includes(issued.enrollmentToken))
    const refused = await requestEnrollment(platform.anonymous, enrollmentToken, newRelayKey())
    answered(refused, 401, 'enrollment_token_invalid')
    await platform.enroll(issued.enrollmentToken)
  },

  'enrolling with a new token replaces the relay, whose key is refused from then on': async (platform) => {
    const old = await platform.newRelay()
    answered(await old.beat(), 200)
    const admin = await platform.admin
    const issued = answered(await admin.post(`/api/v1/clusters/${old.clusterId}/enrollment-token`), 201)
    answered(await old.beat(), 200)
    const relay = await platform.enroll(issued.enrollmentToken)
    answered(await old.beat(), 401, 'unauthenticated')
    answered(await relay.beat(), 200)
    assert.equal((await platform.cluster(relay.clusterId)).relay.id, relay.relayId)
  },

  'a request that the relay has not signed, for this body and this moment, is refused': async (platform) => {
    const relay = await platform.newRelay()
    for (const [what, authorization] of Object.entries(await badTokens(platform, relay))) {
      const headers = { 'content-type': 'application/json', ...(authorization !== '' && { authorization }) }
      const answer = await platform.anonymous.send('POST', heartbeat, { body: beat, headers })
      assert.equal(answer.status, 401, what)
    }
  },

  'a signed request works once': async (platform) => {
    const relay = await platform.newRelay()
    const jobId = await platform.submit(relay.clusterId)
    await platform.told(relay, jobId)
    const claimPath = `/api/v1/relay/jobs/${jobId}/claim`
    const sendTwice = async (path: string, body: string) => {
      const headers = {
        'content-type': 'application/json',
        authorization: `Relay ${relay.sign(tokenClaims(path, body))}`,
      }
      const first = answered(await platform.anonymous.send('POST', path, { body, headers }), 200)
      return { first, second: await platform.anonymous.send('POST', path, { body, headers }) }
    }
    answered((await sendTwice(heartbeat, beat)).second, 401, 'unauthenticated')
    const { first, second } = await sendTwice(claimPath, '')
    answered(second, 409, 'job_not_claimable')
    const completion = { leaseId: first.leaseId, outcome: 'exited', exitCode: 0, nodes: [] }
    const ended = await sendTwice(claimPath.replace('claim', 'complete'), JSON.stringify(completion))
    assert.equal(ended.first.status, 'Completed')
  },
}
