import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { FunctionError, FunctionTimeout } from '@platform/local/functions/errors'
import { startPool } from '@platform/local/functions/pool'
import { startVersion } from '@platform/local/releases/version'
import { expect, test } from 'vitest'
import { temporaryFolder } from '../../support/temporary-folder.ts'
import { startBarrier } from '../support/barrier.ts'
import { writeFunctions } from '../support/platform.ts'

const workingFunction = 'export const handler = () => 7'

async function poolOf(
  sources: Record<string, string>,
  {
    timeoutMs = 30_000,
    ...options
  }: { threadCount?: number; timeoutMs?: number; environment?: Record<string, string> } = {},
) {
  const folder = await temporaryFolder()
  const logEntries: { message: string; details: Record<string, unknown> }[] = []
  const pool = startPool({
    threadCount: 1,
    timeoutMsOf: () => timeoutMs,
    environment: {},
    ...options,
    functionsDir: await writeFunctions(folder.path, sources),
    log: (message, details = {}) => logEntries.push({ message, details }),
  })
  const dispose = async () => {
    await pool.close()
    await folder[Symbol.asyncDispose]()
  }
  return { ...pool, logged: logEntries, [Symbol.asyncDispose]: dispose }
}

test('a function gets its event and a Lambda context, and is imported once', async () => {
  const source = `let calls = 0
    export const handler = (event, context) =>
      ({ event, calls: ++calls, ...context, remainingMs: context.getRemainingTimeInMillis(), getRemainingTimeInMillis: 0 })`
  await using pool = await poolOf({ echo: source, broken: `throw new Error('at import')` })
  await pool.warmUp(['echo'])
  expect(await pool.invoke('echo', { a: [1, 'b'] }, 'the-request')).toMatchObject({
    event: { a: [1, 'b'] },
    awsRequestId: 'the-request',
    functionName: 'echo',
    invokedFunctionArn: 'arn:aws:lambda:us-east-1:000000000000:function:echo',
    remainingMs: expect.toSatisfy((ms: number) => ms > 0 && ms <= 30_000),
  })
  expect(await pool.invoke('echo', {})).toMatchObject({ calls: 2 })
  await expect(pool.warmUp(['broken'])).rejects.toThrow('at import')
})

test('a function gets only the environment of the platform', async () => {
  const environment = { PLAT_ONE: '1' }
  process.env['AWS_PROFILE_OF_THE_MACHINE'] = 'yes'
  await using pool = await poolOf({ env: 'export const handler = () => ({ ...process.env })' }, { environment })
  expect(await pool.invoke('env', {})).toEqual(environment)
  delete process.env['AWS_PROFILE_OF_THE_MACHINE']
})

test('distributes concurrent invocations over the threads', async () => {
  await using barrier = await startBarrier()
  const source = `import { threadId } from 'node:worker_threads'
    export const handler = async () => { ${barrier.report('wait')}; return threadId }`
  await using pool = await poolOf({ wait: source }, { threadCount: 2 })
  const results = Promise.all([1, 2, 3, 4].map(() => pool.invoke('wait', {})))
  await barrier.waitForReports('wait', 4)
  barrier.open()
  const threads = await results
  expect(new Set(threads).size).toBe(2)
  expect(threads.filter((thread) => thread === threads[0])).toHaveLength(2)
})

test.for([
  ['throws', `export const handler = () => { throw new RangeError('too far') }`, /RangeError: too far/],
  ['throws a string', `export const handler = () => { throw 'words' }`, /words/],
  ['rejects', `export const handler = async () => { throw new Error('no') }`, /no/],
  ['has no handler', `export const other = 1`, /exports no handler/],
  ['cannot be imported', `import './missing.ts'\nexport const handler = () => 1`, /missing/],
  ['returns a value that cannot be cloned', `export const handler = () => () => 1`, /could not be cloned/],
] as const)('a function that %s fails without ending its thread', async ([, source, message]) => {
  await using pool = await poolOf({ broken: source, fine: workingFunction })
  await expect(pool.invoke('broken', {})).rejects.toThrow(message)
  await expect(pool.invoke('broken', {})).rejects.toBeInstanceOf(FunctionError)
  expect(await pool.invoke('fine', {})).toBe(7)
  expect(pool.logged).toEqual([])
})

