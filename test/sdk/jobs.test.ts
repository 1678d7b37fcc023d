import type { ModuleDefinition } from '@platform/modules'
import { expect, test, vi } from 'vitest'
import { instanceOf, publishedIn, startedInstance } from '../support/sdk-instance.ts'

const job = (run: (signal: AbortSignal) => void | Promise<void>) => ({
  jobs: {
    beat: { description: 'Beats.', intervalSeconds: 60, run: (_context: unknown, signal: AbortSignal) => run(signal) },
  },
})

const hasRun = (value: boolean) => ({ status: 200, body: { hasRun: value } })

test('runs a job at each call, but not concurrently with itself', async () => {
  const gate = Promise.withResolvers<void>()
  const run = vi.fn(() => gate.promise)
  const { control } = await startedInstance(job(run))
  const firstRun = control('POST', '/jobs/beat')
  await vi.waitFor(() => expect(run).toHaveBeenCalledOnce())
  expect(await control('POST', '/jobs/beat')).toEqual(hasRun(false))
  gate.resolve()
  expect(await firstRun).toEqual(hasRun(true))
  expect(await control('POST', '/jobs/beat')).toEqual(hasRun(true))
  expect(run).toHaveBeenCalledTimes(2)
})

test('a job that exceeds its time limit blocks further runs until it ends', async () => {
  const gate = Promise.withResolvers<void>()
  let signal: AbortSignal | undefined
  const instance = await startedInstance(
    job((jobSignal) => {
      signal ??= jobSignal
      return gate.promise
    }),
  )
  const headers = { 'x-platform-grace-ms': '20' }
  const lateResponse = await instance.send('POST', '/_platform/v1/jobs/beat', { headers })
  const error = { error: 'hook_timeout', message: 'The job beat took longer than 20 ms.' }
  expect([lateResponse.status, await lateResponse.json()]).toEqual([504, error])
  expect(signal?.aborted).toBe(true)
  expect(await instance.control('POST', '/jobs/beat')).toEqual(hasRun(false))
  gate.resolve()
  await vi.waitFor(async () => expect(await instance.control('POST', '/jobs/beat')).toEqual(hasRun(true)))
})

test('returns the error of a job, and runs it again at the next call', async () => {
  const run = vi.fn<() => void>().mockImplementationOnce(() => {
    throw new Error('Not now.')
  })
  const { control } = await startedInstance(job(run))
  const body = { error: 'hook_failed', message: 'Not now.' }
  expect(await control('POST', '/jobs/beat')).toEqual({ status: 500, body })
  expect(await control('POST', '/jobs/beat')).toEqual(hasRun(true))
})

test.for(['nothing', 'toString', '__proto__', 'constructor'])('returns 404 for the job %s', async (id) => {
  const { control } = await startedInstance(job(() => {}))
  expect((await control('POST', `/jobs/${id}`)).status).toBe(404)
})

test('rejects jobs before the start and after the stop of the module', async () => {
  const run = vi.fn<() => void>()
  const { control, host } = instanceOf(job(run))
  for (const step of [() => host.configure(), () => host.start().then(() => host.stop()), async () => {}]) {
    expect((await control('POST', '/jobs/beat')).status).toBe(409)
    await step()
  }
  expect(run).not.toHaveBeenCalled()
})

test('cancels a job when the module stops', async () => {
  const { control, host } = await startedInstance(
    job((signal) => new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason)))),
  )
  const runningJob = control('POST', '/jobs/beat')
  await Promise.resolve()
  await host.stop()
  expect((await runningJob).status).toBe(409)
})

test('returns the events that a job publishes', async () => {
  const run: NonNullable<ModuleDefinition['jobs']>[string]['run'] = ({ eventBus }) =>
    eventBus.publish('module.sample.beaten', { times: 1 })
  const { send } = await startedInstance({ jobs: { beat: { description: 'Beats.', intervalSeconds: 60, run } } })
  const response = await send('POST', '/_platform/v1/jobs/beat')
  expect(publishedIn(response)).toEqual([{ type: 'module.sample.beaten', data: { times: 1 } }])
})
