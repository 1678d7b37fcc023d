import { readFile } from 'node:fs/promises'
import { shiftClock } from '@platform/core/clock'
import { recordMetric, withMetrics, metricUnits } from '@platform/core/lib/metrics'
import { version } from '@platform/core/lib/version'
import { consume } from '@platform/http/consume'
import { scheduled } from '@platform/http/schedule'
import { Ajv } from 'ajv'
import { expect, test, vi } from 'vitest'
import * as z from 'zod'
import { captureLog } from '../support/log.ts'

vi.hoisted(() =>
  Object.assign(process.env, {
    PLAT_METRICS: 'emf',
    PLAT_LOG_LEVEL: 'error',
    AWS_LAMBDA_FUNCTION_NAME: 'platform-jobs',
  }),
)

/** What CloudWatch asks of a line: the schema that its specification of the format gives in words. */
const name = { type: 'string', minLength: 1, maxLength: 1024 }
const units = ['Seconds', 'Microseconds', 'Milliseconds', 'Bytes', 'Percent', 'Count', 'None']
const isLine = new Ajv({ allowUnionTypes: true }).compile({
  type: 'object',
  required: ['_aws'],
  properties: {
    _aws: {
      type: 'object',
      required: ['Timestamp', 'CloudWatchMetrics'],
      properties: {
        Timestamp: { type: 'integer', minimum: 0 },
        CloudWatchMetrics: {
          type: 'array',
          minItems: 1,
          items: {
            type: 'object',
            required: ['Namespace', 'Dimensions', 'Metrics'],
            properties: {
              Namespace: { ...name, pattern: '^[^:].*$' },
              Dimensions: {
                type: 'array',
                minItems: 1,
                items: { type: 'array', maxItems: 30, items: { ...name, maxLength: 250 } },
              },
              Metrics: {
                type: 'array',
                minItems: 1,
                maxItems: 100,
                items: {
                  type: 'object',
                  required: ['Name'],
                  properties: { Name: name, Unit: { enum: units } },
                },
              },
            },
          },
        },
      },
    },
  },
})

/** The metrics of a line, each found where its directive says; fails where the line is not as CloudWatch wants it. */
function metricsOf(line: any): Record<string, number> {
  expect(isLine(line), JSON.stringify(isLine.errors)).toBe(true)
  const [{ Dimensions, Metrics }] = line['_aws'].CloudWatchMetrics
  for (const key of Dimensions.flat()) expect(line[key]).toEqual(expect.stringMatching(/^[\w.+-]{1,1024}$/))
  for (const { Name } of Metrics) expect(Number.isFinite(line[Name]), Name).toBe(true)
  return Object.fromEntries(Metrics.map(({ Name }: { Name: string }) => [Name, line[Name]]))
}

test('a batch of messages writes one line, in the embedded metric format', async () => {
  const handler = consume(z.object({ isGood: z.boolean() }), async ({ isGood }) => {
    recordMetric('OutboundFailures')
    if (!isGood) throw new Error('bad message')
  })
  const Records = [true, false, true].map((isGood, index) => ({
    messageId: String(index),
    body: JSON.stringify({ isGood }),
  }))
  const lines = await captureLog(() => handler({ Records }))
  const [line, ...others] = lines.filter((each) => '_aws' in each)
  expect(others).toEqual([])
  expect(metricsOf(line)).toEqual({
    MessagesProcessed: 2,
    MessagesFailed: 1,
    OutboundFailures: 3,
    BatchDuration: expect.any(Number),
  })
  expect(line).toMatchObject({ Function: 'platform-jobs', Version: version })
  expect(line?.['_aws'].CloudWatchMetrics[0]).toMatchObject({
    Namespace: 'Platform',
    Dimensions: [['Function']],
  })
})

test('a scheduled run tells how long it took; one that fails tells that, and is thrown on', async () => {
  const [line] = await captureLog(() => scheduled('good', async () => undefined)())
  expect(metricsOf(line)).toEqual({
    ScheduledRuns: 1,
    ScheduledRunFailures: 0,
    ScheduledRunDuration: expect.any(Number),
  })
  expect(line?.['traceId']).toMatch(/^[\da-f]{32}$/)

  const failing = scheduled('bad', () => Promise.reject(new Error('no')))
  const lines = await captureLog(() => expect(failing()).rejects.toThrow('no'))
  expect(lines.filter((each) => '_aws' in each).map(metricsOf)).toEqual([{ ScheduledRuns: 1, ScheduledRunFailures: 1 }])
})

test('counts add up, of times the longest stays, and what is no number is left out', async () => {
  const [line] = await captureLog(() =>
    withMetrics(async () => {
      for (const value of [3, 7, 5]) recordMetric('SweepDelay', value)
      for (const value of [1, 0, 1]) recordMetric('ServerErrors', value)
      recordMetric('OutboxLag', Number.NaN)
      recordMetric('RequestDuration', Number.POSITIVE_INFINITY)
    }),
  )
  expect(metricsOf(line)).toEqual({ SweepDelay: 7, ServerErrors: 2 })
})

const counting = (count: number) =>
  withMetrics(async () => {
    await Promise.resolve()
    recordMetric('Requests', count)
    await Promise.resolve()
  })

test('works at the same time do not mix what they measure', async () => {
  const lines = await captureLog(() => Promise.all([counting(1), counting(20)]))
  expect(lines.map((line) => metricsOf(line)['Requests'])).toEqual([1, 20])
})

test('all there is to measure fits into one line, and the time is the platform’s', async () => {
  shiftClock(60_000)
  const startMs = Date.now() + 60_000
  const names = Object.keys(metricUnits) as (keyof typeof metricUnits)[]
  const [line] = await captureLog(() => withMetrics(async () => names.forEach((each) => recordMetric(each))))
  shiftClock(-60_000)
  expect(Object.keys(metricsOf(line))).toEqual(names)
  expect(line?.['_aws'].Timestamp).toBeGreaterThanOrEqual(startMs)
  expect(line?.['_aws'].Timestamp).toBeLessThan(startMs + 30_000)
})

test('the page for operators tells each metric with its unit, and no other', async () => {
  const page = await readFile('docs/operations.md', 'utf8')
  const rows = page.matchAll(/^\| `(\w+)` +\| (Count|Seconds|Milliseconds) /gm)
  expect(Object.fromEntries([...rows].map(([, each, unit]) => [each, unit]))).toEqual(metricUnits)
})

test('where nothing is measured nothing is written', async () => {
  recordMetric('Requests')
  expect(await captureLog(() => withMetrics(async () => undefined))).toEqual([])
})
