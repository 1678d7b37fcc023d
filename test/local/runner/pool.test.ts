import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { FunctionError, FunctionTimeout } from '@platform/local/functions/errors'
import { startPool } from '@platform/local/functions/pool'
import { expect, test } from 'vitest'
import { startGate } from './gate.ts'
import { temporaryFolder, writeFunctions } from './support.ts'

async function poolIn(
  folder: string,
  sources: Record<string, string>,
  {
    timeoutMs = 30_000,
    ...options
  }: { threads?: number; timeoutMs?: number; environment?: Record<string, string> } = {},
) {
  const logged: { message: string; details: Record<string, unknown>; atMs: number }[] = []
  const pool = startPool({
    threads: 1,
    timeoutMsOf: () => timeoutMs,
    environment: {},
    ...options,
    functionsDir: await writeFunctions(folder, sources),
    log: (message, details = {}) => logged.push({ message, details, atMs: performance.now() }),
  })
  return { ...pool, logged, [Symbol.asyncDispose]: pool.close }
}

test('a function gets its event and a context like Lambda’s', async () => {
  await using folder = await temporaryFolder()
  const told = `export const handler = (event, context) => ({ event, ...context, left: context.getRemainingTimeInMillis(), getRemainingTimeInMillis: 0 })`
  await using pool = await poolIn(folder.path, { told })
  expect(await pool.invoke('told', { a: [1, 'b'] }, 'the-request')).toMatchObject({
    event: { a: [1, 'b'] },
    awsRequestId: 'the-request',
    functionName: 'told',
    invokedFunctionArn: 'arn:aws:lambda:us-east-1:000000000000:function:told',
    left: expect.toSatisfy((left: number) => left > 0 && left <= 30_000),
  })
})

test('a module is imported once for each thread', async () => {
  await using folder = await temporaryFolder()
  const counting = `let calls = 0\nexport const handler = () => ++calls`
  await using pool = await poolIn(folder.path, { counting })
  await pool.warmUp(['counting'])
  expect([await pool.invoke('counting', {}), await pool.invoke('counting', {})]).toEqual([1, 2])
})

test('a function sees the environment of the platform, not the one of the machine', async () => {
  await using folder = await temporaryFolder()
  const environment = { PLAT_ONE: '1' }
  process.env['AWS_PROFILE_OF_THE_MACHINE'] = 'yes'
  await using pool = await poolIn(
    folder.path,
    { env: 'export const handler = () => ({ ...process.env })' },
    { environment },
  )
  expect(await pool.invoke('env', {})).toEqual(environment)
  delete process.env['AWS_PROFILE_OF_THE_MACHINE']
})

test('many invocations run on a thread at once, and on the thread that has least to do', async () => {
  await using folder = await temporaryFolder()
  await using gate = await startGate()
  const source = `import { threadId } from 'node:worker_threads'
    export const handler = async () => { ${gate.pass('wait')}; return threadId }`
  await using pool = await poolIn(folder.path, { wait: source }, { threads: 2 })
  const results = Promise.all([1, 2, 3, 4].map(() => pool.invoke('wait', {})))
  await gate.arrived('wait', 4)
  gate.open()
  const threads = await results
  expect(new Set(threads).size).toBe(2)
  expect(threads.filter((thread) => thread === threads[0])).toHaveLength(2)
})

test.for([
  ['throws', `export const handler = () => { throw new RangeError('too far') }`, /RangeError: too far/],
  ['throws no error', `export const handler = () => { throw 'words' }`, /words/],
  ['rejects', `export const handler = async () => { throw new Error('no') }`, /no/],
  ['has no handler', `export const other = 1`, /exports no handler/],
  ['cannot be imported', `import './missing.ts'\nexport const handler = () => 1`, /missing/],
  ['returns what cannot cross threads', `export const handler = () => () => 1`, /could not be cloned/],
] as const)('a function that %s fails, and its thread goes on', async ([, source, message]) => {
  await using folder = await temporaryFolder()
  await using pool = await poolIn(folder.path, { broken: source, fine: 'export const handler = () => 7' })
  await expect(pool.invoke('broken', {})).rejects.toThrow(message)
  await expect(pool.invoke('broken', {})).rejects.toBeInstanceOf(FunctionError)
  expect(await pool.invoke('fine', {})).toBe(7)
  expect(pool.logged).toEqual([])
})

test('a warm-up fails when a function cannot be imported', async () => {
  await using folder = await temporaryFolder()
  await using pool = await poolIn(folder.path, { broken: `throw new Error('at import')` })
  await expect(pool.warmUp(['broken'])).rejects.toThrow('at import')
})

