import { readFile } from 'node:fs/promises'
import { shiftClock } from '@platform/core/clock'
import { metricUnits, recordMetric, withMetrics } from '@platform/core/lib/metrics'
import { version } from '@platform/core/lib/version'
import { addLogFields, currentTraceId, log, withTrace } from '@platform/core/log'
import { consume } from '@platform/http/consume'
import { onSchedule } from '@platform/http/schedule'
import { Ajv } from 'ajv'
import { expect, test, vi } from 'vitest'
import * as z from 'zod'
import { captureLog } from '../support/log.ts'

vi.hoisted(() =>
  Object.assign(process.env, {
    PLAT_METRICS: 'emf',
    PLAT_LOG_LEVEL: 'warn',
    AWS_LAMBDA_FUNCTION_NAME: 'platform-jobs',
  }),
)

/** The embedded metric format of CloudWatch, from its specification. */
const name = { type: 'string', minLength: 1, maxLength: 1024 }
const units = ['Seconds', 'Microseconds', 'Milliseconds', 'Bytes', 'Percent', 'Count', 'None']
const arrayOf = (items: object, maxItems: number) => ({ type: 'array', minItems: 1, maxItems, items })
const objectOf = (properties: Record<string, object>, required = Object.keys(properties)) => ({
  type: 'object',
  required,
  properties,
})
const isMetricLine = new Ajv({ allowUnionTypes: true }).compile(
  objectOf({
    _aws: objectOf({
      Timestamp: { type: 'integer', minimum: 0 },
      CloudWatchMetrics: arrayOf(
        objectOf({
          Namespace: { ...name, pattern: '^[^:].*$' },
          Dimensions: arrayOf({ type: 'array', maxItems: 30, items: { ...name, maxLength: 250 } }, 30),
          Metrics: arrayOf(objectOf({ Name: name, Unit: { enum: units } }, ['Name']), 100),
        }),
        100,
      ),
    }),
  }),
)

function metricsOf(line: any): Record<string, number> {
  expect(isMetricLine(line), JSON.stringify(isMetricLine.errors)).toBe(true)
  const [{ Dimensions, Metrics }] = line['_aws'].CloudWatchMetrics
  for (const key of Dimensions.flat()) expect(line[key]).toEqual(expect.stringMatching(/^[\w.+-]{1,1024}$/))
  for (const { Name } of Metrics) expect(Number.isFinite(line[Name]), Name).toBe(true)
  return Object.fromEntries(Metrics.map(({ Name }: { Name: string }) => [Name, line[Name]]))
}

const isMetric = (line: object): boolean => '_aws' in line
const logOf = async (work: () => Promise<unknown>) => (await captureLog(work)).filter((line) => !isMetric(line))

const eventOf = (...bodies: string[]) => ({
  Records: bodies.map((body, index) => ({ messageId: `message-${index}`, body })),
})

test('a consumer reports each failed message and processes the others', async () => {
  const processedIds: string[] = []
  const handler = consume(z.object({ id: z.string() }), async ({ id }) => {
    if (id === 'bad') throw new Error('cannot')
    processedIds.push(id)
  })
  let result: unknown
  await captureLog(async () => {
    result = await handler(eventOf('{"id": "a"}', '{"id": "bad"}', '{"id": "b"}', 'not json', '{"id": 7}', '', 'null'))
  })
  expect(processedIds.toSorted()).toEqual(['a', 'b'])
  const expectedFailures = [1, 3, 4, 5, 6].map((index) => ({ itemIdentifier: `message-${index}` }))
  expect(result).toEqual({ batchItemFailures: expectedFailures })
  expect(await handler({ Records: [] })).toEqual({ batchItemFailures: [] })
})

test('a consumer logs each message with its own trace, and failures without the content', async () => {
  const handler = consume(z.object({ id: z.string() }), async () => log('error', 'working'))
  const lines = await logOf(() => handler(eventOf('{"id": "a"}', '{"id": 7, "secret": "hidden"}')))
  expect(lines).toMatchObject([
    { level: 'error', messageId: 'message-0', message: 'working' },
    { level: 'error', messageId: 'message-1', message: 'message failed' },
  ])
  expect(new Set(lines.map(({ traceId }) => traceId)).size).toBe(2)
  expect(JSON.stringify(lines)).not.toContain('hidden')
})

test('a consumer writes one metric line per batch', async () => {
  const handler = consume(z.object({ isValid: z.boolean() }), async ({ isValid }) => {
    recordMetric('OutboundFailures')
    if (!isValid) throw new Error('invalid message')
  })
  const bodies = [true, false, true].map((isValid) => JSON.stringify({ isValid }))
  const [line, ...others] = (await captureLog(() => handler(eventOf(...bodies)))).filter(isMetric)
  expect(others).toEqual([])
  const counts = { MessagesProcessed: 2, MessagesFailed: 1, OutboundFailures: 3 }
  expect(metricsOf(line)).toEqual({ ...counts, BatchDuration: expect.any(Number) })
  expect(line).toMatchObject({ Function: 'platform-jobs', Version: version })
  const metadata = line?.['_aws'].CloudWatchMetrics[0]
  expect(metadata).toMatchObject({ Namespace: 'Platform', Dimensions: [['Function']] })
})

