import assert from 'node:assert/strict'
import { answered } from './support/answer.ts'
import type { Journeys } from './support/platform.ts'

export const health: Journeys = {
  'liveness answers ok without a token': async ({ anonymous }) => {
    assert.deepEqual(answered(await anonymous.get('/health/live'), 200), { status: 'ok' })
  },

  'readiness answers ok with an aggregate that follows from the critical and degradable checks': async ({
    anonymous,
  }) => {
    const { status, aggregate, checks } = answered(await anonymous.get('/health/ready'), 200)
    assert.equal(status, 'ok')
    const counting = checks.filter(({ tags }: { tags: string[] }) => !tags.includes('informational'))
    const isSound = counting.every((check: { status: string }) => check.status === 'Healthy')
    assert.equal(aggregate, isSound ? 'Healthy' : 'Degraded')
  },

  'startup answers ok once initialisation is done': async ({ anonymous }) => {
    assert.deepEqual(answered(await anonymous.get('/health/startup'), 200), { status: 'ok' })
  },
}