test.for([
  ['an uncaught exception', `setImmediate(() => { throw new Error('from nowhere') })`, /from nowhere/],
  ['an unhandled rejection', `void Promise.reject(new Error('forgotten'))`, /forgotten/],
  ['an exit', `process.exit(3)`, /ended/],
  ['a full heap', `for (const blocks = []; ; ) blocks.push(new Array(100_000).fill(0.5))`, /memory limit/],
] as const)('%s ends the thread and its invocations, and the thread is replaced', async ([, crash, reason]) => {
  await using barrier = await startBarrier()
  const waitingSource = `export const handler = async () => { ${barrier.report('waiting')} }`
  const crashingSource = `export const handler = () => { ${crash}; return new Promise(() => {}) }`
  const functions = { waiting: waitingSource, crashing: crashingSource, fine: workingFunction }
  await using pool = await poolOf(functions, { timeoutMs: 170_000 })
  const otherInvocation = pool.invoke('waiting', {})
  const failed = expect(otherInvocation).rejects.toThrow(reason)
  await barrier.waitForReports('waiting')
  await expect(pool.invoke('crashing', {})).rejects.toThrow(reason)
  await failed
  expect(await pool.invoke('fine', {})).toBe(7)
  expect(pool.logged).toMatchObject([{ message: 'a function thread ended and is replaced' }])
})

test('a thread that cannot start is started again after a delay, and calls fail until then', async () => {
  const environment: Record<string, string> = { NODE_OPTIONS: '--require=/no/such/file' }
  await using pool = await poolOf({ fine: workingFunction }, { environment })
  await expect.poll(() => pool.logged.length, { timeout: 20_000 }).toBe(2)
  expect(pool.logged[0]).toMatchObject({
    message: 'a function thread does not start',
    details: { thread: 'functions-0' },
  })
  await expect(pool.invoke('fine', {})).rejects.toBeInstanceOf(FunctionError)
  delete environment['NODE_OPTIONS']
  await expect.poll(() => pool.invoke('fine', {}).catch(() => 0), { timeout: 20_000 }).toBe(7)
})

test.for([
  ['a timeout does not end its thread', 'new Promise(() => {})', []],
  ['a thread with an endless loop is replaced', '{ for (;;); }', ['a function thread ended and is replaced']],
] as const)('%s', async ([, body, logged]) => {
  await using pool = await poolOf(
    { endless: `export const handler = () => ${body}`, fine: workingFunction },
    { timeoutMs: 50 },
  )
  await expect(pool.invoke('endless', {})).rejects.toBeInstanceOf(FunctionTimeout)
  await expect.poll(() => pool.invoke('fine', {}).catch(() => 0), { timeout: 20_000 }).toBe(7)
  expect(pool.logged.map(({ message }) => message)).toEqual(logged)
})

test('does not replace a thread that starts slowly', async () => {
  await using folder = await temporaryFolder()
  const slowFile = join(folder.path, 'slow.cjs')
  // The start takes 2 s, longer than the limits of a call (50 ms) and of a ping (1 s).
  await writeFile(slowFile, 'Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2000)')
  const environment = { NODE_OPTIONS: `--require=${slowFile}` }
  await using pool = await poolOf({ fine: workingFunction }, { timeoutMs: 50, environment })
  await expect.poll(() => pool.invoke('fine', {}).catch(() => 0), { timeout: 20_000 }).toBe(7)
  expect(pool.logged).toEqual([])
})

test('closing ends running invocations', async () => {
  await using barrier = await startBarrier()
  const waitingSource = `export const handler = async () => { ${barrier.report('waiting')} }`
  const pool = await poolOf({ waiting: waitingSource })
  const failed = expect(pool.invoke('waiting', {})).rejects.toBeInstanceOf(FunctionError)
  await barrier.waitForReports('waiting')
  await pool.close()
  await failed
  expect(pool.logged).toEqual([])
})

test.for([
  ['never completes', `await new Promise(() => {})\nexport const handler = () => 1`],
  ['loops forever', `for (;;);\nexport const handler = () => 1`],
] as const)('rejects a function whose import %s, and leaves no thread running', async ([, source]) => {
  await using folder = await temporaryFolder()
  const functionsDir = await writeFunctions(folder.path, { hanging: source })
  const lines: string[] = []
  const settings = { functionThreads: 2, functionsDir }
  const log = (line: string) => lines.push(line)
  const starting = startVersion({ settings, environment: {}, warmUpTimeoutMs: 500, log }, ['hanging', 'health'])
  await expect(starting).rejects.toThrow('hanging did not respond within 500 ms')
  expect(lines).toEqual([])
})