test.for([
  ['an uncaught exception', `setImmediate(() => { throw new Error('from nowhere') })`, /from nowhere/],
  ['an unhandled rejection', `void Promise.reject(new Error('forgotten'))`, /forgotten/],
  ['an exit', `process.exit(3)`, /ended/],
  ['a heap that is full', `for (const kept = []; ; ) kept.push(new Array(100_000).fill(0.5))`, /memory limit/],
] as const)('%s ends the thread: what ran on it fails, and another takes its place', async ([, crash, reason]) => {
  await using folder = await temporaryFolder()
  await using gate = await startGate()
  const waiting = `export const handler = async () => { ${gate.pass('waiting')} }`
  const crashing = `export const handler = () => { ${crash}; return new Promise(() => {}) }`
  const functions = { waiting, crashing, fine: 'export const handler = () => 7' }
  await using pool = await poolIn(folder.path, functions, { timeoutMs: 170_000 })
  const bystander = pool.invoke('waiting', {})
  const failed = expect(bystander).rejects.toThrow(reason)
  await gate.arrived('waiting')
  await expect(pool.invoke('crashing', {})).rejects.toThrow(reason)
  await failed
  expect(await pool.invoke('fine', {})).toBe(7)
  expect(pool.logged).toMatchObject([{ message: 'a function thread ended and is replaced' }])
})

test('a thread that cannot start is tried again, with pauses between; until then whoever calls is refused at once', async () => {
  await using folder = await temporaryFolder()
  const environment: Record<string, string> = { NODE_OPTIONS: '--require=/no/such/file' }
  await using pool = await poolIn(folder.path, { fine: 'export const handler = () => 7' }, { environment })
  const triesAtMs = () => pool.logged.map(({ atMs }) => atMs)
  await expect.poll(() => triesAtMs().length, { timeout: 20_000 }).toBe(2)
  const [first = 0, second = 0] = triesAtMs()
  expect(second - first).toBeGreaterThan(900)
  expect(pool.logged[0]).toMatchObject({
    message: 'a function thread does not start',
    details: { thread: 'functions-0' },
  })
  await expect(pool.invoke('fine', {})).rejects.toBeInstanceOf(FunctionError)
  delete environment['NODE_OPTIONS']
  await expect.poll(() => pool.invoke('fine', {}).catch(() => 0), { timeout: 20_000 }).toBe(7)
})

test('a function that does not answer in time is given up, and its thread goes on', async () => {
  await using folder = await temporaryFolder()
  const endless = 'export const handler = () => new Promise(() => {})'
  await using pool = await poolIn(folder.path, { endless, fine: 'export const handler = () => 7' }, { timeoutMs: 50 })
  await expect(pool.invoke('endless', {})).rejects.toBeInstanceOf(FunctionTimeout)
  await expect.poll(() => pool.invoke('fine', {}).catch(() => 0)).toBe(7)
})

test('a thread that a function keeps busy for ever is replaced', async () => {
  await using folder = await temporaryFolder()
  const busy = 'export const handler = () => { for (;;); }'
  await using pool = await poolIn(folder.path, { busy, fine: 'export const handler = () => 7' }, { timeoutMs: 50 })
  await expect(pool.invoke('busy', {})).rejects.toBeInstanceOf(FunctionTimeout)
  await expect.poll(() => pool.invoke('fine', {}).catch(() => 0), { timeout: 20_000 }).toBe(7)
  expect(pool.logged).toMatchObject([{ message: 'a function thread ended and is replaced' }])
})

test('a thread that takes long to start is not taken for a hung one', async () => {
  await using folder = await temporaryFolder()
  const slow = join(folder.path, 'slow.cjs')
  // Longer than a call may take and a hung thread is given.
  await writeFile(slow, 'Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2000)')
  const environment = { NODE_OPTIONS: `--require=${slow}` }
  const fine = 'export const handler = () => 7'
  await using pool = await poolIn(folder.path, { fine }, { timeoutMs: 50, environment })
  await expect.poll(() => pool.invoke('fine', {}).catch(() => 0), { timeout: 20_000 }).toBe(7)
  expect(pool.logged).toEqual([])
})

test('closing ends what still runs', async () => {
  await using folder = await temporaryFolder()
  await using gate = await startGate()
  const waiting = `export const handler = async () => { ${gate.pass('waiting')} }`
  const pool = await poolIn(folder.path, { waiting })
  const failed = expect(pool.invoke('waiting', {})).rejects.toBeInstanceOf(FunctionError)
  await gate.arrived('waiting')
  await pool.close()
  await failed
  expect(pool.logged).toEqual([])
})
