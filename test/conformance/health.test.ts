import { expect } from 'vitest'
import { test } from './support/test.ts'
import { expectStatus } from './support/answer.ts'

test('liveness returns ok without a token', async ({ anonymous }) => {
  expect(expectStatus(await anonymous.get('/health/live'), 200)).toEqual({ status: 'ok' })
})

test('readiness returns ok and an aggregate of the critical and degradable checks', async ({ anonymous }) => {
  const { status, aggregate, checks } = expectStatus(await anonymous.get('/health/ready'), 200)
  expect(status).toBe('ok')
  const counting = checks.filter(({ tags }: { tags: string[] }) => !tags.includes('informational'))
  const isSound = counting.every((check: { status: string }) => check.status === 'Healthy')
  expect(aggregate).toBe(isSound ? 'Healthy' : 'Degraded')
})

test('startup returns ok once initialisation is complete', async ({ anonymous }) => {
  expect(expectStatus(await anonymous.get('/health/startup'), 200)).toEqual({ status: 'ok' })
})