test('a scheduled function measures its duration; a failure is logged, counted and thrown', async () => {
  const lines = await captureLog(() => onSchedule('sweep', async () => undefined)())
  const duration = { ScheduledRunDuration: expect.any(Number) }
  expect(lines.filter(isMetric).map(metricsOf)).toEqual([{ ScheduledRuns: 1, ScheduledRunFailures: 0, ...duration }])
  const failingSchedule = onSchedule('sweep', () => Promise.reject(new Error('no store')))
  const failureLines = await captureLog(() => expect(failingSchedule()).rejects.toThrow('no store'))
  expect(failureLines.filter(isMetric).map(metricsOf)).toEqual([{ ScheduledRuns: 1, ScheduledRunFailures: 1 }])
  const traceId = expect.stringMatching(/^[0-9a-f]{32}$/)
  expect(failureLines.filter((line) => !isMetric(line))).toMatchObject([{ level: 'error', task: 'sweep', traceId }])
})

test('metrics add counts, keep the maximum of durations, and omit invalid numbers', async () => {
  const [line] = await captureLog(() =>
    withMetrics(async () => {
      for (const value of [3, 7, 5]) recordMetric('SweepDelay', value)
      for (const value of [1, 0, 1]) recordMetric('ServerErrors', value)
      recordMetric('OutboxLag', Number.NaN)
      recordMetric('RequestDuration', Number.POSITIVE_INFINITY)
    }),
  )
  expect(metricsOf(line)).toEqual({ SweepDelay: 7, ServerErrors: 2 })
  recordMetric('Requests')
  expect(await captureLog(() => withMetrics(async () => undefined))).toEqual([])
})

test('concurrent work keeps its own metrics, trace and log fields', async () => {
  const work = (count: number) =>
    withTrace({ traceId: String(count) }, () =>
      withMetrics(async () => {
        await Promise.resolve()
        addLogFields({ owner: count })
        recordMetric('Requests', count)
        await Promise.resolve()
        log('error', currentTraceId())
      }),
    )
  const lines = await captureLog(() => Promise.all([work(1), work(20)]))
  const logLines = lines.filter((line) => !isMetric(line))
  expect(logLines.map(({ message, traceId, owner }) => [message, traceId, owner])).toEqual([
    ['1', '1', 1],
    ['20', '20', 20],
  ])
  expect(lines.filter(isMetric).map((line) => metricsOf(line)['Requests'])).toEqual([1, 20])
})

test('one line contains all metrics with the time of the platform', async () => {
  shiftClock(60_000)
  const startMs = Date.now() + 60_000
  const names = Object.keys(metricUnits) as (keyof typeof metricUnits)[]
  const [line] = await captureLog(() => withMetrics(async () => names.forEach((each) => recordMetric(each))))
  shiftClock(-60_000)
  expect(Object.keys(metricsOf(line))).toEqual(names)
  expect(line?.['_aws'].Timestamp).toBeGreaterThanOrEqual(startMs)
})

test('the operations page documents every metric with its unit', async () => {
  const page = await readFile('docs/operations.md', 'utf8')
  const rows = page.matchAll(/^\| `(\w+)` +\| (Count|Seconds|Milliseconds) /gm)
  expect(Object.fromEntries([...rows].map(([, each, unit]) => [each, unit]))).toEqual(metricUnits)
})

test('omits lines below the log level, and logs without a trace', async () => {
  const lines = await captureLog(async () => {
    addLogFields({ lost: true })
    for (const level of ['debug', 'info', 'warn', 'error'] as const) log(level, level, { count: 1 })
  })
  const time = expect.any(String)
  expect(lines).toEqual(['warn', 'error'].map((level) => ({ time, level, message: level, count: 1 })))
  expect(currentTraceId()).toBe('')
})

test('escapes control characters in log lines', () => {
  const value = 'a\nb\r\u001b[2J\u007f\u009b31m\u2028\u2029"}\u0000'
  const write = vi.spyOn(process.stdout, 'write').mockReturnValue(true)
  log('error', value, { [value]: value })
  const text = String(write.mock.calls[0]?.[0])
  write.mockRestore()
  expect(text).toMatch(/^[^\p{Cc}\p{Zl}\p{Zp}]+\n$/u)
  expect(JSON.parse(text)).toMatchObject({ message: value, [value]: value })
})

test('logs an error with its stack and the chain of its causes', async () => {
  const cause = new Error('outer', { cause: new TypeError('inner') })
  const [line] = await captureLog(async () => log('error', 'failed', { cause }))
  expect(line?.['cause'].stack).toContain('Error: outer\n')
  expect(line?.['cause'].cause.stack).toContain('TypeError: inner\n')
})
